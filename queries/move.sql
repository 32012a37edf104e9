-- A tenant's move to another home (db/move). Statements that name a table at run time, with the columns that the other home has, are in Go.

-- name: MoveColumns :many
-- The columns of each table, without generated ones.
SELECT c.relname::text AS name, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)::text AS columns
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition GROUP BY c.relname;

-- name: TryMoverLock :one
-- The session keeps the lock, so that one command moves a tenant.
SELECT pg_try_advisory_lock(hashtextextended((@tenant_id::uuid)::text, 19))::boolean AS locked;

-- name: LockMove :exec
-- The triggers of the tenant share this lock (functions/on_move.sql).
SELECT pg_advisory_xact_lock(hashtextextended((@tenant_id::uuid)::text, 18));

-- name: MoveState :one
SELECT coalesce((SELECT state FROM tenant_moves WHERE tenant_id = @tenant_id AND direction = @direction AND home = @home), '')::text AS state;

-- name: StartMove :exec
INSERT INTO tenant_moves (tenant_id, direction, home, state) VALUES (@tenant_id, @direction, @home, 'copying')
ON CONFLICT (tenant_id) DO UPDATE SET direction = excluded.direction, home = excluded.home, state = 'copying', open_lanes = '{}', keep = false,
	started_at = now(), closed_at = NULL, done_at = NULL WHERE tenant_moves.direction <> excluded.direction OR tenant_moves.state = 'done';

-- name: MoveTenant :one
SELECT external_id FROM tenants WHERE id = @id AND state <> 'deleted';

-- name: MoveStored :one
-- Whether days of the tenant's history are in storage.
SELECT EXISTS (SELECT FROM history_days WHERE tenant_id = @tenant_id AND state <> 'back') AS stored;

-- name: MoveConflicts :one
-- Whether this home has a tenant of the same id or external id.
SELECT EXISTS (SELECT FROM tenants WHERE id = @id AND (state <> 'deleted' OR erased_at IS NULL)
	OR external_id = sqlc.narg('external_id') AND state <> 'deleted' AND id <> @id) AS conflicts;

-- name: DeleteMove :exec
DELETE FROM tenant_moves WHERE tenant_id = @tenant_id;

-- name: DeleteMoveBooks :exec
DELETE FROM books WHERE tenant_id = @tenant_id;

-- name: AddMovePart :execrows
-- No row: this part has arrived.
INSERT INTO tenant_move_parts (tenant_id, part, n) VALUES (@tenant_id, @part, 0) ON CONFLICT DO NOTHING;

-- name: CountMovePart :exec
UPDATE tenant_move_parts SET n = @n WHERE tenant_id = @tenant_id AND part = @part;

-- name: DeleteMoveParts :exec
DELETE FROM tenant_move_parts WHERE tenant_id = @tenant_id;

-- name: CountMoveChanges :one
SELECT count(*) FROM (SELECT FROM tenant_move_changes WHERE tenant_id = @tenant_id LIMIT sqlc.arg('limit')) x;

-- name: MoveChanges :many
SELECT n, at, k1, k2 FROM tenant_move_changes WHERE tenant_id = @tenant_id AND tbl = @tbl;

-- name: DeleteCopiedChanges :exec
DELETE FROM tenant_move_changes WHERE n = ANY (@copied::bigint[]);

-- name: DeleteMoveChanges :exec
DELETE FROM tenant_move_changes WHERE tenant_id = @tenant_id;

-- name: HoldMoveLanes :exec
-- Holds the tenant's open lanes, and remembers which they were.
WITH open AS (UPDATE lanes SET held = true, rev = rev + 1 WHERE tenant_id = @tenant_id AND NOT held AND NOT deleted RETURNING endpoint_id)
UPDATE tenant_moves m SET open_lanes = m.open_lanes || ARRAY(SELECT endpoint_id FROM open) WHERE m.tenant_id = @tenant_id;

-- name: CountOwnedLanes :one
SELECT count(*) FROM lanes WHERE tenant_id = @tenant_id AND owner IS NOT NULL;

-- name: MoveOpenLanes :one
SELECT open_lanes FROM tenant_moves WHERE tenant_id = @tenant_id;

-- name: ReleaseMoveLanes :exec
UPDATE lanes l SET held = false, rev = l.rev + 1 FROM tenant_moves m, endpoints e
WHERE m.tenant_id = @tenant_id AND l.endpoint_id = ANY (m.open_lanes) AND NOT l.deleted AND e.id = l.endpoint_id AND e.status = 'active';

-- name: CloseMovingTenant :exec
UPDATE tenants SET moving = true, routing_version = routing_version + 1 WHERE id = @id AND NOT moving;

-- name: OpenMovingTenant :exec
UPDATE tenants SET moving = false, routing_version = routing_version + 1 WHERE id = @id AND moving;

-- name: CloseMove :exec
UPDATE tenant_moves SET state = 'closed', closed_at = coalesce(closed_at, clock_timestamp()) WHERE tenant_id = @tenant_id;

-- name: MoveClosedAt :one
-- No row: the move was finished before.
SELECT closed_at FROM tenant_moves WHERE tenant_id = @tenant_id AND state = 'closed';

-- name: MoveUnfolded :one
-- Whether the ledger has entries of the tenant.
SELECT EXISTS (SELECT FROM ledger WHERE @tenant_id::uuid = ANY (book_tenant)
	OR stat_endpoint && ARRAY(SELECT e.id FROM endpoints e WHERE e.tenant_id = @tenant_id)) AS unfolded;

-- name: NextQueueNumber :one
SELECT nextval('queue_seq')::bigint AS seq;

-- name: ShiftLaneMarks :exec
UPDATE lanes SET drop_below = drop_below + @shift::bigint WHERE tenant_id = @tenant_id AND drop_below > 0;

-- name: ShiftJobMarks :exec
UPDATE bulk_jobs SET horizon = horizon + @shift::bigint WHERE tenant_id = @tenant_id;

-- name: FinishMove :exec
UPDATE tenant_moves SET state = 'done', keep = @keep, done_at = now() WHERE tenant_id = @tenant_id;

-- name: DeleteMovedEndpoints :exec
UPDATE endpoints SET deleted_at = now() WHERE tenant_id = @tenant_id AND deleted_at IS NULL;

-- name: CancelMovedJobs :exec
UPDATE bulk_jobs SET state = 'canceled', ended_at = now() WHERE tenant_id = @tenant_id AND state IN ('queued', 'running', 'sampled');

-- name: DeleteMovedTenant :exec
UPDATE tenants SET state = 'deleted', deleted_at = now(), erased_at = NULL, moving = false, settings = '{}', routing_version = routing_version + 1
WHERE id = @id AND state <> 'deleted';
