-- The failures of a tenant that the ledger holds and no job has folded yet. See unfolded_stats.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.unfolded_failures(tenant uuid)
RETURNS TABLE (endpoint_id uuid, minute timestamptz, code smallint, n bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT u.endpoint, to_timestamp(u.minute::bigint * 60), u.code, u.n::bigint
	FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.fail_endpoint), unnest(l.fail_minute), unnest(l.fail_code), unnest(l.fail_count))
		AS u(endpoint, minute, code, n)
	JOIN endpoints e ON e.id = u.endpoint
	WHERE e.tenant_id = unfolded_failures.tenant
		AND (unfolded_failures.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
REVOKE ALL ON FUNCTION posthorn.unfolded_failures(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.unfolded_failures(uuid) TO posthorn_console, posthorn_tenant, posthorn_worker;
