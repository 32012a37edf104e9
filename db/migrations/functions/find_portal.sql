-- The permissions of a session that began with a portal link.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.find_portal(link uuid)
RETURNS TABLE (tenant_id uuid, role text, brand text, accent text, return_url text, allow_secrets boolean, tenant_name text, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT l.tenant_id, l.role, l.brand, l.accent, l.return_url, l.allow_secrets, t.name, t.state
	FROM portal_links l JOIN tenants t ON t.id = l.tenant_id
	WHERE l.id = link AND l.revoked_at IS NULL
$$;
REVOKE ALL ON FUNCTION posthorn.find_portal(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.find_portal(uuid) TO posthorn_account;
