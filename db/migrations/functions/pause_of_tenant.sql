-- The widest pause that concerns all endpoints of a tenant, or no row. The reason of a pause of the whole platform is
-- only for operators. A tenant can ask only about itself.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.pause_of_tenant(tenant uuid) RETURNS TABLE (scope text, reason text, since timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 1 SET search_path = posthorn, pg_temp AS $$
	SELECT p.scope, CASE p.scope WHEN 'tenant' THEN p.reason ELSE '' END, p.created_at FROM dispatch_pauses p
	WHERE (p.scope = 'platform' OR p.scope = 'tenant' AND p.tenant_id = pause_of_tenant.tenant)
		AND (pause_of_tenant.tenant = posthorn.tenant() OR current_setting('role') = 'posthorn_console')
	ORDER BY p.scope LIMIT 1
$$;
REVOKE ALL ON FUNCTION posthorn.pause_of_tenant(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.pause_of_tenant(uuid) TO posthorn_console, posthorn_tenant;
