-- A tenant's move to another home (db/move). Statements that name a table, a publication or a subscription at run time are in Go.

-- name: MoveColumns :many
-- The columns of each table, without generated ones.
SELECT c.relname::text AS name, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)::text AS columns
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition GROUP BY c.relname;

-- name: MoveSource :one
-- What a home's server must offer so that another can subscribe to a tenant's rows.
SELECT current_setting('server_version_num')::int AS version, current_setting('wal_level')::text AS wal_level,
	(r.rolsuper OR r.rolreplication AND r.rolbypassrls AND has_database_privilege(current_database(), 'CREATE')
		AND pg_has_role(c.relowner, 'USAGE'))::boolean AS capable,
	(current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_catalog.pg_replication_slots))::int AS slots,
	(current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_catalog.pg_stat_replication))::int AS senders
FROM pg_catalog.pg_roles r, pg_catalog.pg_class c WHERE r.rolname = current_user AND c.oid = 'posthorn.tenants'::regclass;

-- name: MoveTarget :one
-- What a home's server must offer so that it can subscribe. Before version 16 only a superuser can.
SELECT current_setting('server_version_num')::int AS version,
	(r.rolsuper OR r.rolbypassrls AND has_database_privilege(current_database(), 'CREATE') AND pg_has_role(c.relowner, 'USAGE')
		AND EXISTS (SELECT FROM pg_catalog.pg_roles s WHERE s.rolname = 'pg_create_subscription' AND pg_has_role(s.oid, 'USAGE')))::boolean AS capable,
	least(current_setting('max_logical_replication_workers')::int, current_setting('max_worker_processes')::int - 1,
		current_setting('max_replication_slots')::int)::int AS workers
FROM pg_catalog.pg_roles r, pg_catalog.pg_class c WHERE r.rolname = current_user AND c.oid = 'posthorn.tenants'::regclass;

-- name: MoveSlots :one
-- How many replication slots of this database have a name, or begin with one.
SELECT count(*) FROM pg_catalog.pg_replication_slots WHERE database = current_database() AND slot_name LIKE @name::text;

-- name: DropMoveSlots :exec
-- Ends who uses them, and fails if one is still in use (55006), or was dropped by who used it in between (42704).
SELECT CASE WHEN active_pid IS NOT NULL THEN pg_terminate_backend(active_pid) END, pg_drop_replication_slot(slot_name)
FROM pg_catalog.pg_replication_slots WHERE database = current_database() AND slot_name LIKE @name::text;

-- name: MoveSubscription :one
-- The subscription of a move: how many tables it has, how many of them are copied, and how often it has failed.
SELECT s.oid::bigint AS id, (SELECT count(*) FROM pg_catalog.pg_subscription_rel r WHERE r.srsubid = s.oid) AS tables,
	(SELECT count(*) FROM pg_catalog.pg_subscription_rel r WHERE r.srsubid = s.oid AND r.srsubstate = 'r') AS copied,
	coalesce((SELECT x.apply_error_count + x.sync_error_count FROM pg_catalog.pg_stat_subscription_stats x WHERE x.subid = s.oid), 0)::bigint AS failed
FROM pg_catalog.pg_subscription s
WHERE s.subname = @name::text AND s.subdbid = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database());

-- name: MarkMove :one
INSERT INTO tenant_move_marks (tenant_id, n) VALUES (@tenant_id, 1) ON CONFLICT (tenant_id) DO UPDATE SET n = tenant_move_marks.n + 1 RETURNING n;

-- name: MoveMark :one
SELECT coalesce((SELECT n FROM tenant_move_marks WHERE tenant_id = @tenant_id), 0)::bigint AS n;

-- name: DeleteMoveMark :exec
DELETE FROM tenant_move_marks WHERE tenant_id = @tenant_id;

-- name: SetMoveState :exec
UPDATE tenant_moves SET state = @state, closed_at = CASE WHEN @state = 'closed' THEN coalesce(closed_at, clock_timestamp()) ELSE closed_at END
WHERE tenant_id = @tenant_id;

-- name: SetMoveKey :exec
UPDATE tenant_moves SET link_key = @link_key WHERE tenant_id = @tenant_id;

-- name: MoveHashes :one
-- The hashes of the keys and tokens that a tenant has given to others.
SELECT ARRAY(SELECT k.hash FROM api_keys k WHERE k.tenant_id = @tenant_id UNION ALL SELECT p.hash FROM portal_links p WHERE p.tenant_id = @tenant_id
	UNION ALL SELECT i.hash FROM invitations i WHERE i.tenant_id = @tenant_id UNION ALL SELECT b.hash FROM inboxes b WHERE b.tenant_id = @tenant_id)::bytea[] AS hashes,
	(SELECT t.external_id FROM tenants t WHERE t.id = @tenant_id) AS external_id;

-- name: PutMovedTenant :exec
INSERT INTO moved_tenants (tenant_id, home, external_id, hashes) VALUES (@tenant_id, @home, @external_id, @hashes)
ON CONFLICT (tenant_id) DO UPDATE SET home = excluded.home, external_id = excluded.external_id, hashes = excluded.hashes, moved_at = clock_timestamp();

-- name: DeleteMovedTenants :exec
DELETE FROM moved_tenants WHERE tenant_id = @tenant_id;

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
ON CONFLICT (tenant_id) DO UPDATE SET direction = excluded.direction, home = excluded.home, state = 'copying', open_lanes = '{}', keep = false, link_key = NULL,
	started_at = now(), closed_at = NULL, done_at = NULL WHERE tenant_moves.direction <> excluded.direction OR tenant_moves.state = 'done';

-- name: MoveTenant :one
-- Whether it has what belongs to this home: data of events in object storage, and days of its history there.
SELECT t.external_id, EXISTS (SELECT FROM large_payloads l WHERE l.tenant_id = t.id) AS large,
	EXISTS (SELECT FROM history_days h WHERE h.tenant_id = t.id AND h.state <> 'back') AS stored
FROM tenants t WHERE t.id = @id AND t.state <> 'deleted';

-- name: MoveConflicts :one
-- Whether this home has a tenant of the same id or external id.
SELECT EXISTS (SELECT FROM tenants WHERE id = @id AND (state <> 'deleted' OR erased_at IS NULL)
	OR external_id = sqlc.narg('external_id') AND state <> 'deleted' AND id <> @id) AS conflicts;

-- name: ReopenMove :exec
-- The tenant works again, and what was copied is still to be deleted.
UPDATE tenant_moves SET state = 'copying', open_lanes = '{}', closed_at = NULL WHERE tenant_id = @tenant_id;

-- name: NoteStoppedMoves :exec
-- Notes since when no command runs a move: it holds a lock for as long as it runs (TryMoverLock).
UPDATE tenant_moves m SET stopped_at = CASE WHEN m.stopped_at IS NULL THEN @at::timestamptz END
FROM (SELECT u.tenant_id, EXISTS (SELECT FROM pg_catalog.pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1
		AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
		AND (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended(u.tenant_id::text, 19)) AS runs
	FROM tenant_moves u WHERE u.state <> 'done') x
WHERE m.tenant_id = x.tenant_id AND (m.stopped_at IS NULL) <> x.runs;

-- name: UnfinishedMoves :many
-- Moves that have not come to their end, with how much of the log this server keeps for each.
SELECT m.tenant_id, coalesce(t.name, '')::text AS name, m.direction, m.home, (m.state <> 'copying')::boolean AS closed, m.started_at, m.stopped_at,
	coalesce((SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn) FROM pg_catalog.pg_replication_slots s
		WHERE s.database = current_database() AND s.slot_name = 'posthorn_move_' || replace(m.tenant_id::text, '-', '')), 0)::bigint AS kept_log
FROM tenant_moves m LEFT JOIN tenants t ON t.id = m.tenant_id WHERE m.state <> 'done' ORDER BY m.started_at LIMIT 100;

-- name: DeleteMove :exec
DELETE FROM tenant_moves WHERE tenant_id = @tenant_id;

-- name: HoldMoveLanes :exec
-- Holds the tenant's open lanes, and remembers which they were.
WITH open AS (UPDATE lanes SET held = true, rev = rev + 1 WHERE tenant_id = @tenant_id AND NOT held AND NOT deleted RETURNING endpoint_id)
UPDATE tenant_moves m SET open_lanes = m.open_lanes || ARRAY(SELECT endpoint_id FROM open) WHERE m.tenant_id = @tenant_id;

-- name: CountOwnedLanes :one
SELECT count(*) FROM lanes WHERE tenant_id = @tenant_id AND owner IS NOT NULL;

-- name: ReleaseMoveLanes :exec
UPDATE lanes l SET held = false, rev = l.rev + 1 FROM tenant_moves m, endpoints e
WHERE m.tenant_id = @tenant_id AND l.endpoint_id = ANY (m.open_lanes) AND NOT l.deleted AND e.id = l.endpoint_id AND e.status = 'active';

-- name: CloseMovingTenant :exec
UPDATE tenants SET moving = true, routing_version = routing_version + 1 WHERE id = @id AND NOT moving;

-- name: OpenMovingTenant :exec
UPDATE tenants SET moving = false, routing_version = routing_version + 1 WHERE id = @id AND moving;

-- name: MoveUnfolded :one
-- Whether the ledger has entries of the tenant.
SELECT EXISTS (SELECT FROM ledger WHERE @tenant_id::uuid = ANY (book_tenant)
	OR stat_endpoint && ARRAY(SELECT e.id FROM endpoints e WHERE e.tenant_id = @tenant_id)) AS unfolded;

-- name: FinishMove :exec
UPDATE tenant_moves SET state = 'done', keep = @keep, done_at = now() WHERE tenant_id = @tenant_id;

-- name: DeleteMovedEndpoints :exec
UPDATE endpoints SET deleted_at = now() WHERE tenant_id = @tenant_id AND deleted_at IS NULL;

-- name: CancelMovedJobs :exec
UPDATE bulk_jobs SET state = 'canceled', ended_at = now() WHERE tenant_id = @tenant_id AND state IN ('queued', 'running', 'sampled');

-- name: CloseMovedTenant :exec
UPDATE tenants SET state = 'deleted', deleted_at = now(), erased_at = NULL, moving = false, settings = '{}', routing_version = routing_version + 1
WHERE id = @id AND state <> 'deleted';
