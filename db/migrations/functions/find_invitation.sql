-- The invitation of a link.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.find_invitation(token_hash bytea)
RETURNS TABLE (tenant_id uuid, id uuid, email text, role text, tenant_name text, expired boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT i.tenant_id, i.id, i.email, i.role, t.name, i.expires_at <= now()
	FROM invitations i JOIN tenants t ON t.id = i.tenant_id
	WHERE i.hash = token_hash
$$;
REVOKE ALL ON FUNCTION posthorn.find_invitation(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.find_invitation(bytea) TO posthorn_account;
