-- Pauses of dispatch. Operators create and end them as the console role; workers read them all; a tenant sees only
-- that a pause concerns it.

-- name: ListPauses :many
-- With the names that people know; the widest first.
SELECT sqlc.embed(p), coalesce(t.name, '')::text AS tenant_name, coalesce(e.url, '')::text AS url
FROM dispatch_pauses p LEFT JOIN tenants t ON t.id = p.tenant_id LEFT JOIN endpoints e ON e.id = p.endpoint_id
ORDER BY array_position(ARRAY['platform', 'tenant', 'host', 'endpoint'], p.scope), p.id
LIMIT 1000;

-- name: DispatchPauses :many
-- The pauses that workers follow. Nothing is sent of a suspended tenant either.
SELECT scope, tenant_id, host, endpoint_id, false AS suspended FROM dispatch_pauses
UNION ALL
SELECT 'tenant', id, '', NULL, true FROM tenants WHERE state = 'suspended';

-- name: InsertPause :execrows
-- No row: the same is paused already.
INSERT INTO dispatch_pauses (id, scope, tenant_id, host, endpoint_id, reason, actor_kind, actor_id, created_at)
VALUES (@id, @scope, sqlc.narg('tenant_id'), @host, sqlc.narg('endpoint_id'), @reason, @actor_kind, @actor_id, @created_at)
ON CONFLICT DO NOTHING;

-- name: FindPause :one
SELECT * FROM dispatch_pauses WHERE scope = @scope AND tenant_id IS NOT DISTINCT FROM sqlc.narg('tenant_id') AND host = @host
	AND endpoint_id IS NOT DISTINCT FROM sqlc.narg('endpoint_id');

-- name: EndPause :one
-- No row: it has ended already.
DELETE FROM dispatch_pauses WHERE id = @id RETURNING *;

-- name: TenantOfEndpoint :one
SELECT tenant_id FROM endpoints WHERE id = @id AND deleted_at IS NULL;

-- name: NotifyPauses :exec
SELECT pg_notify('posthorn_pauses', '');

-- name: PauseOfTenant :many
-- The widest pause that concerns a whole tenant, as the tenant can see it. No row: none.
SELECT p.scope::text AS scope, p.reason::text AS reason, p.since::timestamptz AS since FROM posthorn.pause_of_tenant(@tenant_id) AS p;
