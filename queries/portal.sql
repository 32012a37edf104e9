-- Links that sign a provider's customer into one tenant's dashboard.

-- name: InsertPortalLink :one
INSERT INTO portal_links (tenant_id, id, hash, role, brand, accent, return_url, allow_secrets, allow_replay, allow_event_types, allow_payloads, session_seconds,
	created_by, created_at, open_until)
VALUES (@tenant_id, @id, @hash, @role, @brand, @accent, @return_url, @allow_secrets, @allow_replay, @allow_event_types, @allow_payloads, @session_seconds,
	@created_by, @created_at,
	now() + make_interval(secs => @lives::int))
RETURNING *;

-- name: GetPortalLink :one
SELECT * FROM portal_links WHERE tenant_id = @tenant_id AND id = @id;

-- name: ListPortalLinks :many
SELECT l.* FROM (
	(SELECT u.id FROM portal_links u WHERE @newest::boolean AND u.tenant_id = @tenant_id AND u.id > @low AND u.id < @high ORDER BY u.id DESC LIMIT sqlc.arg('limit'))
	UNION ALL
	(SELECT u.id FROM portal_links u WHERE NOT @newest::boolean AND u.tenant_id = @tenant_id AND u.id > @low AND u.id < @high ORDER BY u.id LIMIT sqlc.arg('limit'))
) p JOIN portal_links l ON l.tenant_id = @tenant_id AND l.id = p.id
ORDER BY CASE WHEN @newest::boolean THEN l.id END DESC, l.id;

-- name: RevokePortalLink :execrows
-- No row: there is no such link, or it is revoked already. Its sessions end with it.
UPDATE portal_links SET revoked_at = now() WHERE tenant_id = @tenant_id AND id = @id AND revoked_at IS NULL;

-- name: OpenPortal :one
-- Runs before any tenant is known.
SELECT l.tenant_id::uuid AS tenant_id, l.id::uuid AS id, l.session_seconds::int AS session_seconds FROM posthorn.open_portal(@hash) AS l;

-- name: FindPortal :one
-- Runs before any tenant is known. A link is found by its token's hash or by its id, also after its end.
SELECT l.tenant_id::uuid AS tenant_id, l.id::uuid AS id, l.role::text AS role, l.brand::text AS brand, l.accent::text AS accent,
	l.return_url::text AS return_url, l.allow_secrets::boolean AS allow_secrets, l.allow_replay::boolean AS allow_replay,
	l.allow_event_types::boolean AS allow_event_types, l.allow_payloads::boolean AS allow_payloads, l.revoked::boolean AS revoked,
	l.tenant_name::text AS tenant_name, l.tenant_state::text AS tenant_state
FROM posthorn.portal_link(sqlc.narg('hash')::bytea, sqlc.narg('link_id')::uuid) AS l;
