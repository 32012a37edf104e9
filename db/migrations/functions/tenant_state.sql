-- The state of a tenant that a platform key names, or null.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.tenant_state(tenant uuid) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT CASE WHEN moving THEN 'moving' ELSE state END FROM tenants WHERE id = tenant AND state <> 'deleted'
$$;
REVOKE ALL ON FUNCTION posthorn.tenant_state(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.tenant_state(uuid) TO posthorn_ingest;
