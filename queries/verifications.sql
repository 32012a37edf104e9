-- Verifications: a row requests one, a job of the worker sends it.

-- name: SupersedeVerifications :exec
UPDATE verifications SET state = 'superseded', done_at = now()
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND state = 'pending';

-- name: InsertVerification :one
INSERT INTO verifications (tenant_id, id, endpoint_id, challenge)
VALUES (@tenant_id, @id, @endpoint_id, @challenge)
RETURNING *;

-- name: LatestVerifications :many
SELECT DISTINCT ON (endpoint_id) * FROM verifications
WHERE tenant_id = @tenant_id AND endpoint_id = ANY(@endpoints::uuid[])
ORDER BY endpoint_id, id DESC;
