-- Signing secrets, sealed. A secret is live until its overlap ends; the current one has no end.

-- name: InsertSecret :one
INSERT INTO endpoint_secrets (tenant_id, id, endpoint_id, sealed, public_key, hint, created_at)
VALUES (@tenant_id, @id, @endpoint_id, @sealed, sqlc.narg('public_key'), @hint, @created_at)
RETURNING *;

-- name: LiveSecrets :many
-- Newest first, as signatures are listed.
SELECT * FROM endpoint_secrets
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND (expires_at IS NULL OR expires_at > now())
ORDER BY id DESC;

-- name: ExpireSecrets :exec
-- The secret that signed until now also signs during the overlap. A secret that was retired before keeps its end. An
-- overlap of zero ends everything at once: it is for a leak.
UPDATE endpoint_secrets SET expires_at = CASE
	WHEN @overlap_seconds::int = 0 THEN least(expires_at, now())
	ELSE coalesce(expires_at, now() + make_interval(secs => @overlap_seconds)) END
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND id <> @kept;

-- name: DropEndedSecrets :exec
DELETE FROM endpoint_secrets WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND expires_at <= now();

-- name: DropSecrets :exec
DELETE FROM endpoint_secrets WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: RequestSecretCheck :one
-- No row: it is not live. A request replaces an earlier one.
UPDATE endpoint_secrets SET check_state = 'pending', checked_at = clock_timestamp(), check_due_at = now(), check_status = NULL, check_detail = ''
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND id = @id AND (expires_at IS NULL OR expires_at > now())
RETURNING *;

-- name: ForgetSecretChecks :exec
-- Another receiver, or requests that are signed in another way, have accepted nothing yet.
UPDATE endpoint_secrets SET check_state = NULL, checked_at = NULL, check_due_at = NULL, check_status = NULL, check_detail = ''
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND check_state IS NOT NULL;

-- name: DropSecret :exec
DELETE FROM endpoint_secrets WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND id = @id;

-- name: SetSecretEnd :one
-- Null: it has no end.
UPDATE endpoint_secrets SET expires_at = now() + make_interval(secs => sqlc.narg('overlap_seconds')::int)
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND id = @id
RETURNING *;
