-- The widest pause that concerns an endpoint, or no row. A suspended tenant is suspended also while everything is
-- paused. A tenant can ask only about itself.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.pause_of(tenant uuid, endpoint uuid, url text) RETURNS TABLE (scope text, since timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 1 SET search_path = posthorn, pg_temp AS $$
	SELECT p.scope, p.created_at FROM (
		SELECT d.scope, d.tenant_id, d.endpoint_id, d.host, d.created_at FROM dispatch_pauses d
		UNION ALL SELECT 'suspended', t.id, NULL, '', t.state_at FROM tenants t WHERE t.id = pause_of.tenant AND t.state = 'suspended'
	) p
	WHERE (p.scope = 'platform' OR p.scope IN ('tenant', 'suspended') AND p.tenant_id = pause_of.tenant OR p.scope = 'endpoint' AND p.endpoint_id = pause_of.endpoint
			OR p.scope = 'host' AND p.host IN (posthorn.url_host(pause_of.url), regexp_replace(posthorn.url_host(pause_of.url), ':[0-9]+$', '')))
		AND (pause_of.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
	ORDER BY array_position(ARRAY['suspended', 'platform', 'tenant', 'host', 'endpoint'], p.scope) LIMIT 1
$$;
REVOKE ALL ON FUNCTION posthorn.pause_of(uuid, uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.pause_of(uuid, uuid, text) TO posthorn_console, posthorn_tenant, posthorn_worker;
