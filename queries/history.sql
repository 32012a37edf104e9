-- Closed days of a tenant in an object store (docs/adr/0023-history-elsewhere.md). Rows are read and written as JSON, one line each,
-- so that a column added later needs no change here. All but the tenant's own two run as the console role.

-- name: HoldHistory :one
-- The lease of one process: a moment until which no other works. No row: another has it. @held is the moment of the last call, for
-- who has it already.
UPDATE chores SET done_at = now() + make_interval(secs => @seconds)
WHERE name = @name AND (done_at <= now() OR done_at = @held::timestamptz)
RETURNING done_at;

-- name: ReleaseHistory :exec
UPDATE chores SET done_at = now() WHERE name = @name AND done_at = @held;

-- name: BeginHistory :execrows
-- Some closed days that are not stored yet: of tenants that do not move, within their retention, without waiting
-- deliveries.
INSERT INTO history_days (tenant_id, day)
SELECT b.tenant_id, b.day FROM books b JOIN tenants t ON t.id = b.tenant_id
WHERE b.day < @before::date AND b.day >= (SELECT p.days_from FROM platform p) AND b.day > (now() AT TIME ZONE 'UTC')::date - t.retention_days
	AND (b.accepted > 0 OR b.events > 0) AND t.state <> 'deleted' AND NOT t.moving
	AND NOT EXISTS (SELECT FROM tenant_moves m WHERE m.tenant_id = b.tenant_id AND m.state <> 'done')
	AND NOT EXISTS (SELECT FROM history_days h WHERE h.tenant_id = b.tenant_id AND h.day = b.day)
	AND NOT EXISTS (SELECT FROM queue q WHERE q.tenant_id = b.tenant_id
		AND q.delivery_id >= posthorn.first_id(b.day::timestamp AT TIME ZONE 'UTC') AND q.delivery_id < posthorn.first_id((b.day + 1)::timestamp AT TIME ZONE 'UTC'))
ORDER BY b.day LIMIT sqlc.arg('limit')::int
ON CONFLICT DO NOTHING;

-- name: CountHistory :one
-- For operators: how many days of tenants are stored, are on their way, and failed last for another reason than that something waits.
SELECT (SELECT count(*) FROM history_days h WHERE h.state = 'stored') AS stored,
	(SELECT count(*) FROM history_days h WHERE h.state NOT IN ('stored', 'back')) AS at_work,
	(SELECT count(*) FROM history_days h WHERE h.failed_at IS NOT NULL AND NOT starts_with(h.failure, 'waiting: ')) AS failed;

-- name: RestHistory :execrows
-- Days that were brought back for long enough are stored again.
UPDATE history_days h SET state = 'exporting' FROM tenants t
WHERE t.id = h.tenant_id AND t.state <> 'deleted' AND h.state = 'back' AND h.back_at < now() - make_interval(days => @days::int)
	AND NOT EXISTS (SELECT FROM tenant_moves m WHERE m.tenant_id = h.tenant_id AND m.state <> 'done')
	AND NOT EXISTS (SELECT FROM queue q WHERE q.tenant_id = h.tenant_id
		AND q.delivery_id >= posthorn.first_id(h.day::timestamp AT TIME ZONE 'UTC') AND q.delivery_id < posthorn.first_id((h.day + 1)::timestamp AT TIME ZONE 'UTC'));

-- name: NextHistory :one
-- The next work: restores that people wait for first, then exports. Failed work is tried again after a while.
SELECT h.tenant_id, h.day, h.state FROM history_days h JOIN tenants t ON t.id = h.tenant_id
WHERE h.state IN ('exporting', 'leaving', 'returning') AND t.state <> 'deleted' AND (h.failed_at IS NULL OR h.failed_at < now() - make_interval(secs => @seconds))
	AND NOT EXISTS (SELECT FROM tenant_moves m WHERE m.tenant_id = h.tenant_id AND m.state <> 'done')
ORDER BY h.state = 'returning' DESC, h.failed_at NULLS FIRST, h.day LIMIT 1;

-- name: ExpiredHistory :many
-- Stored days that are older than their tenant keeps anything.
SELECT h.tenant_id, h.day FROM history_days h JOIN tenants t ON t.id = h.tenant_id
WHERE h.day < (now() AT TIME ZONE 'UTC')::date - t.retention_days AND t.state <> 'deleted'
ORDER BY h.day LIMIT sqlc.arg('limit')::int;

-- name: LockHistory :one
-- No row: the day is not in this state, or its tenant was deleted or moves.
SELECT h.* FROM history_days h JOIN tenants t ON t.id = h.tenant_id
WHERE h.tenant_id = @tenant_id AND h.day = @day AND h.state = @state AND t.state <> 'deleted'
	AND NOT EXISTS (SELECT FROM tenant_moves m WHERE m.tenant_id = h.tenant_id AND m.state <> 'done')
FOR UPDATE OF h;

-- name: StayHome :one
-- A tenant's move and its history exclude each other: the move holds this lock exclusively.
SELECT pg_try_advisory_xact_lock_shared(hashtextextended((@tenant_id::uuid)::text, 19)) AS stays;

-- name: SetHistory :exec
UPDATE history_days SET state = @state, failed_at = NULL, failure = '',
	stored_at = CASE WHEN @state = 'stored' THEN now() ELSE stored_at END, back_at = CASE WHEN @state = 'back' THEN coalesce(back_at, now()) ELSE back_at END
WHERE tenant_id = @tenant_id AND day = @day;

-- name: SetHistoryCounts :exec
UPDATE history_days SET counts = @counts, bytes = @bytes WHERE tenant_id = @tenant_id AND day = @day;

-- name: FailHistory :exec
UPDATE history_days SET failed_at = now(), failure = @failure WHERE tenant_id = @tenant_id AND day = @day;

-- name: ForgetHistory :exec
DELETE FROM history_days h WHERE h.tenant_id = @tenant_id AND h.day = @day;

-- name: ForgetHistoryParts :exec
-- The rows of the parts stay in their files until these are written again without them.
WITH parts AS (DELETE FROM history_parts p WHERE p.tenant_id = @tenant_id AND p.day = @day RETURNING p.file_id)
UPDATE history_files f SET dirty = true WHERE f.id IN (SELECT p.file_id FROM parts p);

-- name: ForgetHistoryOfTenant :exec
WITH parts AS (DELETE FROM history_parts p WHERE p.tenant_id = @tenant_id RETURNING p.file_id)
UPDATE history_files f SET dirty = true WHERE f.id IN (SELECT p.file_id FROM parts p);

-- name: NextHistoryOfDay :many
-- More days of tenants that can be exported together with one: the same day, in the order of their tenants.
SELECT h.tenant_id, h.day, h.state FROM history_days h JOIN tenants t ON t.id = h.tenant_id
WHERE h.state = 'exporting' AND h.day = @day AND t.state <> 'deleted' AND (h.failed_at IS NULL OR h.failed_at < now() - make_interval(secs => @seconds))
	AND NOT EXISTS (SELECT FROM tenant_moves m WHERE m.tenant_id = h.tenant_id AND m.state <> 'done')
ORDER BY h.tenant_id LIMIT sqlc.arg('limit')::int;

-- name: OldHistory :many
-- Days in storage of the oldest day that has objects of lines, in the order of their tenants.
SELECT h.tenant_id, h.day, h.state FROM history_days h
WHERE h.state = 'stored' AND h.day = (
		SELECT p.day FROM history_parts p JOIN history_days x ON x.tenant_id = p.tenant_id AND x.day = p.day JOIN tenants t ON t.id = p.tenant_id
		WHERE p.file_id IS NULL AND x.state = 'stored' AND t.state <> 'deleted' AND (x.failed_at IS NULL OR x.failed_at < now() - make_interval(secs => @seconds))
		ORDER BY p.day LIMIT 1)
	AND EXISTS (SELECT FROM history_parts p WHERE p.tenant_id = h.tenant_id AND p.day = h.day AND p.file_id IS NULL)
	AND (h.failed_at IS NULL OR h.failed_at < now() - make_interval(secs => @seconds))
ORDER BY h.tenant_id LIMIT sqlc.arg('limit')::int;

-- name: AddHistoryFile :one
-- Before its objects are written, so that no object is unknown.
INSERT INTO history_files (id, day, objects, version) SELECT @id, @day, @objects, t.version + 1 FROM history_table t RETURNING version;

-- name: HistoryFileIsWritten :exec
-- All its rows are of parts.
WITH t AS (UPDATE history_table SET changes = changes + 1)
UPDATE history_files f SET dirty = false, objects = @objects WHERE f.id = @id;

-- name: DirtyHistoryFile :one
SELECT * FROM history_files WHERE dirty AND id > @after ORDER BY id LIMIT 1;

-- name: HistoryPartsOfFile :many
SELECT * FROM history_parts WHERE file_id = @file_id ORDER BY tenant_id, low;

-- name: MoveHistoryPart :execrows
-- A part's rows are in another file now. No row: the part has changed.
UPDATE history_parts SET file_id = @file_id, object = @object, places = @places, digest = '', bytes = @bytes
WHERE tenant_id = @tenant_id AND day = @day AND low = @low AND file_id IS NOT DISTINCT FROM sqlc.narg('old_file')::uuid AND lines = @lines;

-- name: DropHistoryFile :exec
DELETE FROM history_files WHERE id = @id;

-- name: NextHistoryVersion :one
-- No row: nothing has changed since the last metadata.
UPDATE history_table SET version = version + 1 WHERE changes <> published RETURNING uuids, version, changes;

-- name: HistoryFiles :many
-- Those that are published.
SELECT * FROM history_files WHERE NOT dirty ORDER BY day, id;

-- name: HistoryIsPublished :exec
UPDATE history_table SET published = @changes WHERE published < @changes;

-- name: HasHistory :one
-- Whether a tenant has a day that is not all in the tables, or objects of one.
SELECT EXISTS (SELECT FROM history_days WHERE tenant_id = @tenant_id)::boolean AS has;

-- name: HasMovedOut :one
-- Whether a deleted tenant lives on in another home.
SELECT EXISTS (SELECT FROM tenant_moves WHERE tenant_id = @tenant_id AND direction = 'out' AND state = 'done')::boolean AS moved;

-- name: HistoryParts :many
SELECT * FROM history_parts WHERE tenant_id = @tenant_id AND day = @day ORDER BY low;

-- name: KeepHistoryPart :exec
WITH old AS (
	UPDATE history_files f SET dirty = true FROM history_parts p WHERE p.tenant_id = @tenant_id AND p.day = @day AND p.low = @low AND f.id = p.file_id
)
INSERT INTO history_parts (tenant_id, day, low, high, object, digest, lines, n, bytes, size, counts, others, file_id, places)
VALUES (@tenant_id, @day, @low, @high, @object, '', @lines, @n, @bytes, @size, @counts, @others, @file_id, @places)
ON CONFLICT (tenant_id, day, low) DO UPDATE SET high = excluded.high, object = excluded.object, digest = excluded.digest, lines = excluded.lines,
	n = excluded.n, bytes = excluded.bytes, size = excluded.size, counts = excluded.counts, others = excluded.others, file_id = excluded.file_id,
	places = excluded.places;

-- name: MarkHistoryPart :exec
UPDATE history_parts SET gone = @gone WHERE tenant_id = @tenant_id AND day = @day AND low = @low;

-- name: ReadAsHistory :exec
-- The text of a row must be the same in every session.
SELECT set_config('timezone', 'UTC', true), set_config('bytea_output', 'hex', true), set_config('extra_float_digits', '1', true), set_config('datestyle', 'ISO', true);

-- name: HistoryPartEnd :one
-- Where the part that begins at a moment ends, so that it holds about @rows deliveries and events, and about @bytes of
-- data.
WITH d AS (
	SELECT count(*) AS n, max(x.created_at) AS last FROM (
		SELECT v.created_at FROM deliveries v WHERE v.tenant_id = @tenant_id AND v.created_at >= @low::timestamptz AND v.created_at < @high::timestamptz
		ORDER BY v.created_at, v.id LIMIT sqlc.arg('limit')::int) x
), s AS (
	SELECT v.created_at AS at, sum(coalesce(octet_length(v.data), 0)) OVER (ORDER BY v.created_at, v.id) AS so_far FROM events v
	WHERE v.tenant_id = @tenant_id AND v.created_at >= @low AND v.created_at < @high ORDER BY v.created_at, v.id LIMIT sqlc.arg('limit')
), e AS (
	SELECT count(*) AS n, max(s.at) AS last, min(s.at) FILTER (WHERE s.so_far >= @bytes::bigint) AS full_at FROM s
)
SELECT min(x.at)::timestamptz AS ends FROM (
	SELECT @high::timestamptz AS at
	UNION ALL SELECT d.last + interval '1 millisecond' FROM d WHERE d.n = sqlc.arg('limit')::int
	UNION ALL SELECT e.last + interval '1 millisecond' FROM e WHERE e.n = sqlc.arg('limit')::int
	UNION ALL SELECT e.full_at + interval '1 millisecond' FROM e
) x;

-- name: HistoryEvents :many
SELECT e.type, row_to_json(e)::text AS line FROM events e
WHERE e.tenant_id = @tenant_id AND e.created_at >= @low AND e.created_at < @high ORDER BY e.created_at, e.id;

-- name: HistoryDeliveries :many
SELECT d.id, d.event_id, d.endpoint_id, d.event_type, d.status, d.settled_at, row_to_json(d)::text AS line FROM deliveries d
WHERE d.tenant_id = @tenant_id AND d.created_at >= @low AND d.created_at < @high ORDER BY d.created_at, d.id;

-- name: HistoryAttempts :many
SELECT row_to_json(a)::text AS line FROM attempts a
WHERE a.tenant_id = @tenant_id AND a.delivery_id = ANY(@deliveries::uuid[]) AND a.created_at >= @since AND a.created_at <= @until
ORDER BY a.delivery_id, a.created_at, a.id;

-- name: HistoryDeadLetters :many
SELECT row_to_json(l)::text AS line FROM dead_letters l
WHERE l.tenant_id = @tenant_id AND l.delivery_id = ANY(@deliveries::uuid[]) ORDER BY l.delivery_id;

-- name: HistoryCancellations :many
SELECT row_to_json(c)::text AS line FROM cancellations c
WHERE c.tenant_id = @tenant_id AND c.delivery_id = ANY(@deliveries::uuid[]) ORDER BY c.delivery_id;

-- name: LockHistoryRows :exec
-- The rows stay locked until they are deleted: people archive and expunge.
SELECT (SELECT count(*) FROM (SELECT 1 FROM events e WHERE e.tenant_id = @tenant_id AND e.created_at >= @low AND e.created_at < @high FOR UPDATE) x),
	(SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE d.tenant_id = @tenant_id AND d.created_at >= @low AND d.created_at < @high FOR UPDATE) y);

-- name: LockHistoryAttempts :exec
SELECT (SELECT count(*) FROM (SELECT 1 FROM attempts a WHERE a.tenant_id = @tenant_id AND a.delivery_id = ANY(@deliveries::uuid[])
		AND a.created_at >= @since AND a.created_at <= @until FOR UPDATE) x),
	(SELECT count(*) FROM (SELECT 1 FROM dead_letters l WHERE l.tenant_id = @tenant_id AND l.delivery_id = ANY(@deliveries) FOR UPDATE) y),
	(SELECT count(*) FROM (SELECT 1 FROM cancellations c WHERE c.tenant_id = @tenant_id AND c.delivery_id = ANY(@deliveries) FOR UPDATE) z);

-- name: NeedsHistory :one
-- Whether a delivery that waits belongs to a part, or sends an event of it.
SELECT (EXISTS (SELECT FROM queue q WHERE q.tenant_id = @tenant_id AND q.delivery_id >= @first AND q.delivery_id < @last)
	OR EXISTS (SELECT FROM queue q WHERE q.tenant_id = @tenant_id AND q.event_id >= @first AND q.event_id < @last))::boolean AS needed;

-- name: DeleteHistory :one
-- The rows of a part.
WITH a AS (
	DELETE FROM attempts x WHERE x.tenant_id = @tenant_id AND x.delivery_id = ANY(@deliveries::uuid[]) AND x.created_at >= @since AND x.created_at <= @until RETURNING 1
), l AS (
	DELETE FROM dead_letters x WHERE x.tenant_id = @tenant_id AND x.delivery_id = ANY(@deliveries) RETURNING 1
), c AS (
	DELETE FROM cancellations x WHERE x.tenant_id = @tenant_id AND x.delivery_id = ANY(@deliveries) RETURNING 1
), d AS (
	DELETE FROM deliveries x WHERE x.tenant_id = @tenant_id AND x.created_at >= @low AND x.created_at < @high RETURNING 1
), e AS (
	DELETE FROM events x WHERE x.tenant_id = @tenant_id AND x.created_at >= @low AND x.created_at < @high RETURNING 1
)
SELECT ((SELECT count(*) FROM a) + (SELECT count(*) FROM l) + (SELECT count(*) FROM c) + (SELECT count(*) FROM d)
	+ (SELECT count(*) FROM e))::bigint AS n;

-- name: InsertHistory :one
SELECT posthorn.history_in(@name, @lines::text[], @tenant_id, @low, @high)::bigint AS n;

-- name: ListHistory :many
-- The tenant's days, newest first.
SELECT * FROM history_days WHERE tenant_id = @tenant_id AND day < @before::date ORDER BY day DESC LIMIT sqlc.arg('limit')::int;

-- name: DaysInStorage :many
-- For the pages of lists: days with rows that are not in the tables, newest first.
SELECT day, state, (failed_at IS NOT NULL)::boolean AS delayed,
	coalesce((counts ->> 'events')::bigint, 0)::bigint AS events, coalesce((counts ->> 'deliveries')::bigint, 0)::bigint AS deliveries
FROM history_days
WHERE tenant_id = @tenant_id AND state IN ('leaving', 'stored', 'returning') AND day BETWEEN @since::date AND @until::date
ORDER BY day DESC LIMIT sqlc.arg('limit')::int;

-- name: AskHistory :one
-- A day that is stored, or on its way, is brought back; one that is back stays for longer. No row: the day was never exported.
UPDATE history_days SET state = CASE WHEN state = 'back' THEN state ELSE 'returning' END, back_at = now()
WHERE tenant_id = @tenant_id AND day = @day RETURNING *;

-- name: StoredDayOf :one
-- The first of some events whose rows are in the store, by the events or by a replay of them.
SELECT p.day FROM history_parts p
WHERE p.tenant_id = @tenant_id AND p.gone
	AND (p.others && @events::uuid[] OR EXISTS (SELECT FROM unnest(@created::timestamptz[]) AS u(at) WHERE u.at >= p.low AND u.at < p.high))
ORDER BY p.day LIMIT 1;

-- name: IsDifferenceAccepted :one
-- Whether an operator accepted the discrepancy of a tenant's day as it is.
SELECT EXISTS (SELECT FROM book_differences b WHERE b.tenant_id = @tenant_id AND b.day = @day AND NOT b.open)::boolean AS accepted;

-- name: StoredDaySince :one
-- The first day in storage with anything that was created at a moment or later.
SELECT p.day FROM history_parts p WHERE p.tenant_id = @tenant_id AND p.gone AND p.high > @since::timestamptz ORDER BY p.day LIMIT 1;

-- name: HistoryFileByID :one
SELECT * FROM history_files WHERE id = @id;

-- name: HistoryIsWell :exec
UPDATE history_days SET failed_at = NULL, failure = '' WHERE tenant_id = @tenant_id AND day = @day AND failed_at IS NOT NULL;

-- name: HistoryChanges :exec
-- A published file is to be left out of the metadata.
UPDATE history_table SET changes = changes + 1;

-- name: StoredPartAt :one
-- The part in storage of which an id of a moment is.
SELECT * FROM history_parts p
WHERE p.tenant_id = @tenant_id AND p.gone AND p.day = @day AND p.low <= @created::timestamptz AND p.high > @created;

-- name: StoredPartsOf :many
-- The parts of a day that are in storage, oldest first.
SELECT * FROM history_parts p WHERE p.tenant_id = @tenant_id AND p.day = @day AND p.gone ORDER BY p.low;

-- name: ShareHistory :one
-- Keeps a day where it is for the rest of the transaction.
SELECT h.state FROM history_days h WHERE h.tenant_id = @tenant_id AND h.day = @day FOR SHARE;

-- name: IsPartStored :one
SELECT EXISTS (SELECT FROM history_parts p WHERE p.tenant_id = @tenant_id AND p.day = @day AND p.low = @low AND p.gone AND p.lines = @lines)::boolean AS stored;

-- name: EventsThere :many
-- Those of some events, created between two moments, that are in the table.
SELECT e.id FROM events e WHERE e.tenant_id = @tenant_id AND e.created_at >= @low AND e.created_at < @high AND e.id = ANY(@ids::uuid[]);

-- name: DropLentEvents :exec
-- Events of a part that are in the table too, since they were replayed from storage. Their part comes back with them.
DELETE FROM events e WHERE e.tenant_id = @tenant_id AND e.created_at >= @low AND e.created_at < @high;

-- name: MarkReplayedLetters :exec
-- Replays of deliveries in storage are noted in the database alone.
UPDATE dead_letters l SET replayed = true
WHERE l.tenant_id = @tenant_id AND l.delivery_id = ANY(@deliveries::uuid[]) AND NOT l.replayed
	AND EXISTS (SELECT FROM replays r WHERE r.tenant_id = @tenant_id AND r.replay_of = l.delivery_id);

-- name: DropLent :exec
-- Deliveries of a part that a transaction has borrowed.
WITH a AS (
	DELETE FROM attempts x WHERE x.tenant_id = @tenant_id AND x.delivery_id = ANY(@deliveries::uuid[]) AND x.created_at >= @since::timestamptz
), l AS (
	DELETE FROM dead_letters x WHERE x.tenant_id = @tenant_id AND x.delivery_id = ANY(@deliveries)
), c AS (
	DELETE FROM cancellations x WHERE x.tenant_id = @tenant_id AND x.delivery_id = ANY(@deliveries)
), d AS (
	DELETE FROM deliveries x WHERE x.tenant_id = @tenant_id AND x.created_at >= @low::timestamptz AND x.created_at < @high::timestamptz AND x.id = ANY(@deliveries)
)
SELECT 1;
