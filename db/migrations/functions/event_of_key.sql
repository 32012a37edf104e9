-- The event of an idempotency key. The tenant's role can't read that table, which holds digests of bodies. The tenant
-- is the transaction's, not an argument.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.event_of_key(wanted text) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT event_id FROM idempotency_keys WHERE tenant_id = posthorn.tenant() AND key = wanted
$$;
REVOKE ALL ON FUNCTION posthorn.event_of_key(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.event_of_key(text) TO posthorn_tenant;
