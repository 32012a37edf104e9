-- Read-only links to one delivery.

-- name: InsertShare :one
INSERT INTO delivery_shares (tenant_id, id, hash, delivery_id, brand, accent, created_at, expires_at)
VALUES (@tenant_id, @id, @hash, @delivery_id, @brand, @accent, @created_at, now() + make_interval(secs => @lives::int))
RETURNING *;

-- name: OpenShares :many
-- The links to a delivery that can be opened, newest first.
SELECT * FROM delivery_shares
WHERE tenant_id = @tenant_id AND delivery_id = @delivery_id AND revoked_at IS NULL AND expires_at > now()
ORDER BY id DESC LIMIT sqlc.arg('limit');

-- name: RevokeShare :execrows
-- No row: there is no such link to this delivery, or it is revoked already.
UPDATE delivery_shares SET revoked_at = now() WHERE tenant_id = @tenant_id AND id = @id AND delivery_id = @delivery_id AND revoked_at IS NULL;

-- name: FindShare :one
-- No row: the link never was, has expired, or was revoked, or its tenant is not served.
SELECT s.* FROM delivery_shares s
WHERE s.tenant_id = @tenant_id AND s.hash = @hash AND s.revoked_at IS NULL AND s.expires_at > now();

-- name: MarkShareOpened :execrows
-- No row: it was opened before.
UPDATE delivery_shares SET opened_at = now() WHERE tenant_id = @tenant_id AND id = @id AND opened_at IS NULL;

-- name: ForgetOldShares :execrows
DELETE FROM delivery_shares WHERE expires_at < now() - interval '1 day';
