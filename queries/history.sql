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
WITH parts AS (
	DELETE FROM history_parts p WHERE p.tenant_id = @tenant_id AND p.day = @day RETURNING p.file_id
), expunges AS (
	UPDATE history_expunges x SET written = true WHERE x.tenant_id = @tenant_id AND x.day = @day
)
UPDATE history_files f SET dirty = true WHERE f.id IN (SELECT p.file_id FROM parts p);

-- name: ForgetHistoryOfTenant :exec
-- The books say how many deliveries leave with them.
WITH parts AS (
	DELETE FROM history_parts p WHERE p.tenant_id = @tenant_id RETURNING p.day, p.file_id, p.gone, p.counts
), booked AS (
	UPDATE books b SET purged = b.purged + s.n
	FROM (SELECT p.day, sum((p.counts ->> 'deliveries')::bigint) AS n FROM parts p WHERE p.gone GROUP BY p.day) s
	WHERE b.tenant_id = @tenant_id AND b.day = s.day
)
UPDATE history_files f SET dirty = true WHERE f.id IN (SELECT p.file_id FROM parts p);

-- name: HistoryIsPurged :exec
-- The files without a deleted tenant's rows are published, and the old ones are deleted.
UPDATE books SET purged_at = now() WHERE tenant_id = @tenant_id AND purged > 0 AND purged_at IS NULL;

-- name: PurgedOf :one
-- How many deliveries in storage a deleted tenant had.
SELECT coalesce(sum(b.purged), 0)::bigint AS n FROM books b WHERE b.tenant_id = @tenant_id;

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
		SELECT least(
			(SELECT p.day FROM history_parts p JOIN history_days x ON x.tenant_id = p.tenant_id AND x.day = p.day JOIN tenants t ON t.id = p.tenant_id
			WHERE p.file_id IS NULL AND x.state = 'stored' AND t.state <> 'deleted' AND (x.failed_at IS NULL OR x.failed_at < now() - make_interval(secs => @seconds))
			ORDER BY p.day LIMIT 1),
			(SELECT x.day FROM history_days x JOIN tenants t ON t.id = x.tenant_id
			WHERE x.lines AND x.state = 'stored' AND t.state <> 'deleted' AND (x.failed_at IS NULL OR x.failed_at < now() - make_interval(secs => @seconds))
			ORDER BY x.day LIMIT 1)))
	AND (h.lines OR EXISTS (SELECT FROM history_parts p WHERE p.tenant_id = h.tenant_id AND p.day = h.day AND p.file_id IS NULL))
	AND (h.failed_at IS NULL OR h.failed_at < now() - make_interval(secs => @seconds))
ORDER BY h.tenant_id LIMIT sqlc.arg('limit')::int;

-- name: HasHistoryLines :one
-- Whether a day has objects of lines, or had some when their rows began to be written into files.
SELECT EXISTS (SELECT FROM history_days h WHERE h.tenant_id = @tenant_id AND h.day = @day AND (h.lines
	OR EXISTS (SELECT FROM history_parts p WHERE p.tenant_id = h.tenant_id AND p.day = h.day AND p.file_id IS NULL)))::boolean AS has;

-- name: SetHistoryLines :exec
UPDATE history_days SET lines = @lines WHERE tenant_id = @tenant_id AND day = @day AND lines <> @lines;

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

-- name: MoveHistoryPart :one
-- A part's rows are in another file now, without the data of expunged events. 0: the part has changed.
WITH old AS (
	SELECT p.bytes FROM history_parts p
	WHERE p.tenant_id = @tenant_id AND p.day = @day AND p.low = @low AND p.file_id IS NOT DISTINCT FROM sqlc.narg('old_file')::uuid AND p.lines = @old_lines
	FOR UPDATE
), moved AS (
	UPDATE history_parts p SET file_id = @file_id, object = @object, places = @places, digest = '', lines = @lines, size = @size, bytes = @bytes
	FROM old WHERE p.tenant_id = @tenant_id AND p.day = @day AND p.low = @low
	RETURNING 1
), day AS (
	UPDATE history_days h SET bytes = h.bytes - old.bytes + @bytes FROM old WHERE h.tenant_id = @tenant_id AND h.day = @day
), expunges AS (
	UPDATE history_expunges x SET written = true FROM old
	WHERE x.tenant_id = @tenant_id AND x.day = @day AND x.low = @low AND x.event_id = ANY(@expunged::uuid[])
)
SELECT count(*) FROM moved;

-- name: ShareHistoryOf :many
-- The days that can have events, or replays of them, in storage. They stay where they are until the transaction ends.
SELECT h.day FROM history_days h
WHERE h.tenant_id = @tenant_id AND h.state <> 'back' AND (h.day = ANY(@days::date[])
	OR h.day >= @since::date AND EXISTS (SELECT FROM history_parts p WHERE p.tenant_id = h.tenant_id AND p.day = h.day AND p.others && @events::uuid[]))
ORDER BY h.day FOR SHARE OF h;

-- name: ExpungeStored :many
-- Has the parts in storage of some events, or of replays of them, written again without their data. Of a part that the
-- transaction doesn't hold, held is false.
WITH asked AS (
	INSERT INTO history_expunges AS x (tenant_id, day, low, event_id)
	SELECT p.tenant_id, p.day, p.low, u.event_id
	FROM history_parts p CROSS JOIN ROWS FROM (unnest(@events::uuid[]), unnest(@created::timestamptz[])) AS u(event_id, created_at)
	WHERE p.tenant_id = @tenant_id AND p.gone AND (u.created_at >= p.low AND u.created_at < p.high OR p.others @> ARRAY[u.event_id])
	ON CONFLICT DO NOTHING
	RETURNING x.day
)
SELECT DISTINCT a.day, (a.day = ANY(@held_days::date[]))::boolean AS held FROM asked a ORDER BY a.day;

-- name: ExpungesOfPart :many
-- Events whose data was expunged, and which the files of a part still have.
SELECT event_id FROM history_expunges WHERE tenant_id = @tenant_id AND day = @day AND low = @low AND NOT written ORDER BY event_id;

-- name: DirtyExpungedFiles :exec
-- Files with data that was expunged are to be written again.
UPDATE history_files f SET dirty = true
FROM history_expunges x JOIN history_parts p ON p.tenant_id = x.tenant_id AND p.day = x.day AND p.low = x.low
WHERE NOT x.written AND p.gone AND f.id = p.file_id AND NOT f.dirty;

-- name: EndExpunges :many
-- Expunges whose data no object holds any more, by day. A file stays dirty until its objects are deleted.
WITH ended AS (
	DELETE FROM history_expunges x WHERE x.written
		AND NOT EXISTS (SELECT FROM history_files f WHERE f.day = x.day AND f.dirty)
		AND NOT EXISTS (SELECT FROM history_days h WHERE h.tenant_id = x.tenant_id AND h.day = x.day AND h.lines)
		AND NOT EXISTS (SELECT FROM large_payloads l WHERE l.tenant_id = x.tenant_id AND l.event_id = x.event_id)
	RETURNING x.tenant_id, x.day, x.event_id
)
SELECT e.tenant_id, e.day, count(DISTINCT e.event_id) AS events FROM ended e GROUP BY e.tenant_id, e.day ORDER BY e.tenant_id, e.day;

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
-- The tenant's days, newest first, with how many events' data is still to be expunged from their files.
SELECT sqlc.embed(h), (SELECT count(DISTINCT x.event_id) FROM history_expunges x WHERE x.tenant_id = h.tenant_id AND x.day = h.day) AS expunging
FROM history_days h WHERE h.tenant_id = @tenant_id AND h.day < @before::date ORDER BY h.day DESC LIMIT sqlc.arg('limit')::int;

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

-- name: StoredPart :one
-- The digest of a part's lines, if its rows are in storage.
SELECT p.lines FROM history_parts p WHERE p.tenant_id = @tenant_id AND p.day = @day AND p.low = @low AND p.gone;

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

-- name: EventsThere :many
-- Those of some events, created between two moments, that are in the table.
SELECT e.id FROM events e WHERE e.tenant_id = @tenant_id AND e.created_at >= @low AND e.created_at < @high AND e.id = ANY(@ids::uuid[]);

-- name: DropLentEvents :exec
-- Events of a part that are in the table too, since they were replayed from storage. Their part comes back with them.
DELETE FROM events e WHERE e.tenant_id = @tenant_id AND e.created_at >= @low AND e.created_at < @high;

-- name: DropTheseEvents :exec
-- Events that a transaction has borrowed.
DELETE FROM events e WHERE e.tenant_id = @tenant_id AND e.created_at >= @low AND e.created_at < @high AND e.id = ANY(@ids::uuid[]);

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
