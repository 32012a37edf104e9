-- Feeds (docs/adr/0026-feeds.md): the log of a tenant's events and the consumers that read it by a cursor.

-- name: BeginLog :exec
-- In the transaction that changes the tenant's routes, so that an event of the new version is logged.
INSERT INTO feed_logs (tenant_id, base, system, since_version)
SELECT @tenant_id, 0, (SELECT c.system_identifier FROM pg_control_system() c), t.routing_version FROM tenants t WHERE t.id = @tenant_id
ON CONFLICT (tenant_id) DO NOTHING;

-- name: LogOf :one
-- watermark is the position at which a read stops: every transaction with a smaller number has ended. here is false if
-- the database was restored or the tenant moved, until RebaseLog.
SELECT l.base, l.since_version, l.dropped, l.began_at, coalesce(l.settled, -1)::bigint AS settled,
	(l.base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint)::bigint AS watermark,
	(l.system = (SELECT c.system_identifier FROM pg_control_system() c))::boolean AS here
FROM feed_logs l WHERE l.tenant_id = @tenant_id;

-- name: RebaseLog :exec
-- In another database system transactions have other numbers. Positions go on above the last one.
UPDATE feed_logs l SET system = (SELECT c.system_identifier FROM pg_control_system() c),
	base = 1 - pg_current_xact_id()::text::bigint + greatest(l.dropped, l.settled, (SELECT r.position FROM event_log r
		WHERE r.tenant_id = @tenant_id ORDER BY r.position DESC LIMIT 1))
WHERE l.tenant_id = @tenant_id AND l.system <> (SELECT c.system_identifier FROM pg_control_system() c);

-- name: SettleLog :exec
-- After the transaction that began the log. Whoever stored an event of an older version of the routes had its number
-- before this one.
UPDATE feed_logs SET settled = base + pg_current_xact_id()::text::bigint WHERE tenant_id = @tenant_id AND settled IS NULL;

-- name: InsertLog :exec
-- A row for each tenant of a transaction: events from first to last in the array. The base can't change meanwhile: it
-- changes before a process reads the tenant's routes.
INSERT INTO event_log (tenant_id, position, events)
SELECT u.tenant_id, l.base + pg_current_xact_id()::text::bigint, (@events::uuid[])[u.first:u.last]
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@firsts::int[]), unnest(@lasts::int[])) AS u(tenant_id, first, last)
JOIN feed_logs l ON l.tenant_id = u.tenant_id;

-- name: ReadLog :many
-- The events after a place, in the order of the log: those of so many rows, and at most so many.
SELECT l.position, u.n::int AS n, u.id::uuid AS id
FROM (
	SELECT r.position, r.events FROM event_log r
	WHERE r.tenant_id = @tenant_id AND r.position >= @from_position AND r.position < @watermark
	ORDER BY r.position LIMIT @rows::int
) l
CROSS JOIN LATERAL unnest(l.events) WITH ORDINALITY AS u(id, n)
WHERE l.position > @from_position OR u.n > @from_index::int
ORDER BY l.position, u.n LIMIT sqlc.arg('limit')::int;

-- name: LogEntry :one
-- The event at a place; zero: the row has fewer.
SELECT coalesce(r.events[@index::int], '00000000-0000-0000-0000-000000000000')::uuid AS event FROM event_log r WHERE r.tenant_id = @tenant_id AND r.position = @position;

-- name: LogRowFrom :one
-- The first row at a position or above it, below the watermark.
SELECT r.position, r.at, cardinality(r.events)::int AS events FROM event_log r
WHERE r.tenant_id = @tenant_id AND r.position >= @position AND r.position < @watermark ORDER BY r.position LIMIT 1;

-- name: LastLogRow :one
SELECT r.position, cardinality(r.events)::int AS events, r.events[cardinality(r.events)]::uuid AS event FROM event_log r
WHERE r.tenant_id = @tenant_id AND r.position < @watermark ORDER BY r.position DESC LIMIT 1;

-- name: LogBehind :one
-- How many events lie behind a place, up to a number of them, and when the first of them was accepted.
SELECT coalesce(sum(x.n), 0)::int AS events, coalesce(min(x.at), now())::timestamptz AS oldest
FROM (
	SELECT CASE WHEN r.position = @position THEN cardinality(r.events) - @index::int ELSE cardinality(r.events) END AS n, r.at FROM event_log r
	WHERE r.tenant_id = @tenant_id AND r.position >= @position AND r.position < @watermark
	ORDER BY r.position LIMIT sqlc.arg('limit')::int
) x WHERE x.n > 0;

-- name: ReadOlder :many
-- Events from before the log, by id. At most a page of rows is read: those that are in the log are among them, since the
-- processes of a server have different clocks.
SELECT e.id, e.routing_version FROM events e
WHERE e.tenant_id = @tenant_id AND e.created_at BETWEEN @low_at::timestamptz AND @high_at::timestamptz
	AND (e.created_at, e.id) > (@low_at, @low::uuid)
ORDER BY e.created_at, e.id LIMIT sqlc.arg('limit')::int;

-- name: NewestOfLogs :many
-- For all tenants that somebody waits for: the newest position that can be read.
SELECT u.id::uuid AS tenant_id, x.position
FROM unnest(@tenants::uuid[]) AS u(id)
JOIN feed_logs l ON l.tenant_id = u.id
CROSS JOIN LATERAL (
	SELECT r.position FROM event_log r
	WHERE r.tenant_id = u.id AND r.position < l.base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint
	ORDER BY r.position DESC LIMIT 1
) x;

-- name: CountConsumers :one
SELECT count(*) FROM feed_consumers WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: InsertConsumer :one
INSERT INTO feed_consumers (tenant_id, endpoint_id, name, key_id, cursor)
VALUES (@tenant_id, @endpoint_id, @name, @key_id, @cursor)
ON CONFLICT (tenant_id, endpoint_id, name) DO NOTHING
RETURNING *;

-- name: GetConsumer :one
SELECT * FROM feed_consumers WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND name = @name;

-- name: ListConsumers :many
SELECT * FROM feed_consumers WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id ORDER BY name;

-- name: MoveConsumer :one
-- Acknowledges, or rewinds.
UPDATE feed_consumers SET cursor = @cursor, acked_at = now()
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND name = @name
RETURNING *;

-- name: MoveConsumerFrom :exec
-- Moves a consumer over events that did not match, if it has acknowledged everything before.
UPDATE feed_consumers SET cursor = @cursor, acked_at = now()
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND name = @name AND cursor = @seen;

-- name: TouchConsumer :exec
UPDATE feed_consumers SET read_at = now() WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND name = @name;

-- name: SetConsumerKey :one
UPDATE feed_consumers SET key_id = @key_id WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND name = @name
RETURNING *;

-- name: DeleteConsumer :one
DELETE FROM feed_consumers WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND name = @name RETURNING *;

-- name: LogsToTrim :many
-- Logs and when their tenant's retention ends.
SELECT l.tenant_id, (now() - make_interval(days => t.retention_days + 1))::timestamptz AS before FROM feed_logs l JOIN tenants t ON t.id = l.tenant_id
WHERE l.tenant_id > @after ORDER BY l.tenant_id LIMIT sqlc.arg('limit')::int;

-- name: TrimLog :one
-- Deletes the oldest rows of a log that are older than a moment.
WITH old AS MATERIALIZED (
	SELECT r.position, bool_and(r.at < @before::timestamptz) OVER (ORDER BY r.position) AS ended
	FROM (SELECT x.position, x.at FROM event_log x WHERE x.tenant_id = @tenant_id ORDER BY x.position LIMIT sqlc.arg('limit')::int) r
), gone AS (
	DELETE FROM event_log r WHERE r.tenant_id = @tenant_id AND r.position = ANY (ARRAY(SELECT o.position FROM old o WHERE o.ended))
	RETURNING r.position
), noted AS (
	UPDATE feed_logs l SET dropped = greatest(l.dropped, (SELECT max(g.position) FROM gone g))
	WHERE l.tenant_id = @tenant_id AND EXISTS (SELECT FROM gone)
)
SELECT count(*)::int FROM gone;

-- name: LockConsumer :one
SELECT * FROM feed_consumers WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND name = @name FOR UPDATE;

-- name: RevokeConsumerKeys :exec
UPDATE api_keys k SET revoked_at = now()
WHERE k.tenant_id = @tenant_id::uuid AND k.revoked_at IS NULL AND k.id = ANY (ARRAY(SELECT c.key_id FROM feed_consumers c
	WHERE c.tenant_id = @tenant_id AND c.endpoint_id = @endpoint_id AND c.key_id IS NOT NULL OFFSET 0));

-- name: ForgetConsumers :exec
DELETE FROM feed_consumers WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: FeedsToAssess :many
-- Active feeds of all tenants, and when the newest reader of each last read.
SELECT e.tenant_id, e.id, e.url, e.description, greatest(e.status_at, e.created_at, (SELECT max(greatest(c.read_at, c.created_at)) FROM feed_consumers c
	WHERE c.tenant_id = e.tenant_id AND c.endpoint_id = e.id))::timestamptz AS read_at
FROM endpoints e JOIN tenants t ON t.id = e.tenant_id
WHERE e.kind = 'feed' AND e.status = 'active' AND e.deleted_at IS NULL AND t.state = 'active' AND NOT t.moving AND e.id > @after
ORDER BY e.id LIMIT sqlc.arg('limit')::int;

-- name: SetLate :exec
UPDATE feed_consumers SET late_since = sqlc.narg('late_since')
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND name = @name AND late_since IS DISTINCT FROM sqlc.narg('late_since');

-- name: LateConsumers :many
SELECT c.endpoint_id, c.name, c.late_since, e.url, e.description FROM feed_consumers c
JOIN endpoints e ON e.tenant_id = c.tenant_id AND e.id = c.endpoint_id
WHERE c.tenant_id = @tenant_id AND c.late_since IS NOT NULL AND e.status = 'active' AND e.deleted_at IS NULL
ORDER BY c.late_since LIMIT sqlc.arg('limit')::int;

-- name: IsFeedHalted :one
-- The tenant is suspended, or an operator has paused what goes to the feed.
SELECT (t.state <> 'active' OR posthorn.paused_by(t.id, @endpoint_id, @url) IS NOT NULL)::boolean FROM tenants t WHERE t.id = @tenant_id;

-- name: PutStart :exec
-- An endpoint that catches up already does so from another place.
INSERT INTO endpoint_starts (tenant_id, endpoint_id, cursor) VALUES (@tenant_id, @endpoint_id, @cursor)
ON CONFLICT (tenant_id, endpoint_id) DO UPDATE SET cursor = excluded.cursor, settled = NULL, started_at = excluded.started_at;

-- name: IsStarting :one
SELECT EXISTS (SELECT 1 FROM endpoint_starts WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id)::boolean;

-- name: Starts :many
-- Endpoints of all tenants that catch up.
SELECT s.tenant_id, s.endpoint_id FROM endpoint_starts s JOIN tenants t ON t.id = s.tenant_id
WHERE t.state = 'active' AND NOT t.moving AND (s.tenant_id, s.endpoint_id) > (@tenant_id::uuid, @endpoint_id::uuid)
ORDER BY s.tenant_id, s.endpoint_id LIMIT sqlc.arg('limit')::int;

-- name: LockStart :one
-- No row: another worker has it, or the endpoint has caught up.
SELECT * FROM endpoint_starts WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id FOR UPDATE SKIP LOCKED;

-- name: MoveStart :exec
UPDATE endpoint_starts SET cursor = @cursor, settled = @settled WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: DeleteStart :exec
DELETE FROM endpoint_starts WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: NumberInLog :one
-- A position above those of all transactions that have their number.
SELECT (l.base + pg_current_xact_id()::text::bigint)::bigint FROM feed_logs l WHERE l.tenant_id = @tenant_id;

-- name: CountWaiting :one
-- How many deliveries of an endpoint wait, up to a number.
SELECT count(*) FROM (
	SELECT 1 FROM queue q WHERE q.tenant_id = @tenant_id AND q.endpoint_id = @endpoint_id AND q.state IN (0, 1, 2, 3) LIMIT sqlc.arg('limit')::int
) x;

-- name: ShareLogs :exec
-- Before the versions of routes are compared again: who changes the routes of an endpoint that has caught up waits for
-- this transaction, or this one sees the change.
SELECT 1 FROM feed_logs WHERE tenant_id = ANY(@tenants::uuid[]) ORDER BY tenant_id FOR KEY SHARE;

-- name: HoldLog :one
-- No transaction that stores events of the tenant is open, and none begins to.
SELECT 1 FROM feed_logs WHERE tenant_id = @tenant_id FOR UPDATE;

-- name: FeedRules :many
-- What the feeds of tenants take. A paused feed keeps its events.
SELECT e.tenant_id, e.event_types, e.channels, coalesce(e.filter, '')::text AS filter, coalesce(e.payload_version, '')::text AS payload_version
FROM endpoints e WHERE e.tenant_id = ANY(@tenants::uuid[]) AND e.kind = 'feed' AND e.status <> 'disabled' AND e.deleted_at IS NULL
LIMIT 1000;
