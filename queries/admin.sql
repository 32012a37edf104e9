-- What operators and the command line read, across tenants. Runs as the console role.

-- name: SealedSamples :many
-- One secret for every master key in use (a sealed value begins with its version and its key's id), to see at start
-- that the configured keys open them all.
SELECT DISTINCT ON (substring(sealed FROM 1 FOR 5)) tenant_id, endpoint_id, sealed
FROM endpoint_secrets
WHERE expires_at IS NULL OR expires_at > now()
ORDER BY substring(sealed FROM 1 FOR 5), id DESC;

-- name: InsertOperator :execrows
-- No row: the address has an account already.
INSERT INTO operators (id, email, created_at) VALUES (@id, @email, @created_at)
ON CONFLICT (email) DO NOTHING;

-- name: ListTenantsWithoutMembers :many
-- Tenants that commands have made and that have no members, oldest first.
SELECT t.id FROM tenants t
WHERE t.state = 'active' AND NOT EXISTS (SELECT FROM memberships m WHERE m.tenant_id = t.id)
ORDER BY t.id LIMIT 100;
