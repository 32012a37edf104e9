-- Single sign-on: a tenant's connection to its OpenID provider, the email domains that it has verified, and which person
-- each account of the provider is. Runs as the tenant, or as the console role where a sign-in creates people.

-- name: GetSSO :one
SELECT * FROM sso_connections WHERE tenant_id = @tenant_id;

-- name: LockSSO :one
-- Sign-ins of one tenant are serialized, also with changes of the connection.
SELECT * FROM sso_connections WHERE tenant_id = @tenant_id FOR UPDATE;

-- name: PutSSO :exec
INSERT INTO sso_connections (tenant_id, issuer, client_id, client_secret, role_claim, role_map, default_role, join_members, trust_email,
	sso_only, break_glass, session_seconds, created_at, updated_at)
VALUES (@tenant_id, @issuer, @client_id, sqlc.narg('client_secret'), @role_claim, @role_map, @default_role, @join_members, @trust_email,
	@sso_only, sqlc.narg('break_glass'), @session_seconds, now(), now())
ON CONFLICT (tenant_id) DO UPDATE SET issuer = excluded.issuer, client_id = excluded.client_id, client_secret = excluded.client_secret,
	role_claim = excluded.role_claim, role_map = excluded.role_map, default_role = excluded.default_role,
	join_members = excluded.join_members, trust_email = excluded.trust_email, sso_only = excluded.sso_only,
	break_glass = excluded.break_glass, session_seconds = excluded.session_seconds, updated_at = now();

-- name: DeleteSSO :execrows
DELETE FROM sso_connections WHERE tenant_id = @tenant_id;

-- name: ListDomains :many
SELECT * FROM sso_domains WHERE tenant_id = @tenant_id ORDER BY domain;

-- name: InsertDomain :execrows
INSERT INTO sso_domains (tenant_id, domain, proof, created_at) VALUES (@tenant_id, @domain, @proof, now()) ON CONFLICT DO NOTHING;

-- name: DeleteDomain :execrows
DELETE FROM sso_domains WHERE tenant_id = @tenant_id AND domain = @domain;

-- name: DomainHolder :one
-- Which tenant a domain is verified for, as the console role.
SELECT * FROM sso_domains WHERE domain = @domain AND verified_at IS NOT NULL FOR UPDATE;

-- name: VerifyDomain :execrows
UPDATE sso_domains SET verified_at = now() WHERE tenant_id = @tenant_id AND domain = @domain;

-- name: UnverifyDomain :exec
UPDATE sso_domains SET verified_at = NULL WHERE tenant_id = @tenant_id AND domain = @domain;

-- name: DomainIsVerified :one
SELECT EXISTS (SELECT FROM sso_domains WHERE tenant_id = @tenant_id AND domain = @domain AND verified_at IS NOT NULL)::boolean AS found;

-- name: SSOOfDomain :one
-- Runs before any tenant is known. Zero: no tenant has verified the domain and set up a provider.
SELECT coalesce(posthorn.sso_of_domain(@domain), '00000000-0000-0000-0000-000000000000')::uuid AS tenant_id;

-- name: FindIdentity :one
SELECT i.person_id, p.email, (p.disabled_at IS NOT NULL)::boolean AS disabled FROM sso_identities i JOIN people p ON p.id = i.person_id
WHERE i.tenant_id = @tenant_id AND i.subject = @subject;

-- name: HasIdentity :one
SELECT EXISTS (SELECT FROM sso_identities WHERE tenant_id = @tenant_id AND person_id = @person_id)::boolean AS found;

-- name: PutIdentity :exec
INSERT INTO sso_identities (tenant_id, subject, person_id, role_gap, created_at, seen_at)
VALUES (@tenant_id, @subject, @person_id, @role_gap, now(), now())
ON CONFLICT (tenant_id, subject) DO UPDATE SET role_gap = excluded.role_gap, seen_at = now();

-- name: DeleteIdentity :execrows
-- The provider's account of a person in one tenant. The next sign-in links the person again.
DELETE FROM sso_identities WHERE tenant_id = @tenant_id AND person_id = @person_id;

-- name: UnlinkPerson :many
-- In the tenants of which the person is a member: if the person was removed, the row has the removal.
WITH unlinked AS (
	DELETE FROM sso_identities i
	WHERE i.person_id = @person_id AND EXISTS (SELECT FROM memberships m WHERE m.tenant_id = i.tenant_id AND m.person_id = i.person_id)
	RETURNING i.tenant_id, i.person_id
)
SELECT m.tenant_id, m.id FROM unlinked u JOIN memberships m ON m.tenant_id = u.tenant_id AND m.person_id = u.person_id;

-- name: DeleteIdentities :exec
DELETE FROM sso_identities WHERE tenant_id = @tenant_id;

-- name: MemberOfPerson :one
SELECT id, role FROM memberships WHERE tenant_id = @tenant_id AND person_id = @person_id;

-- name: InvitedAs :one
SELECT id, role FROM invitations WHERE tenant_id = @tenant_id AND email = @email AND expires_at > now();

-- name: OwnersForBreakGlass :many
-- The owners who can enter without the provider: they have a password.
SELECT m.id, p.name, p.email, (p.totp_at IS NOT NULL)::boolean AS has_totp FROM memberships m JOIN people p ON p.id = m.person_id
WHERE m.tenant_id = @tenant_id AND m.role = 'owner' AND p.disabled_at IS NULL AND p.password <> 'none'
ORDER BY p.email;

-- name: EndSSOSessions :execrows
-- The sessions that a provider's logout token names: one by its id, or all of an account. A session without the
-- provider's id is found by the account. Sessions without a tenant are those of operators.
DELETE FROM sessions WHERE sso_subject IS NOT NULL AND sso_tenant IS NOT DISTINCT FROM sqlc.narg('tenant_id')::uuid
	AND (@subject::text = '' OR sso_subject = @subject)
	AND (@sid::text = '' OR sso_sid = @sid OR sso_sid IS NULL AND @subject <> '');

-- name: EndSSOSessionsOf :exec
-- Of a person, or of an operator.
DELETE FROM sessions WHERE sso_subject IS NOT NULL
	AND (person_id = @owner_id OR operator_id = @owner_id);

-- name: EndSessionsOfSSO :execrows
DELETE FROM sessions WHERE sso_tenant = @tenant_id;

-- name: FindOperatorBySubject :one
SELECT * FROM operators WHERE sso_issuer = @issuer AND sso_subject = @subject;

-- name: LinkOperator :execrows
-- No row: the operator is linked to another account of the provider.
UPDATE operators SET sso_issuer = @issuer, sso_subject = @subject
WHERE id = @id AND (sso_subject IS NULL OR sso_issuer IS DISTINCT FROM @issuer OR sso_subject = @subject);

-- name: UnlinkOperator :execrows
-- No row: the operator is not linked.
UPDATE operators SET sso_issuer = NULL, sso_subject = NULL WHERE id = @id AND sso_subject IS NOT NULL;
