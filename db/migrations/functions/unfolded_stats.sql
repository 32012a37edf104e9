-- The attempts of a tenant's endpoints that the ledger holds and no job has folded into the roll-ups yet: a few
-- seconds' worth. The ledger holds the attempts of all tenants; a tenant sees only its own.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.unfolded_stats(tenant uuid)
RETURNS TABLE (endpoint_id uuid, event_type text, minute timestamptz, kind smallint, n bigint, us bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT u.endpoint, u.type, to_timestamp(u.minute::bigint * 60), u.kind, u.n::bigint, u.us
	FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.stat_endpoint), unnest(l.stat_type), unnest(l.stat_minute),
		unnest(l.stat_kind), unnest(l.stat_count), unnest(l.stat_us)) AS u(endpoint, type, minute, kind, n, us)
	JOIN endpoints e ON e.id = u.endpoint
	WHERE e.tenant_id = unfolded_stats.tenant
		AND (unfolded_stats.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
REVOKE ALL ON FUNCTION posthorn.unfolded_stats(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.unfolded_stats(uuid) TO posthorn_console, posthorn_tenant, posthorn_worker;
