-- Sessions, as the account role: a browser's cookie names one. Only the token's hash is stored.

-- name: InsertSession :exec
-- stale is how many seconds ago its owner authenticated.
INSERT INTO sessions (id, hash, kind, person_id, operator_id, link_id, pending, data, address, agent, expires_at, fresh_at,
	sso_tenant, sso_subject, sso_sid)
VALUES (@id, @hash, @kind, sqlc.narg('person_id'), sqlc.narg('operator_id'), sqlc.narg('link_id'), @pending, @data, @address, @agent,
	now() + make_interval(secs => @lives::int), now() - make_interval(secs => @stale::int),
	sqlc.narg('sso_tenant'), sqlc.narg('sso_subject'), sqlc.narg('sso_sid'));

-- name: FindSession :one
-- The session of a token, and its account. The times come with the database's time, which decides what has expired: a
-- web server whose clock is set back revives no session.
SELECT s.id, s.kind, s.pending, s.data, s.once, s.created_at, s.fresh_at, s.seen_at, s.expires_at, s.address, s.agent, now()::timestamptz AS now,
	s.person_id, s.operator_id, s.link_id, s.sso_tenant,
	coalesce(p.email, o.email, '')::text AS email, coalesce(p.name, o.name, '')::text AS name,
	(p.totp_at IS NOT NULL OR o.totp_at IS NOT NULL)::boolean AS has_totp,
	(coalesce(p.disabled_at, o.disabled_at) IS NOT NULL)::boolean AS disabled
FROM sessions s
LEFT JOIN people p ON p.id = s.person_id
LEFT JOIN operators o ON o.id = s.operator_id
WHERE s.hash = @hash;

-- name: TouchSession :exec
UPDATE sessions SET seen_at = now(), address = @address WHERE id = @id;

-- name: SetSessionData :exec
UPDATE sessions SET data = @data WHERE id = @id;

-- name: SetSessionOnce :exec
UPDATE sessions SET once = @once WHERE id = @id;

-- name: TakeSessionOnce :execrows
-- Of several pages that are opened together one shows it.
UPDATE sessions SET once = NULL WHERE id = @id AND once = @once;

-- name: RotateSession :execrows
-- The person has authenticated again: the session gets another token, and the old one is void.
UPDATE sessions SET hash = @hash, pending = false, fresh_at = now(), seen_at = now(),
	expires_at = CASE WHEN pending THEN now() + make_interval(secs => @lives::int) ELSE expires_at END
WHERE id = @id;

-- name: DeleteSession :execrows
DELETE FROM sessions WHERE id = @id;

-- name: ListSessionsOfPerson :many
SELECT id, created_at, seen_at, address, agent FROM sessions
WHERE person_id = @person_id AND NOT pending AND expires_at > now() AND seen_at > now() - make_interval(secs => @idle::int)
ORDER BY seen_at DESC, id DESC LIMIT 200;

-- name: KnownBrowser :one
-- Whether a person has a session in a browser of this description, and how many in any.
SELECT coalesce(bool_or(agent = @agent), false)::boolean AS own, count(*) AS others FROM sessions WHERE person_id = @person_id AND NOT pending;

-- name: EndSessionOfPerson :execrows
DELETE FROM sessions WHERE person_id = @person_id AND id = @id;

-- name: EndSessionsOf :execrows
-- All of a person or an operator except one: the zero id keeps none.
DELETE FROM sessions WHERE (person_id = @owner_id OR operator_id = @owner_id) AND id <> @but;

-- name: TenantsOf :many
SELECT t.tenant_id::uuid AS tenant_id, t.member_id::uuid AS member_id, t.role::text AS role, t.tenant_name::text AS tenant_name,
	t.tenant_state::text AS tenant_state, posthorn.sso_required(t.tenant_id, t.member_id)::boolean AS sso_required
FROM posthorn.tenants_of(@person_id) AS t;

-- name: SetLastTenant :exec
UPDATE people SET last_tenant = @tenant_id WHERE id = @person_id AND last_tenant IS DISTINCT FROM @tenant_id;
