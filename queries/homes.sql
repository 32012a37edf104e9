-- Homes: the name of this database, and the tenants that it has given away.

-- name: HomeName :one
-- No row: the installation has no homes.
SELECT name FROM home;

-- name: TakeHome :one
-- The name that the database has: the first that was given to it.
INSERT INTO home (name) VALUES (@name) ON CONFLICT (id) DO UPDATE SET name = home.name RETURNING name;

-- name: HasLeft :one
-- Whether a tenant has moved to another home.
SELECT EXISTS (SELECT FROM moved_tenants WHERE tenant_id = @tenant_id) AS has_left;

-- name: MovedVersion :one
-- Changes whenever MovedTenants does.
SELECT (count(*)::text || ' ' || coalesce(max(moved_at)::text, ''))::text AS version FROM moved_tenants;

-- name: MovedTenants :many
SELECT tenant_id, home, external_id, hashes FROM moved_tenants;

-- name: MovedKey :one
-- The key of the links to unsubscribe that this home shares with the one from which a tenant came, or to which it went.
SELECT link_key FROM tenant_moves WHERE tenant_id = @tenant_id AND link_key IS NOT NULL;

-- name: IsMovingOut :one
-- Whether a tenant is on its way to another home.
SELECT EXISTS (SELECT FROM tenant_moves WHERE tenant_id = @tenant_id AND direction = 'out' AND state <> 'done') AS moving;
