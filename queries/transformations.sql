-- Versions of endpoints' transformations.

-- name: InsertTransformation :exec
INSERT INTO transformations (tenant_id, id, endpoint_id, routing_version, transformation, variables)
VALUES (@tenant_id, @id, @endpoint_id, @routing_version, sqlc.narg('transformation'), sqlc.narg('variables'));

-- name: Transformations :many
-- Oldest first.
SELECT * FROM transformations WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id ORDER BY routing_version;

-- name: DropOldTransformations :exec
-- Beyond the newest ones. The oldest that stays holds for what those did.
WITH old AS (
	DELETE FROM transformations t
	WHERE t.tenant_id = @tenant_id AND t.endpoint_id = @endpoint_id AND t.routing_version <= (
		SELECT x.routing_version FROM transformations x WHERE x.tenant_id = @tenant_id AND x.endpoint_id = @endpoint_id
		ORDER BY x.routing_version DESC OFFSET sqlc.arg('keep')::int LIMIT 1)
	RETURNING t.routing_version
)
UPDATE transformations t SET routing_version = (SELECT max(old.routing_version) FROM old)
WHERE t.tenant_id = @tenant_id AND t.endpoint_id = @endpoint_id AND EXISTS (SELECT FROM old) AND t.routing_version = (
	SELECT min(x.routing_version) FROM transformations x
	WHERE x.tenant_id = @tenant_id AND x.endpoint_id = @endpoint_id AND x.routing_version > (SELECT max(old.routing_version) FROM old));

-- name: ForgetVariables :exec
-- Of a deleted endpoint.
UPDATE transformations SET variables = NULL WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND variables IS NOT NULL;

-- name: LaneTransformations :many
-- Oldest first.
SELECT * FROM transformations WHERE endpoint_id = ANY(@endpoints::uuid[]) ORDER BY endpoint_id, routing_version;

-- name: ReleaseTransformed :many
-- Rows of a lane that wait for an edit of its transformation, oldest first, become due.
WITH page AS (
	SELECT q.tenant_id, q.delivery_id FROM queue q
	WHERE q.state = 1 AND q.endpoint_id = @endpoint_id AND q.seq > @after::bigint AND q.due_at > now() + interval '100 years'
	ORDER BY q.seq LIMIT 1000 FOR UPDATE SKIP LOCKED
)
UPDATE queue q SET due_at = now() FROM page
WHERE q.tenant_id = page.tenant_id AND q.delivery_id = page.delivery_id RETURNING q.seq;
