-- The tenant of an external id.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.find_tenant(external text) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT id FROM tenants WHERE external_id = external AND state <> 'deleted'
$$;
REVOKE ALL ON FUNCTION posthorn.find_tenant(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.find_tenant(text) TO posthorn_ingest;
