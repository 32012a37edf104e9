-- The tenant and endpoint of an inbox token. It is called before the tenant is known.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.find_inbox(token_hash bytea) RETURNS TABLE (tenant_id uuid, endpoint_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT i.tenant_id, i.endpoint_id FROM inboxes i WHERE i.hash = find_inbox.token_hash
$$;
REVOKE ALL ON FUNCTION posthorn.find_inbox(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.find_inbox(bytea) TO posthorn_ingest;
