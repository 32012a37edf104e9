-- Where sealed values are kept, for the rotation of the master key: a pair of statements for each column. A value
-- starts with its version and the id of the key that sealed it, together @head (5 bytes). Values that start otherwise
-- are resealed. Rows are locked, so that a concurrent change waits and is not overwritten. Runs as the console role.

-- name: StaleEndpointSecrets :many
SELECT id, tenant_id, endpoint_id, sealed FROM endpoint_secrets
WHERE substring(sealed FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealEndpointSecret :exec
UPDATE endpoint_secrets SET sealed = @sealed WHERE tenant_id = @tenant_id AND id = @id;

-- name: StaleCustomHeaders :many
SELECT id, tenant_id, custom_headers FROM endpoints
WHERE custom_headers IS NOT NULL AND substring(custom_headers FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealCustomHeaders :exec
UPDATE endpoints SET custom_headers = @custom_headers WHERE tenant_id = @tenant_id AND id = @id;

-- name: StaleConnections :many
SELECT id, tenant_id, connection FROM endpoints
WHERE connection IS NOT NULL AND substring(connection FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealConnection :exec
UPDATE endpoints SET connection = @connection WHERE tenant_id = @tenant_id AND id = @id;

-- name: StaleSources :many
SELECT id, tenant_id, connection FROM sources
WHERE substring(connection FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealSource :exec
UPDATE sources SET connection = @connection WHERE tenant_id = @tenant_id AND id = @id;

-- name: StaleAlsoSecrets :many
SELECT id, tenant_id, also_secret FROM endpoints
WHERE also_secret IS NOT NULL AND substring(also_secret FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealAlsoSecret :exec
UPDATE endpoints SET also_secret = @also_secret WHERE tenant_id = @tenant_id AND id = @id;

-- name: StaleSigningKeys :many
SELECT id, tenant_id, sealed FROM signing_keys
WHERE substring(sealed FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealSigningKey :exec
UPDATE signing_keys SET sealed = @sealed WHERE tenant_id = @tenant_id AND id = @id;

-- name: StaleEgressProxies :many
SELECT tenant_id, sealed FROM egress_proxies
WHERE sealed IS NOT NULL AND substring(sealed FROM 1 FOR 5) <> @head::bytea ORDER BY tenant_id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealEgressProxy :exec
UPDATE egress_proxies SET sealed = @sealed WHERE tenant_id = @tenant_id;

-- name: StaleCredentials :many
SELECT id, tenant_id, credentials FROM endpoints
WHERE credentials IS NOT NULL AND substring(credentials FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealCredentials :exec
UPDATE endpoints SET credentials = @credentials WHERE tenant_id = @tenant_id AND id = @id;

-- name: StaleVariables :many
SELECT id, tenant_id, endpoint_id, variables FROM transformations
WHERE variables IS NOT NULL AND substring(variables FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealVariables :exec
UPDATE transformations SET variables = @variables WHERE tenant_id = @tenant_id AND id = @id;

-- name: StaleMails :many
SELECT id, tenant_id, sealed FROM mails
WHERE sealed IS NOT NULL AND substring(sealed FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealMail :exec
UPDATE mails SET sealed = @sealed WHERE id = @id;

-- name: StaleMailbox :many
SELECT id, sealed FROM mailbox WHERE substring(sealed FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealMailbox :exec
UPDATE mailbox SET sealed = @sealed WHERE id = @id;

-- name: StalePeopleSeeds :many
SELECT id, totp FROM people
WHERE totp IS NOT NULL AND substring(totp FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealPersonSeed :exec
UPDATE people SET totp = @totp WHERE id = @id;

-- name: StaleOperatorSeeds :many
SELECT id, totp FROM operators
WHERE totp IS NOT NULL AND substring(totp FROM 1 FOR 5) <> @head::bytea ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealOperatorSeed :exec
UPDATE operators SET totp = @totp WHERE id = @id;

-- name: StaleClientSecrets :many
SELECT tenant_id, client_secret FROM sso_connections
WHERE client_secret IS NOT NULL AND substring(client_secret FROM 1 FOR 5) <> @head::bytea ORDER BY tenant_id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealClientSecret :exec
UPDATE sso_connections SET client_secret = @client_secret WHERE tenant_id = @tenant_id;

-- name: StaleLinkKeys :many
SELECT tenant_id, link_key FROM tenant_moves
WHERE link_key IS NOT NULL AND substring(link_key FROM 1 FOR 5) <> @head::bytea ORDER BY tenant_id LIMIT sqlc.arg('limit') FOR UPDATE;

-- name: ResealLinkKey :exec
UPDATE tenant_moves SET link_key = @link_key WHERE tenant_id = @tenant_id;
