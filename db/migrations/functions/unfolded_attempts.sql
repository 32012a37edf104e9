-- Like unfolded_stats, which older processes call, with the durations.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.unfolded_attempts(tenant uuid)
RETURNS TABLE (endpoint_id uuid, event_type text, minute timestamptz, kind smallint, n bigint, us bigint, least_us int, most_us int)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT u.endpoint, u.type, to_timestamp(u.minute::bigint * 60), u.kind, u.n::bigint, u.us, coalesce(u.least, 0), coalesce(u.most, 2147483647)
	FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.stat_endpoint), unnest(l.stat_type), unnest(l.stat_minute),
		unnest(l.stat_kind), unnest(l.stat_count), unnest(l.stat_us), unnest(l.stat_least), unnest(l.stat_most))
		AS u(endpoint, type, minute, kind, n, us, least, most)
	JOIN endpoints e ON e.id = u.endpoint
	WHERE e.tenant_id = unfolded_attempts.tenant
		AND (unfolded_attempts.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
REVOKE ALL ON FUNCTION posthorn.unfolded_attempts(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.unfolded_attempts(uuid) TO posthorn_console, posthorn_tenant, posthorn_worker;
