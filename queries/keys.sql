-- API keys. Only the hash is stored; the text is shown once.

-- name: FindKey :one
-- Which key is this? Runs before any tenant is known.
SELECT k.id::uuid AS id, k.tenant_id::uuid AS tenant_id, k.scopes::text[] AS scopes, k.expires_at::timestamptz AS expires_at,
	k.revoked::boolean AS revoked, k.tenant_state::text AS tenant_state
FROM posthorn.find_key(@hash) AS k;

-- name: KeysRevision :one
-- As long as this number is unchanged, every cached result of FindKey and TenantState is still true.
SELECT n FROM revisions WHERE name = 'keys';

-- name: BumpKeysRevision :exec
UPDATE revisions SET n = n + 1 WHERE name = 'keys';

-- name: InsertKey :exec
INSERT INTO api_keys (id, tenant_id, name, prefix, hash, scopes, created_at, expires_at)
VALUES (@id, sqlc.narg('tenant_id'), @name, @prefix, @hash, @scopes, @created_at, sqlc.narg('expires_at'));

-- name: GetKey :one
SELECT * FROM api_keys WHERE tenant_id = @tenant_id AND id = @id;

-- name: ListKeys :many
SELECT * FROM api_keys WHERE tenant_id = @tenant_id AND id > @low AND id < @high
ORDER BY CASE WHEN @newest::boolean THEN id END DESC, id LIMIT sqlc.arg('limit');

-- name: CountLiveKeys :one
SELECT count(*) FROM api_keys
WHERE tenant_id = @tenant_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now());

-- name: RevokeKey :execrows
-- No row: there is no such key, or it is revoked already.
UPDATE api_keys SET revoked_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND revoked_at IS NULL;

-- name: ListPlatformKeys :many
-- The keys that can act for any tenant, the live ones first. There are few.
SELECT * FROM api_keys WHERE tenant_id IS NULL
ORDER BY (revoked_at IS NOT NULL OR coalesce(expires_at <= now(), false)), id DESC LIMIT sqlc.arg('limit');

-- name: GetPlatformKey :one
SELECT * FROM api_keys WHERE tenant_id IS NULL AND id = @id FOR UPDATE;

-- name: RevokePlatformKey :execrows
UPDATE api_keys SET revoked_at = now() WHERE tenant_id IS NULL AND id = @id AND revoked_at IS NULL;

-- name: TouchKeys :exec
SELECT posthorn.touch_keys(@ids::uuid[]);
