-- Homes: the name of this database, and what another home asks it.

-- name: HomeName :one
-- No row: the installation has no homes.
SELECT name FROM home;

-- name: TakeHome :one
-- The name that the database has: the first that was given to it.
INSERT INTO home (name) VALUES (@name) ON CONFLICT (id) DO UPDATE SET name = home.name RETURNING name;

-- name: HasToken :one
SELECT posthorn.has_token(@hash)::boolean AS found;

-- name: HasPerson :one
SELECT EXISTS (SELECT FROM people WHERE email = @email AND disabled_at IS NULL) AS found;

-- name: HasMember :one
-- Whether an address belongs to a member of a tenant here.
SELECT EXISTS (SELECT FROM people p JOIN memberships m ON m.person_id = p.id JOIN tenants t ON t.id = m.tenant_id
	WHERE p.email = @email AND p.disabled_at IS NULL AND t.state <> 'deleted') AS found;

-- name: HasLeft :one
-- Whether a tenant has moved to another home.
SELECT EXISTS (SELECT FROM tenant_moves WHERE tenant_id = @tenant_id AND direction = 'out' AND state = 'done') AS has_left;

-- name: HomeWorkers :one
-- How many workers are live.
SELECT count(*) AS workers FROM workers WHERE NOT dead AND coalesce(beat_at > now() - make_interval(secs => @silent_seconds::float8), true);

-- name: HomeCounts :one
-- Waiting deliveries are counted up to limit.
SELECT (SELECT count(*) FROM tenants WHERE state <> 'deleted') AS tenants, (SELECT count(*) FROM (SELECT 1 FROM queue LIMIT sqlc.arg('limit')::int) x) AS waiting;

-- name: FindTenants :many
-- Tenants of an id, of an external id, or with a part of their name, newest first.
SELECT * FROM tenants
WHERE state <> 'deleted' AND (id = @id OR external_id = @part::text OR position(lower(@part::text) IN lower(name)) > 0)
ORDER BY id DESC LIMIT sqlc.arg('limit');
