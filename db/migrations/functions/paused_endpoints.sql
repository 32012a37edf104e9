-- The endpoints that pauses concern, of one tenant or of all. Without a pause it costs nothing. A tenant can ask only
-- about itself.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.paused_endpoints(of_tenant uuid DEFAULT NULL) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT x.id FROM (
		SELECT e.id, e.tenant_id, e.deleted_at FROM dispatch_pauses p CROSS JOIN endpoints e WHERE p.scope = 'platform'
		UNION SELECT e.id, e.tenant_id, e.deleted_at FROM dispatch_pauses p JOIN endpoints e ON e.tenant_id = p.tenant_id WHERE p.scope = 'tenant'
		UNION SELECT e.id, e.tenant_id, e.deleted_at FROM tenants t JOIN endpoints e ON e.tenant_id = t.id WHERE t.state = 'suspended'
		UNION SELECT e.id, e.tenant_id, e.deleted_at FROM dispatch_pauses p JOIN endpoints e ON e.id = p.endpoint_id WHERE p.scope = 'endpoint'
		UNION SELECT e.id, e.tenant_id, e.deleted_at FROM dispatch_pauses p JOIN endpoints e
			ON p.host IN (posthorn.url_host(e.url), regexp_replace(posthorn.url_host(e.url), ':[0-9]+$', '')) WHERE p.scope = 'host'
	) x
	WHERE x.deleted_at IS NULL AND x.tenant_id BETWEEN coalesce(of_tenant, '00000000-0000-0000-0000-000000000000')
			AND coalesce(of_tenant, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
		AND (of_tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
REVOKE ALL ON FUNCTION posthorn.paused_endpoints(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.paused_endpoints(uuid) TO posthorn_console, posthorn_tenant, posthorn_worker;
