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

-- name: NoteEdit :exec
-- What waits for an edit of the endpoint's transformation becomes due (ReleaseEdited).
UPDATE lanes SET edited_up_to = 0 WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: EditedLanes :many
-- Lanes whose endpoint's transformation was edited, each once in a round.
SELECT endpoint_id FROM lanes WHERE edited_up_to IS NOT NULL ORDER BY endpoint_id LIMIT sqlc.arg('limit');

-- name: LockEdited :one
-- The session that holds the row releases the next chunk.
SELECT edited_up_to::bigint AS edited_up_to FROM lanes WHERE endpoint_id = @endpoint_id AND edited_up_to IS NOT NULL FOR UPDATE SKIP LOCKED;

-- name: ReleaseEdited :many
-- The next rows of a lane that wait for an edit, oldest first, become due. A row that another transaction has locked is
-- moved by that one.
WITH page AS (
	SELECT q.tenant_id, q.delivery_id FROM queue q
	WHERE q.state = 1 AND q.endpoint_id = @endpoint_id AND q.seq > @after::bigint AND q.due_at > now() + interval '100 years'
	ORDER BY q.seq LIMIT 1000 FOR UPDATE SKIP LOCKED
)
UPDATE queue q SET due_at = now() FROM page
WHERE q.tenant_id = page.tenant_id AND q.delivery_id = page.delivery_id RETURNING q.seq;

-- name: EditedUpTo :exec
UPDATE lanes SET edited_up_to = CASE WHEN @done::boolean THEN NULL ELSE @up_to::bigint END WHERE endpoint_id = @endpoint_id;

-- name: LockEdits :exec
-- An edit of one of these endpoints' transformations waits, or has ended: it changes the row too.
SELECT endpoint_id FROM lanes WHERE endpoint_id = ANY(@endpoints::uuid[]) ORDER BY endpoint_id FOR SHARE;

-- name: DueIfEdited :exec
-- Rows that were just put off until an edit, by a worker that did not know the newest version.
UPDATE queue q SET due_at = now()
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@deliveries::uuid[]), unnest(@endpoints::uuid[]), unnest(@versions::bigint[]))
	AS u(tenant_id, delivery_id, endpoint_id, version)
WHERE q.tenant_id = u.tenant_id AND q.delivery_id = u.delivery_id AND q.state = 1 AND q.due_at > now() + interval '100 years'
	AND EXISTS (SELECT FROM transformations t WHERE t.endpoint_id = u.endpoint_id AND t.routing_version > u.version);
