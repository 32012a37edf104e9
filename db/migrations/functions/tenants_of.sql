-- A person's tenants and roles, and nothing else of either.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.tenants_of(person uuid)
RETURNS TABLE (tenant_id uuid, member_id uuid, role text, tenant_name text, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT m.tenant_id, m.id, m.role, t.name, t.state FROM memberships m JOIN tenants t ON t.id = m.tenant_id
	WHERE m.person_id = person
	ORDER BY lower(t.name), t.id
$$;
REVOKE ALL ON FUNCTION posthorn.tenants_of(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.tenants_of(uuid) TO posthorn_account, posthorn_console;
