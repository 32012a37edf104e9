-- The keys of signatures that receivers verify with a public key. The platform has its own under the tenant of zeros.

-- name: InsertSigningKey :one
INSERT INTO signing_keys (tenant_id, id, sealed, public_key, created_at, starts_at)
VALUES (@tenant_id, @id, @sealed, @public_key, now(), now() + make_interval(secs => @starts_in::int))
RETURNING *;

-- name: SigningKeys :many
-- Those that are published, newest first.
SELECT * FROM signing_keys WHERE tenant_id = @tenant_id AND (expires_at IS NULL OR expires_at > now()) ORDER BY id DESC;

-- name: RetireSigningKeys :exec
-- A key that has a successor already keeps its end.
UPDATE signing_keys SET expires_at = @expires_at::timestamptz WHERE tenant_id = @tenant_id AND id <> @kept AND expires_at IS NULL;

-- name: DropOtherSigningKeys :exec
DELETE FROM signing_keys WHERE tenant_id = @tenant_id AND id <> @kept;

-- name: DropEndedSigningKeys :exec
DELETE FROM signing_keys WHERE tenant_id = @tenant_id AND expires_at <= now();

-- name: BumpPublicLanes :exec
-- The owners of the lanes that sign with the tenant's keys read them again.
UPDATE lanes l SET rev = l.rev + 1 WHERE l.tenant_id = @tenant_id AND l.endpoint_id = ANY(ARRAY(
	SELECT e.id FROM endpoints e WHERE e.tenant_id = @tenant_id AND e.public_signature <> 'none' AND e.deleted_at IS NULL OFFSET 0));

-- name: LaneSigningKeys :many
-- The published keys of the tenants of some endpoints that sign with them, newest first.
SELECT k.* FROM signing_keys k
WHERE k.tenant_id = ANY(ARRAY(SELECT e.tenant_id FROM endpoints e WHERE e.id = ANY(@endpoints::uuid[]) AND e.public_signature <> 'none' OFFSET 0))
	AND (k.expires_at IS NULL OR k.expires_at > now())
ORDER BY k.tenant_id, k.id DESC;
