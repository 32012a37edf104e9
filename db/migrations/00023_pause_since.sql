-- A pause that delays a delivery is shown with its beginning.

-- +goose Up

ALTER TABLE tenants ADD COLUMN state_at timestamptz; -- when its state last changed; null: before this was kept
GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- The widest pause that keeps an endpoint from being sent to, no row for none. A tenant may ask about itself alone.
-- +goose StatementBegin
CREATE FUNCTION posthorn.pause_of(tenant uuid, endpoint uuid, url text) RETURNS TABLE (scope text, since timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 1 SET search_path = posthorn, pg_temp AS $$
	SELECT p.scope, p.created_at FROM (
		SELECT d.scope, d.tenant_id, d.endpoint_id, d.host, d.created_at FROM dispatch_pauses d
		UNION ALL SELECT 'suspended', t.id, NULL, '', t.state_at FROM tenants t WHERE t.id = pause_of.tenant AND t.state = 'suspended'
	) p
	WHERE (p.scope = 'platform' OR p.scope IN ('tenant', 'suspended') AND p.tenant_id = pause_of.tenant OR p.scope = 'endpoint' AND p.endpoint_id = pause_of.endpoint
			OR p.scope = 'host' AND p.host IN (posthorn.url_host(pause_of.url), regexp_replace(posthorn.url_host(pause_of.url), ':[0-9]+$', '')))
		AND (pause_of.tenant = posthorn.tenant() OR current_setting('role') IN ('posthorn_worker', 'posthorn_console'))
	ORDER BY array_position(ARRAY['platform', 'suspended', 'tenant', 'host', 'endpoint'], p.scope) LIMIT 1
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.pause_of(uuid, uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.pause_of(uuid, uuid, text) TO posthorn_tenant, posthorn_worker, posthorn_console;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.paused_by(tenant uuid, endpoint uuid, url text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT p.scope FROM posthorn.pause_of(paused_by.tenant, paused_by.endpoint, paused_by.url) p
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
DROP FUNCTION posthorn.pause_of(uuid, uuid, text);
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;
ALTER TABLE tenants DROP COLUMN state_at;
