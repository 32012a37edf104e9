-- The deliveries of a suspended tenant wait, as if an operator had paused the tenant.

-- +goose Up

CREATE INDEX tenants_suspended ON tenants (id) WHERE state = 'suspended';
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.paused_by(tenant uuid, endpoint uuid, url text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT p.scope FROM (
		SELECT scope, tenant_id, endpoint_id, host FROM dispatch_pauses
		UNION ALL SELECT 'suspended', t.id, NULL, '' FROM tenants t WHERE t.id = paused_by.tenant AND t.state = 'suspended'
	) p
	WHERE (p.scope = 'platform' OR p.scope IN ('tenant', 'suspended') AND p.tenant_id = paused_by.tenant OR p.scope = 'endpoint' AND p.endpoint_id = paused_by.endpoint
			OR p.scope = 'host' AND p.host IN (posthorn.url_host(paused_by.url), regexp_replace(posthorn.url_host(paused_by.url), ':[0-9]+$', '')))
		AND (paused_by.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
	ORDER BY array_position(ARRAY['platform', 'suspended', 'tenant', 'host', 'endpoint'], p.scope) LIMIT 1
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.paused_endpoints(of_tenant uuid DEFAULT NULL) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT DISTINCT e.id FROM (
		SELECT scope, tenant_id, endpoint_id, host FROM dispatch_pauses
		UNION ALL SELECT 'tenant', t.id, NULL, '' FROM tenants t WHERE t.state = 'suspended'
	) p JOIN endpoints e
		ON p.scope = 'platform' OR p.scope = 'tenant' AND e.tenant_id = p.tenant_id OR p.scope = 'endpoint' AND e.id = p.endpoint_id
		OR p.scope = 'host' AND p.host IN (posthorn.url_host(e.url), regexp_replace(posthorn.url_host(e.url), ':[0-9]+$', ''))
	WHERE e.deleted_at IS NULL AND (of_tenant IS NULL OR e.tenant_id = of_tenant)
		AND (of_tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
-- +goose StatementEnd
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.paused_by(tenant uuid, endpoint uuid, url text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT p.scope FROM dispatch_pauses p
	WHERE (p.scope = 'platform' OR p.scope = 'tenant' AND p.tenant_id = paused_by.tenant OR p.scope = 'endpoint' AND p.endpoint_id = paused_by.endpoint
			OR p.scope = 'host' AND p.host IN (posthorn.url_host(paused_by.url), regexp_replace(posthorn.url_host(paused_by.url), ':[0-9]+$', '')))
		AND (paused_by.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
	ORDER BY array_position(ARRAY['platform', 'tenant', 'host', 'endpoint'], p.scope) LIMIT 1
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.paused_endpoints(of_tenant uuid DEFAULT NULL) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT DISTINCT e.id FROM dispatch_pauses p JOIN endpoints e
		ON p.scope = 'platform' OR p.scope = 'tenant' AND e.tenant_id = p.tenant_id OR p.scope = 'endpoint' AND e.id = p.endpoint_id
		OR p.scope = 'host' AND p.host IN (posthorn.url_host(e.url), regexp_replace(posthorn.url_host(e.url), ':[0-9]+$', ''))
	WHERE e.deleted_at IS NULL AND (of_tenant IS NULL OR e.tenant_id = of_tenant)
		AND (of_tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
$$;
-- +goose StatementEnd
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;
DROP INDEX tenants_suspended;
