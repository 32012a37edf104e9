-- Members and invitations of one tenant.

-- name: ListMembers :many
-- All, or one.
SELECT m.id, m.person_id, m.role, m.created_at, p.name, p.email, (p.totp_at IS NOT NULL OR p.passkey_required_at IS NOT NULL)::boolean AS has_totp, (p.disabled_at IS NOT NULL)::boolean AS disabled,
	coalesce((SELECT i.role_gap FROM sso_identities i WHERE i.tenant_id = m.tenant_id AND i.person_id = m.person_id), '')::text AS role_gap
FROM memberships m JOIN people p ON p.id = m.person_id
WHERE m.tenant_id = @tenant_id AND m.id > @low AND m.id < @high AND (sqlc.narg('member_id')::uuid IS NULL OR m.id = sqlc.narg('member_id'))
ORDER BY CASE WHEN @newest::boolean THEN m.id END DESC, m.id LIMIT sqlc.arg('limit');

-- name: HasMemberWithEmail :one
SELECT EXISTS (SELECT FROM memberships m JOIN people p ON p.id = m.person_id WHERE m.tenant_id = @tenant_id AND p.email = @email)::boolean AS found;

-- name: CountOwners :one
-- Owners who can sign in. The caller has locked the tenant, so the number holds until it commits.
SELECT count(*) FROM memberships m JOIN people p ON p.id = m.person_id
WHERE m.tenant_id = @tenant_id AND m.role = 'owner' AND p.disabled_at IS NULL;

-- name: InsertMember :execrows
INSERT INTO memberships (tenant_id, person_id, id, role, created_at) VALUES (@tenant_id, @person_id, @id, @role, @created_at)
ON CONFLICT (tenant_id, person_id) DO NOTHING;

-- name: SetMemberRole :execrows
UPDATE memberships SET role = @role WHERE tenant_id = @tenant_id AND id = @id;

-- name: DeleteMember :execrows
DELETE FROM memberships WHERE tenant_id = @tenant_id AND id = @id;

-- name: InsertInvitation :exec
-- Inviting an address again replaces the invitation: its old link is dead.
INSERT INTO invitations (tenant_id, id, email, role, hash, invited_by, mail_id, created_at, expires_at)
VALUES (@tenant_id, @id, @email, @role, @hash, @invited_by, @mail_id::uuid, @created_at, now() + make_interval(secs => @lives::int))
ON CONFLICT (tenant_id, email) DO UPDATE SET id = excluded.id, role = excluded.role, hash = excluded.hash,
	invited_by = excluded.invited_by, mail_id = excluded.mail_id, created_at = excluded.created_at, expires_at = excluded.expires_at;

-- name: CountInvitations :one
SELECT count(*) FROM invitations WHERE tenant_id = @tenant_id;

-- name: ListInvitations :many
-- All, or one.
SELECT i.id, i.email, i.role, i.invited_by, i.created_at, i.expires_at, (i.expires_at <= now())::boolean AS expired,
	coalesce((SELECT l.state = 'failed' FROM mails l WHERE l.id = i.mail_id), false)::boolean AS mail_failed
FROM invitations i
WHERE i.tenant_id = @tenant_id AND i.id > @low AND i.id < @high AND (sqlc.narg('invitation_id')::uuid IS NULL OR i.id = sqlc.narg('invitation_id'))
ORDER BY CASE WHEN @newest::boolean THEN i.id END DESC, i.id LIMIT sqlc.arg('limit');

-- name: DeleteInvitation :execrows
DELETE FROM invitations WHERE tenant_id = @tenant_id AND id = @id;

-- name: TakeInvitation :one
-- Accepting uses up an invitation. No row: it was accepted, revoked or replaced, or has expired.
DELETE FROM invitations WHERE tenant_id = @tenant_id AND hash = @hash AND expires_at > now() RETURNING id, email, role;

-- name: FindInvitation :one
-- Runs before any tenant is known.
SELECT i.tenant_id::uuid AS tenant_id, i.id::uuid AS id, i.email::text AS email, i.role::text AS role, i.tenant_name::text AS tenant_name,
	i.expired::boolean AS expired
FROM posthorn.find_invitation(@hash) AS i;
