-- Bulk jobs: their rows, and what a chunk does to many deliveries or events in one transaction, under the role of its
-- tenant. Statements over deliveries and events read one day each, and state its bounds, so that partitions prune. A
-- transaction plans for its parameters and by index (PlanByIndex).

-- name: InsertBulkJob :one
INSERT INTO bulk_jobs (tenant_id, id, kind, filter, expected, exact, pace, position, asked_kind, asked_by, reason, created_at)
VALUES (@tenant_id, @id, @kind, @filter, @expected, @exact, sqlc.narg('pace'), @position, @asked_kind, @asked_by, @reason, @created_at)
RETURNING *;

-- name: GetBulkJob :one
SELECT * FROM bulk_jobs WHERE tenant_id = @tenant_id AND id = @id;

-- name: CountOpenBulkJobs :one
SELECT count(*) FROM bulk_jobs WHERE tenant_id = @tenant_id AND state IN ('queued', 'running', 'sampled');

-- name: ListBulkJobs :many
SELECT * FROM bulk_jobs b WHERE b.tenant_id = @tenant_id AND b.id IN (
	(SELECT j.id FROM bulk_jobs j WHERE @newest::boolean AND j.tenant_id = @tenant_id AND j.id < @after ORDER BY j.id DESC LIMIT sqlc.arg('limit'))
	UNION ALL
	(SELECT j.id FROM bulk_jobs j WHERE NOT @newest::boolean AND j.tenant_id = @tenant_id AND j.id > @after ORDER BY j.id LIMIT sqlc.arg('limit'))
)
ORDER BY CASE WHEN @newest::boolean THEN b.id END DESC, b.id;

-- name: DueBulkJobs :many
-- Jobs of all tenants that a worker can take a chunk of, under the worker role, and sampled ones whose time to decide
-- has passed. Each chunk puts its job at the end of this list.
SELECT d.tenant_id, d.id FROM (
	(SELECT b.tenant_id, b.id, b.due_at FROM bulk_jobs b WHERE b.state IN ('queued', 'running') AND b.due_at <= now() ORDER BY b.due_at LIMIT sqlc.arg('limit'))
	UNION ALL
	(SELECT b.tenant_id, b.id, b.due_at FROM bulk_jobs b WHERE b.state = 'sampled' AND b.due_at <= now() ORDER BY b.due_at LIMIT sqlc.arg('limit'))
) d ORDER BY d.due_at;

-- name: TakeBulkJob :one
-- The lock is the lease: no row where another worker does a chunk of it at this moment, or it is not due any more.
SELECT * FROM bulk_jobs
WHERE tenant_id = @tenant_id AND id = @id AND state IN ('queued', 'running', 'sampled') AND due_at <= now()
FOR NO KEY UPDATE SKIP LOCKED;

-- name: LockBulkJob :one
-- For who cancels or continues it: waits for a chunk that is under way.
SELECT * FROM bulk_jobs WHERE tenant_id = @tenant_id AND id = @id FOR NO KEY UPDATE;

-- name: SaveBulkJob :one
UPDATE bulk_jobs SET state = @state, done = @done, skipped = @skipped, position = @position, horizon = sqlc.narg('horizon'),
	sample_id = sqlc.narg('sample_id'), failure = @failure, tries = @tries, due_at = now() + make_interval(secs => @rest), started_at = coalesce(started_at, now()),
	ended_at = CASE WHEN @state::text IN ('done', 'canceled', 'failed') THEN now() END
WHERE tenant_id = @tenant_id AND id = @id
RETURNING *;

-- name: ForgetOldBulkJobs :execrows
-- A job's row is kept as long as the history that it made, and an open one until it is over.
DELETE FROM bulk_jobs WHERE ended_at < now() - make_interval(days => @days::int);

-- name: EndpointOrders :many
SELECT id, ordering FROM endpoints WHERE tenant_id = @tenant_id AND id = ANY(@ids::uuid[]) AND deleted_at IS NULL;

-- name: ShareLockEndpoints :many
-- For who adds to their queues: they are neither deleted nor ordered otherwise until the transaction ends.
SELECT id, ordering FROM endpoints WHERE tenant_id = @tenant_id AND id = ANY(@ids::uuid[]) AND deleted_at IS NULL
ORDER BY id FOR SHARE;

-- name: ReplayedLetters :many
-- Which of these dead letters were sent again before.
SELECT delivery_id FROM dead_letters WHERE tenant_id = @tenant_id AND delivery_id = ANY(@ids::uuid[]) AND replayed;

-- name: LockLetters :many
-- The same for who is about to send them again: of two jobs over the same dead letters one does.
SELECT delivery_id, replayed FROM dead_letters WHERE tenant_id = @tenant_id AND delivery_id = ANY(@ids::uuid[])
ORDER BY delivery_id FOR UPDATE;

-- name: MarkLettersReplayed :exec
UPDATE dead_letters SET replayed = true WHERE tenant_id = @tenant_id AND delivery_id = ANY(@ids::uuid[]) AND NOT replayed;

-- name: ReplayableEvents :many
-- The events of one day that a replay can send again, without dropped ones.
SELECT e.id, e.key, (e.data IS NOT NULL)::boolean AS has_data
FROM ROWS FROM (unnest(@ids::uuid[]), unnest(@created::timestamptz[])) AS u(id, created_at)
JOIN events e ON e.tenant_id = @tenant_id AND e.created_at = u.created_at AND e.id = u.id
	AND e.created_at BETWEEN @first::timestamptz AND @last::timestamptz;

-- name: InsertReplays :exec
INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, replay_of, first_id, job_id, routing_version)
SELECT @tenant_id, u.created_at, u.id, u.event_id, u.endpoint_id, u.event_type,
	nullif(u.replay_of, '00000000-0000-0000-0000-000000000000'), u.first_id,
	sqlc.narg('job_id')::uuid, (SELECT t.routing_version FROM tenants t WHERE t.id = @tenant_id)
FROM ROWS FROM (unnest(@created::timestamptz[]), unnest(@ids::uuid[]), unnest(@events::uuid[]), unnest(@endpoints::uuid[]),
	unnest(@types::text[]), unnest(@replays_of::uuid[]), unnest(@firsts::uuid[]))
	AS u(created_at, id, event_id, endpoint_id, event_type, replay_of, first_id);

-- name: QueueReplays :exec
-- Always locked after their deliveries: see LockQueued. The order of the arrays becomes the queue's order.
INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, state, order_key, due_at, replay, first_id, routing_version)
SELECT @tenant_id, u.delivery_id, u.event_id, u.endpoint_id, u.state, nullif(u.order_key, ''), nullif(u.due_at, timestamptz 'epoch'), true,
	u.first_id, (SELECT t.routing_version FROM tenants t WHERE t.id = @tenant_id)
FROM ROWS FROM (unnest(@deliveries::uuid[]), unnest(@events::uuid[]), unnest(@endpoints::uuid[]), unnest(@states::smallint[]),
	unnest(@order_keys::text[]), unnest(@due::timestamptz[]), unnest(@firsts::uuid[]))
	AS u(delivery_id, event_id, endpoint_id, state, order_key, due_at, first_id);

-- name: LockFreeQueued :many
-- The queue rows of these deliveries that no other transaction holds.
SELECT * FROM queue WHERE tenant_id = @tenant_id AND delivery_id = ANY(@ids::uuid[]) ORDER BY delivery_id FOR UPDATE SKIP LOCKED;

-- name: StillQueued :many
SELECT delivery_id FROM queue WHERE tenant_id = @tenant_id AND delivery_id = ANY(@ids::uuid[]);

-- name: DropManyQueued :exec
DELETE FROM queue WHERE tenant_id = @tenant_id AND delivery_id = ANY(@ids::uuid[]);

-- name: QueueManyNow :exec
-- As QueueNow. New numbers are taken in the order of the array.
UPDATE queue q SET due_at = now(), gen = q.gen + 1, state = CASE WHEN q.state = 3 AND q.order_key IS NOT NULL THEN 2 ELSE 0 END,
	seq = CASE WHEN q.state = 3 THEN u.seq ELSE q.seq END
FROM (SELECT id, nextval('queue_seq') AS seq FROM unnest(@ids::uuid[]) AS id OFFSET 0) u
WHERE q.tenant_id = @tenant_id AND q.delivery_id = u.id;

-- name: CancelDeliveries :many
-- Of one day; the caller holds their queue rows.
UPDATE deliveries d SET status = 4, reason = @reason, settled_at = now()
FROM ROWS FROM (unnest(@ids::uuid[]), unnest(@created::timestamptz[])) AS u(id, created_at)
WHERE d.tenant_id = @tenant_id AND d.created_at = u.created_at AND d.id = u.id AND d.created_at BETWEEN @first::timestamptz AND @last::timestamptz
RETURNING d.id, d.attempts, d.event_type, d.endpoint_id;

-- name: InsertCancellations :exec
INSERT INTO cancellations (tenant_id, delivery_id, endpoint_id, event_type, attempted)
SELECT @tenant_id, u.delivery_id, u.endpoint_id, u.event_type, u.attempted
FROM ROWS FROM (unnest(@deliveries::uuid[]), unnest(@endpoints::uuid[]), unnest(@types::text[]), unnest(@attempted::boolean[]))
	AS u(delivery_id, endpoint_id, event_type, attempted)
ON CONFLICT (tenant_id, delivery_id) DO NOTHING;

-- name: ArchiveDeliveries :many
-- The deliveries of one day that have ended and are not archived, or not restored, yet.
WITH locked AS (
	SELECT d.created_at, d.id
	FROM ROWS FROM (unnest(@ids::uuid[]), unnest(@created::timestamptz[])) AS u(id, created_at)
	JOIN deliveries d ON d.tenant_id = @tenant_id AND d.created_at = u.created_at AND d.id = u.id
		AND d.created_at BETWEEN @first::timestamptz AND @last::timestamptz
	WHERE d.status >= 2 AND (d.archived_at IS NOT NULL) <> @archived::boolean
	ORDER BY d.created_at, d.id FOR NO KEY UPDATE OF d
)
UPDATE deliveries d SET archived_at = CASE WHEN @archived::boolean THEN now() END
FROM locked
WHERE d.tenant_id = @tenant_id AND d.created_at = locked.created_at AND d.id = locked.id AND d.created_at BETWEEN @first AND @last
RETURNING d.id;

-- name: ArchiveLetters :exec
UPDATE dead_letters SET archived = @archived WHERE tenant_id = @tenant_id AND delivery_id = ANY(@ids::uuid[]);

-- name: ArchiveCancellations :exec
UPDATE cancellations SET archived = @archived WHERE tenant_id = @tenant_id AND delivery_id = ANY(@ids::uuid[]);

-- name: BumpLanes :exec
-- As BumpLane, for many, in an order that no two jobs wait for each other in a circle.
UPDATE lanes t SET rev = t.rev + 1
WHERE t.tenant_id = @tenant_id AND t.endpoint_id IN (
	SELECT l.endpoint_id FROM lanes l WHERE l.tenant_id = @tenant_id AND l.endpoint_id = ANY(@endpoints::uuid[]) ORDER BY l.endpoint_id FOR NO KEY UPDATE);

-- name: EndpointExists :one
-- Deleted ones too: their deliveries are still there.
SELECT EXISTS (SELECT 1 FROM endpoints WHERE tenant_id = @tenant_id AND id = @id);

-- name: DeliveredEvents :many
-- The events, of the given ones, that have a delivery to an endpoint, in any status. A delivery is never older than
-- its event. Two parts, as in ScanEvent. No index serves IS NOT DISTINCT FROM: statistics from the first minutes of a
-- day, before the endpoint had a delivery, would make the index of endpoints look free, and it would be read whole for
-- each event. The moments are parameters too: PostgreSQL checks no condition with a function that isn't leakproof,
-- such as created_at, before a row-level policy, so a moment computed here from u.id could be no index condition.
SELECT u.id::uuid AS event_id FROM ROWS FROM (unnest(@events::uuid[]), unnest(@created::timestamptz[])) AS u(id, created_at)
CROSS JOIN LATERAL (
	(SELECT 1 FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.created_at = u.created_at AND d.event_id = u.id AND d.endpoint_id = @endpoint_id LIMIT 1)
	UNION ALL
	(SELECT 1 FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.event_id = u.id AND substring(uuid_send(d.id), 1, 6) <> substring(uuid_send(d.event_id), 1, 6)
		AND d.endpoint_id IS NOT DISTINCT FROM @endpoint_id::uuid AND d.created_at >= @since::timestamptz LIMIT 1)
	LIMIT 1
) x;

-- name: DeliveriesToEndpoint :many
-- The newest delivery of each event to an endpoint, in any status. Two parts, as in DeliveredEvents.
SELECT DISTINCT ON (x.event_id) x.event_id, x.id, coalesce(x.first_id, x.id)::uuid AS first_id
FROM ROWS FROM (unnest(@events::uuid[]), unnest(@created::timestamptz[])) AS u(id, created_at)
CROSS JOIN LATERAL (
	SELECT d.event_id, d.id, d.first_id FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.created_at = u.created_at AND d.event_id = u.id AND d.endpoint_id = @endpoint_id
	UNION ALL
	SELECT d.event_id, d.id, d.first_id FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.event_id = u.id AND substring(uuid_send(d.id), 1, 6) <> substring(uuid_send(d.event_id), 1, 6)
		AND d.endpoint_id IS NOT DISTINCT FROM @endpoint_id::uuid AND d.created_at >= @since::timestamptz
	OFFSET 0
) x
ORDER BY x.event_id, x.id DESC;

-- name: EventsData :many
-- The data of events of one day, in the order of the array. Past a budget of bytes rows come without their data, marked
-- as cut; the first never is.
SELECT s.id, s.key, (s.data IS NULL)::boolean AS expunged, (s.total > @budget::bigint AND s.total > s.size)::boolean AS cut,
	(CASE WHEN s.total <= @budget::bigint OR s.total = s.size THEN s.data END)::bytea AS data
FROM (
	SELECT e.id, e.key, e.data, coalesce(octet_length(e.data), 0)::bigint AS size, u.n,
		sum(coalesce(octet_length(e.data), 0)) OVER (ORDER BY u.n) AS total
	FROM ROWS FROM (unnest(@ids::uuid[]), unnest(@created::timestamptz[])) WITH ORDINALITY AS u(id, created_at, n)
	JOIN events e ON e.tenant_id = @tenant_id AND e.created_at = u.created_at AND e.id = u.id
		AND e.created_at BETWEEN @first::timestamptz AND @last::timestamptz
) s
ORDER BY s.n;

-- name: DeliveriesOfEvent :many
-- Newest first, with whether each still waits. Two parts, as in ScanEvent.
SELECT x.id, x.endpoint_id, x.event_type, x.status, x.replay_of, x.first_id, (q.delivery_id IS NOT NULL)::boolean AS queued
FROM (
	SELECT d.* FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.created_at = @event_at::timestamptz AND d.event_id = @event_id
	UNION ALL
	SELECT d.* FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.event_id = @event_id AND substring(uuid_send(d.id), 1, 6) <> substring(uuid_send(d.event_id), 1, 6)
		AND d.created_at >= @since::timestamptz
) x LEFT JOIN queue q ON q.tenant_id = x.tenant_id AND q.delivery_id = x.id
WHERE sqlc.narg('endpoint_id')::uuid IS NULL OR x.endpoint_id = sqlc.narg('endpoint_id')
ORDER BY x.id DESC LIMIT sqlc.arg('limit');

-- name: MarkDropped :one
-- Drops the queue of an endpoint up to the newest number that any transaction drew, committed or not. From now on the
-- lane's owner sends none of it.
UPDATE lanes t SET rev = t.rev + 1, drop_below = greatest(t.drop_below, coalesce(pg_sequence_last_value('queue_seq'::regclass), 0))
WHERE t.tenant_id = @tenant_id AND t.endpoint_id = @endpoint_id
RETURNING t.drop_below;

-- name: UnmarkDropped :exec
UPDATE lanes t SET rev = t.rev + 1, drop_below = 0
WHERE t.tenant_id = @tenant_id AND t.endpoint_id = @endpoint_id AND t.drop_below = @below;

-- name: CountDropped :one
SELECT count(*) FROM (
	SELECT 1 FROM queue WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND state IN (0, 1, 2) AND seq <= @below::bigint LIMIT sqlc.arg('limit')::int) q;

-- name: LockDropped :many
-- Deferred rows are not held: they wait for their time, and take a new number then.
SELECT * FROM queue
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND state IN (0, 1, 2) AND seq <= @below::bigint
LIMIT sqlc.arg('limit')::int FOR UPDATE SKIP LOCKED;

-- name: DestroyData :many
-- Of one day. The rows stay, without the data.
UPDATE events e SET data = NULL
FROM ROWS FROM (unnest(@ids::uuid[]), unnest(@created::timestamptz[])) AS u(id, created_at)
WHERE e.tenant_id = @tenant_id AND e.created_at = u.created_at AND e.id = u.id
	AND e.created_at BETWEEN @first::timestamptz AND @last::timestamptz AND e.data IS NOT NULL
RETURNING e.id;

-- name: DeliveriesOfEvents :many
-- In any status. A delivery is never older than its event. Two parts, as in ScanEvent. The moments are parameters, as
-- in DeliveredEvents.
SELECT x.id, x.endpoint_id, x.status FROM ROWS FROM (unnest(@events::uuid[]), unnest(@created::timestamptz[])) AS u(id, created_at)
CROSS JOIN LATERAL (
	SELECT d.id, d.endpoint_id, d.status FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.created_at = u.created_at AND d.event_id = u.id
	UNION ALL
	SELECT d.id, d.endpoint_id, d.status FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.event_id = u.id AND substring(uuid_send(d.id), 1, 6) <> substring(uuid_send(d.event_id), 1, 6)
		AND d.created_at >= @since::timestamptz
	OFFSET 0
) x
ORDER BY x.id;

-- name: LockManyQueued :many
SELECT * FROM queue WHERE tenant_id = @tenant_id AND delivery_id = ANY(@ids::uuid[]) ORDER BY delivery_id FOR UPDATE;

-- name: ExpungeAttempts :execrows
-- Responses of receivers can repeat the data.
UPDATE attempts SET response_headers = NULL, response_excerpt = NULL
WHERE tenant_id = @tenant_id AND delivery_id = ANY(@deliveries::uuid[]) AND created_at >= @since::timestamptz
	AND (response_headers IS NOT NULL OR response_excerpt IS NOT NULL);

-- name: ForgetLastAnswers :exec
-- The last failure that is shown for an endpoint can quote a response to an expunged event.
UPDATE endpoint_health SET last_excerpt = '' WHERE tenant_id = @tenant_id AND endpoint_id = ANY(@endpoints::uuid[]) AND last_excerpt <> '';

-- name: ForgetAnswersInNotices :exec
UPDATE notices SET details = details - 'last_excerpt'
WHERE tenant_id = @tenant_id AND endpoint_id = ANY(@endpoints::uuid[]) AND details ? 'last_excerpt';

-- name: ForgetBodies :exec
-- The digests of these events' requests, kept for a day under their idempotency keys.
SELECT posthorn.forget_bodies(@events::uuid[]);

-- name: EventExpunged :one
-- False for an event that was dropped.
SELECT EXISTS (SELECT 1 FROM events WHERE tenant_id = @tenant_id AND created_at = @created_at AND id = @id AND data IS NULL);
