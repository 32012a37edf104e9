-- Tenants. Lists and changes of any tenant run as the console role, the rest as the tenant itself.

-- name: TenantState :one
-- A platform key names its tenant: does it exist, and may it emit? No row: it does not exist.
SELECT s.state::text AS state FROM (SELECT posthorn.tenant_state(@tenant_id) AS state) s WHERE s.state IS NOT NULL;

-- name: FindTenant :one
-- A platform key names its tenant by the company's own id. Runs before the tenant is known.
SELECT f.id::uuid AS id FROM (SELECT posthorn.find_tenant(@external_id) AS id) f WHERE f.id IS NOT NULL;

-- name: TenantOfExternalID :one
SELECT * FROM tenants WHERE external_id = @external_id::text AND state <> 'deleted';

-- name: InsertTenant :exec
INSERT INTO tenants (id, name, strict_types, retention_days, created_at, external_id, settings)
VALUES (@id, @name, @strict_types, @retention_days, @created_at, sqlc.narg('external_id'), coalesce(sqlc.narg('settings')::jsonb, '{}'));

-- name: InsertTenantOnce :execrows
-- No row: another request created the tenant of this external id first.
INSERT INTO tenants (id, name, strict_types, retention_days, created_at, external_id)
VALUES (@id, @name, @strict_types, @retention_days, @created_at, @external_id::text)
ON CONFLICT (external_id) WHERE external_id IS NOT NULL AND state <> 'deleted' DO NOTHING;

-- name: GetTenant :one
-- A deleted one is as unknown as any.
SELECT * FROM tenants WHERE id = @tenant_id AND state <> 'deleted';

-- name: LockTenant :one
-- Changes of one tenant's settings are serialized, so that the audit log has what each of them changed.
SELECT * FROM tenants WHERE id = @tenant_id AND state <> 'deleted' FOR NO KEY UPDATE;

-- name: UpdateTenant :one
-- Strictness and limits decide what is accepted, so they make a new version of the routes.
UPDATE tenants SET name = @name, strict_types = @strict_types, retention_days = @retention_days, settings = @settings, external_id = sqlc.narg('external_id'),
	routing_version = routing_version + CASE WHEN strict_types <> @strict_types OR settings -> 'limits' IS DISTINCT FROM @settings::jsonb -> 'limits' THEN 1 ELSE 0 END
WHERE id = @tenant_id
RETURNING *;

-- name: SetTenantState :one
UPDATE tenants SET state = @state, state_at = now(), routing_version = routing_version + 1
WHERE id = @tenant_id
RETURNING *;

-- name: BumpRouting :one
-- For a change of routes, or of how an endpoint is sent to: changes of one tenant are serialized, and an event that is
-- stored after a change has its version or a newer one.
UPDATE tenants SET routing_version = routing_version + 1 WHERE id = @tenant_id RETURNING routing_version;

-- name: ListTenants :many
SELECT t.* FROM (
	(SELECT u.id FROM tenants u WHERE @newest::boolean AND u.id > @low AND u.id < @high AND u.state <> 'deleted' ORDER BY u.id DESC LIMIT sqlc.arg('limit'))
	UNION ALL
	(SELECT u.id FROM tenants u WHERE NOT @newest::boolean AND u.id > @low AND u.id < @high AND u.state <> 'deleted' ORDER BY u.id LIMIT sqlc.arg('limit'))
) p JOIN tenants t ON t.id = p.id
ORDER BY CASE WHEN @newest::boolean THEN t.id END DESC, t.id;

-- name: LockPlatform :one
-- Changes of the platform's settings happen one after the other.
SELECT settings FROM platform FOR NO KEY UPDATE;

-- name: SetPlatformSettings :exec
-- Limits are part of every tenant's routes.
WITH was AS (SELECT settings FROM platform), changed AS (UPDATE platform SET settings = @settings::jsonb)
UPDATE tenants SET routing_version = routing_version + 1 FROM was WHERE was.settings -> 'limits' IS DISTINCT FROM @settings::jsonb -> 'limits';
