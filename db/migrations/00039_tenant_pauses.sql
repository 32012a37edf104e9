-- A tenant whose deliveries an operator paused sees on its pages since when, and the reason if the pause concerns only
-- this tenant.

-- +goose Up

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- The widest pause that concerns all of a tenant's endpoints, no row for none. The reason of a pause of the whole platform is the
-- operators' own. A tenant can ask about itself alone.
-- +goose StatementBegin
CREATE FUNCTION posthorn.pause_of_tenant(tenant uuid) RETURNS TABLE (scope text, reason text, since timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 1 SET search_path = posthorn, pg_temp AS $$
	SELECT p.scope, CASE p.scope WHEN 'tenant' THEN p.reason ELSE '' END, p.created_at FROM dispatch_pauses p
	WHERE (p.scope = 'platform' OR p.scope = 'tenant' AND p.tenant_id = pause_of_tenant.tenant)
		AND (pause_of_tenant.tenant = posthorn.tenant() OR current_setting('role') = 'posthorn_console')
	ORDER BY p.scope LIMIT 1
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.pause_of_tenant(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.pause_of_tenant(uuid) TO posthorn_tenant, posthorn_console;
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
DROP FUNCTION posthorn.pause_of_tenant(uuid);
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;
