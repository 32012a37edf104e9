-- Deliveries: lists, one with its attempts, and changes of one.
--
-- A list is read in two steps. A scan reads ids in order in the one table that has the wanted status (the queue, the
-- dead letters, the cancellations, else the deliveries themselves), reads a bounded number of rows, and returns where
-- it stopped; then the rows of a page are read by primary key, a day at a time. So a longer history makes no list
-- slower, and a rare filter gives short pages instead of slow ones. Ids are time-ordered: an open interval (low, high)
-- of ids is one of time, and both ends carry the day for the partitions.
--
-- Each scan has both directions. The transaction plans for its parameters and by index (PlanByIndex), so that the
-- other direction, absent filters and partitions outside of the interval are removed before execution, and no plan is
-- kept from a time when the queue was short.

-- name: PlanByIndex :exec
SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true);

-- name: VisibleSince :one
-- A tenant's retention hides at once what the platform drops later, except waiting deliveries, and for a week those
-- that ended late. Ids have the precision of a millisecond.
SELECT least(now() - make_interval(days => t.retention_days),
	(SELECT posthorn.created_at(q.delivery_id) FROM queue q WHERE q.tenant_id = @tenant_id ORDER BY q.delivery_id LIMIT 1) - interval '1 millisecond',
	(SELECT min(d.day) FROM late_days d WHERE d.tenant_id = @tenant_id AND d.until > now())::timestamp AT TIME ZONE 'UTC')::timestamptz
FROM tenants t WHERE t.id = @tenant_id;

-- name: ScanDeliveries :one
-- Any status, or one that the row itself shows as final.
WITH page AS (
	(SELECT d.id, d.event_type, d.status, d.archived_at FROM deliveries d
	WHERE @newest::boolean AND d.tenant_id = @tenant_id
		AND d.created_at BETWEEN @low_at::timestamptz AND @high_at::timestamptz
		AND (d.created_at, d.id) > (@low_at, @low::uuid) AND (d.created_at, d.id) < (@high_at, @high::uuid)
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR d.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY d.created_at DESC, d.id DESC LIMIT @scan)
	UNION ALL
	(SELECT d.id, d.event_type, d.status, d.archived_at FROM deliveries d
	WHERE NOT @newest::boolean AND d.tenant_id = @tenant_id
		AND d.created_at BETWEEN @low_at AND @high_at
		AND (d.created_at, d.id) > (@low_at, @low) AND (d.created_at, d.id) < (@high_at, @high)
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR d.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY d.created_at, d.id LIMIT @scan)
)
SELECT count(*)::int AS scanned,
	coalesce((CASE WHEN @newest::boolean THEN array_agg(id ORDER BY id) ELSE array_agg(id ORDER BY id DESC) END)[1], '00000000-0000-0000-0000-000000000000')::uuid AS reached,
	coalesce(array_agg(id) FILTER (WHERE (archived_at IS NOT NULL) = @archived::boolean
		AND (@status::int < 0 OR status = @status) AND posthorn.matches_type(@event_type::text, event_type)), '{}')::uuid[] AS ids
FROM page;

-- name: ScanEvent :one
-- The same for the deliveries of one event, in two parts: those that were created with it have its moment in the
-- primary key; the others (replays, recoveries, and those of an event with a given id) are in deliveries_later. The
-- first six bytes of an id are its moment (docs/adr/0024).
WITH page AS (
	SELECT x.id, x.event_type, x.status, x.archived_at FROM (
		SELECT d.id, d.event_type, d.status, d.archived_at, d.endpoint_id FROM deliveries d
		WHERE d.tenant_id = @tenant_id AND d.created_at = @event_at::timestamptz AND d.event_id = @event_id::uuid
			AND d.id > @low::uuid AND d.id < @high::uuid
		UNION ALL
		SELECT d.id, d.event_type, d.status, d.archived_at, d.endpoint_id FROM deliveries d
		WHERE d.tenant_id = @tenant_id AND d.event_id = @event_id::uuid
			AND substring(uuid_send(d.id), 1, 6) <> substring(uuid_send(d.event_id), 1, 6)
			AND d.created_at BETWEEN @low_at::timestamptz AND @high_at::timestamptz AND d.id > @low::uuid AND d.id < @high::uuid
	) x
	WHERE sqlc.narg('endpoint_id')::uuid IS NULL OR x.endpoint_id = sqlc.narg('endpoint_id')
	ORDER BY CASE WHEN @newest::boolean THEN x.id END DESC, x.id LIMIT @scan
)
SELECT count(*)::int AS scanned,
	coalesce((CASE WHEN @newest::boolean THEN array_agg(id ORDER BY id) ELSE array_agg(id ORDER BY id DESC) END)[1], '00000000-0000-0000-0000-000000000000')::uuid AS reached,
	coalesce(array_agg(id) FILTER (WHERE (archived_at IS NOT NULL) = @archived::boolean
		AND (@status::int < 0 OR status = @status) AND posthorn.matches_type(@event_type::text, event_type)), '{}')::uuid[] AS ids
FROM page;

-- name: ScanQueue :one
-- Waiting: pending, retrying or held, or with @waiting all of them. A blocked or deferred row is pending like any
-- other.
WITH page AS (
	(SELECT q.delivery_id AS id, q.endpoint_id, q.attempts FROM queue q
	WHERE @newest::boolean AND q.tenant_id = @tenant_id AND q.delivery_id > @low::uuid AND q.delivery_id < @high::uuid
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR q.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY q.delivery_id DESC LIMIT @scan)
	UNION ALL
	(SELECT q.delivery_id AS id, q.endpoint_id, q.attempts FROM queue q
	WHERE NOT @newest::boolean AND q.tenant_id = @tenant_id AND q.delivery_id > @low AND q.delivery_id < @high
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR q.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY q.delivery_id LIMIT @scan)
)
SELECT count(*)::int AS scanned,
	coalesce((CASE WHEN @newest::boolean THEN array_agg(id ORDER BY id) ELSE array_agg(id ORDER BY id DESC) END)[1], '00000000-0000-0000-0000-000000000000')::uuid AS reached,
	coalesce(array_agg(id) FILTER (WHERE @waiting::boolean OR coalesce(l.held, false) = @held::boolean
		AND (@held OR (page.attempts > 0) = @tried::boolean)), '{}')::uuid[] AS ids
FROM page LEFT JOIN lanes l ON l.tenant_id = @tenant_id AND l.endpoint_id = page.endpoint_id;

-- name: ScanDeadLetters :one
-- Failed deliveries; with open, only dead letters: failed, not replayed, not archived, and no trial (domain/delivery).
WITH page AS (
	(SELECT x.delivery_id AS id, x.endpoint_id, x.event_type, x.archived, x.replayed, x.trial FROM dead_letters x
	WHERE @newest::boolean AND x.tenant_id = @tenant_id AND x.delivery_id > @low::uuid AND x.delivery_id < @high::uuid
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR x.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY x.delivery_id DESC LIMIT @scan)
	UNION ALL
	(SELECT x.delivery_id AS id, x.endpoint_id, x.event_type, x.archived, x.replayed, x.trial FROM dead_letters x
	WHERE NOT @newest::boolean AND x.tenant_id = @tenant_id AND x.delivery_id > @low AND x.delivery_id < @high
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR x.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY x.delivery_id LIMIT @scan)
)
SELECT count(*)::int AS scanned,
	coalesce((CASE WHEN @newest::boolean THEN array_agg(id ORDER BY id) ELSE array_agg(id ORDER BY id DESC) END)[1], '00000000-0000-0000-0000-000000000000')::uuid AS reached,
	coalesce(array_agg(id) FILTER (WHERE archived = @archived::boolean AND posthorn.matches_type(@event_type::text, event_type)
		AND (NOT @open::boolean OR NOT replayed AND NOT archived AND trial IS NOT TRUE)), '{}')::uuid[] AS ids
FROM page;

-- name: ScanCancellations :one
WITH page AS (
	(SELECT x.delivery_id AS id, x.event_type, x.archived FROM cancellations x
	WHERE @newest::boolean AND x.tenant_id = @tenant_id AND x.delivery_id > @low::uuid AND x.delivery_id < @high::uuid
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR x.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY x.delivery_id DESC LIMIT @scan)
	UNION ALL
	(SELECT x.delivery_id AS id, x.event_type, x.archived FROM cancellations x
	WHERE NOT @newest::boolean AND x.tenant_id = @tenant_id AND x.delivery_id > @low AND x.delivery_id < @high
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR x.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY x.delivery_id LIMIT @scan)
)
SELECT count(*)::int AS scanned,
	coalesce((CASE WHEN @newest::boolean THEN array_agg(id ORDER BY id) ELSE array_agg(id ORDER BY id DESC) END)[1], '00000000-0000-0000-0000-000000000000')::uuid AS reached,
	coalesce(array_agg(id) FILTER (WHERE archived = @archived::boolean AND posthorn.matches_type(@event_type::text, event_type)), '{}')::uuid[] AS ids
FROM page;

-- name: ScanAllFailed :one
-- Deliveries that failed at least once and were not delivered yet: dead letters, retries, and deliveries that were
-- canceled after an attempt.
WITH failed AS (
	(SELECT x.delivery_id AS id, x.endpoint_id, x.event_type, x.archived, true AS counts FROM dead_letters x
	WHERE @newest::boolean AND x.tenant_id = @tenant_id AND x.delivery_id > @low::uuid AND x.delivery_id < @high::uuid
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR x.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY x.delivery_id DESC LIMIT @scan)
	UNION ALL
	(SELECT x.delivery_id AS id, x.endpoint_id, x.event_type, x.archived, true AS counts FROM dead_letters x
	WHERE NOT @newest::boolean AND x.tenant_id = @tenant_id AND x.delivery_id > @low AND x.delivery_id < @high
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR x.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY x.delivery_id LIMIT @scan)
), canceled AS (
	(SELECT x.delivery_id AS id, x.endpoint_id, x.event_type, x.archived, x.attempted AS counts FROM cancellations x
	WHERE @newest::boolean AND x.tenant_id = @tenant_id AND x.delivery_id > @low AND x.delivery_id < @high
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR x.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY x.delivery_id DESC LIMIT @scan)
	UNION ALL
	(SELECT x.delivery_id AS id, x.endpoint_id, x.event_type, x.archived, x.attempted AS counts FROM cancellations x
	WHERE NOT @newest::boolean AND x.tenant_id = @tenant_id AND x.delivery_id > @low AND x.delivery_id < @high
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR x.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY x.delivery_id LIMIT @scan)
), retrying AS (
	(SELECT q.delivery_id AS id, q.endpoint_id, ''::text AS event_type, false AS archived, q.attempts > 0 AS counts FROM queue q
	WHERE @newest::boolean AND q.tenant_id = @tenant_id AND q.delivery_id > @low AND q.delivery_id < @high
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR q.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY q.delivery_id DESC LIMIT @scan)
	UNION ALL
	(SELECT q.delivery_id AS id, q.endpoint_id, ''::text AS event_type, false AS archived, q.attempts > 0 AS counts FROM queue q
	WHERE NOT @newest::boolean AND q.tenant_id = @tenant_id AND q.delivery_id > @low AND q.delivery_id < @high
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR q.endpoint_id = sqlc.narg('endpoint_id'))
	ORDER BY q.delivery_id LIMIT @scan)
), every AS (
	SELECT * FROM failed UNION ALL SELECT * FROM canceled UNION ALL
	SELECT r.id, r.endpoint_id, r.event_type, r.archived, r.counts AND NOT coalesce(l.held, false)
	FROM retrying r LEFT JOIN lanes l ON l.tenant_id = @tenant_id AND l.endpoint_id = r.endpoint_id
), page AS (
	(SELECT * FROM every WHERE @newest::boolean ORDER BY id DESC LIMIT @scan)
	UNION ALL
	(SELECT * FROM every WHERE NOT @newest::boolean ORDER BY id LIMIT @scan)
)
SELECT count(*)::int AS scanned,
	coalesce((CASE WHEN @newest::boolean THEN array_agg(id ORDER BY id) ELSE array_agg(id ORDER BY id DESC) END)[1], '00000000-0000-0000-0000-000000000000')::uuid AS reached,
	coalesce(array_agg(id) FILTER (WHERE counts AND archived = @archived::boolean
		AND (event_type = '' OR posthorn.matches_type(@event_type::text, event_type))), '{}')::uuid[] AS ids
FROM page;

-- name: ScanJob :one
-- The deliveries of a bulk job.
WITH page AS (
	(SELECT x.delivery_id AS id FROM replays x
	WHERE @newest::boolean AND x.tenant_id = @tenant_id AND x.job_id = @job_id AND x.delivery_id > @low::uuid AND x.delivery_id < @high::uuid
	ORDER BY x.delivery_id DESC LIMIT @scan)
	UNION ALL
	(SELECT x.delivery_id AS id FROM replays x
	WHERE NOT @newest::boolean AND x.tenant_id = @tenant_id AND x.job_id = @job_id AND x.delivery_id > @low AND x.delivery_id < @high
	ORDER BY x.delivery_id LIMIT @scan)
)
SELECT count(*)::int AS scanned,
	coalesce((CASE WHEN @newest::boolean THEN array_agg(id ORDER BY id) ELSE array_agg(id ORDER BY id DESC) END)[1], '00000000-0000-0000-0000-000000000000')::uuid AS reached,
	coalesce(array_agg(id), '{}')::uuid[] AS ids
FROM page;

-- name: JobOutcome :one
-- The statuses of the first limit deliveries of a job. A delivery of a dropped day counts as none of them. The moments
-- are computed before the join, in a subquery whose LIMIT keeps it apart: the reason is in DeliveredEvents.
SELECT count(*) AS made, count(*) FILTER (WHERE s.status = 2) AS delivered, count(*) FILTER (WHERE s.status = 3) AS failed,
	count(*) FILTER (WHERE s.status = 4) AS canceled, count(*) FILTER (WHERE s.status < 2) AS waiting
FROM (SELECT x.delivery_id, posthorn.created_at(x.delivery_id) AS created_at FROM replays x
	WHERE x.tenant_id = @tenant_id AND x.job_id = @job_id ORDER BY x.delivery_id LIMIT sqlc.arg('limit')::int) r
LEFT JOIN LATERAL (
	SELECT d.status FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.created_at = r.created_at AND d.id = r.delivery_id
		AND d.created_at BETWEEN @since::timestamptz AND @until::timestamptz LIMIT 1
) s ON true;

-- name: CountDeadLettersOf :one
-- A tenant's dead letters (domain/delivery), of one endpoint or all, that failed since a moment; counted up to a bound.
SELECT count(*) FROM (
	SELECT 1 FROM dead_letters x WHERE x.tenant_id = @tenant_id AND NOT x.replayed AND NOT x.archived
		AND x.delivery_id > (SELECT posthorn.first_id(now() - make_interval(days => t.retention_days)) FROM tenants t WHERE t.id = @tenant_id)
		AND (sqlc.narg('endpoint_id')::uuid IS NULL OR x.endpoint_id = sqlc.narg('endpoint_id'))
		AND (sqlc.narg('since')::timestamptz IS NULL OR x.failed_at >= sqlc.narg('since'))
		AND x.trial IS NOT TRUE LIMIT sqlc.arg('limit')::int
) d;

-- name: ReadDeliveries :many
-- Deliveries that were created between two moments, with their rows in the queue, their endpoints and the newest of their replays.
SELECT sqlc.embed(d), q.due_at, (q.delivery_id IS NOT NULL)::boolean AS queued, coalesce(q.seq, 0)::bigint AS seq,
	coalesce(q.state, 0)::smallint AS queue_state, coalesce(q.asked, false)::boolean AS asked, q.order_key, q.expires_at, coalesce(l.held, false)::boolean AS held,
	(d.status = 3 AND EXISTS (SELECT 1 FROM dead_letters x
		WHERE x.tenant_id = d.tenant_id AND x.delivery_id = d.id AND NOT x.replayed AND NOT x.archived AND x.trial IS NOT TRUE))::boolean AS dead,
	coalesce((SELECT r.delivery_id FROM replays r WHERE r.tenant_id = d.tenant_id AND r.replay_of = d.id ORDER BY r.delivery_id DESC LIMIT 1),
		'00000000-0000-0000-0000-000000000000')::uuid AS replayed_by,
	coalesce(e.kind, '')::text AS kind, coalesce(e.url, '')::text AS url, coalesce(e.description, '')::text AS description,
	coalesce(e.timeout_seconds, 0)::int AS timeout_seconds, coalesce(e.accept_conflict, false)::boolean AS accept_conflict,
	(e.id IS NULL OR e.deleted_at IS NOT NULL)::boolean AS deleted, t.name AS tenant_name
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@ids::uuid[]), unnest(@created::timestamptz[])) AS u(tenant_id, id, created_at)
JOIN deliveries d ON d.tenant_id = u.tenant_id AND d.created_at = u.created_at AND d.id = u.id
	AND d.created_at BETWEEN @first::timestamptz AND @last::timestamptz
JOIN tenants t ON t.id = d.tenant_id
LEFT JOIN endpoints e ON e.tenant_id = d.tenant_id AND e.id = d.endpoint_id
LEFT JOIN queue q ON q.tenant_id = d.tenant_id AND q.delivery_id = d.id
LEFT JOIN lanes l ON l.tenant_id = d.tenant_id AND l.endpoint_id = d.endpoint_id;

-- name: LanesOf :many
-- What delays deliveries in the lanes of some endpoints, of one tenant or, for the console, of several.
SELECT e.id, e.tenant_id, e.kind, e.status, e.status_reason, e.status_at, e.resume_at, e.when_held, e.rate_limit, l.not_before, l.asked_at, l.look_at,
	(CASE WHEN l.owner IS NULL THEN 0 ELSE l.limited_by END)::smallint AS limited_by,
	(CASE WHEN l.owner IS NULL THEN '{}' ELSE l.in_flight END)::jsonb AS in_flight,
	posthorn.lane_served(l.owner, @silent_seconds)::boolean AS served,
	(e.status = 'disabled' AND EXISTS (SELECT 1 FROM verifications v
		WHERE v.tenant_id = e.tenant_id AND v.endpoint_id = e.id AND v.state = 'pending' AND v.requested_at > e.status_at))::boolean AS verifying,
	coalesce(p.scope, '')::text AS scope, coalesce(p.since, 'epoch')::timestamptz AS since, now()::timestamptz AS now,
	coalesce((SELECT i.contact_at FROM listeners i WHERE e.kind = 'listen' AND i.tenant_id = e.tenant_id AND i.endpoint_id = e.id), 'epoch')::timestamptz AS heard_at,
	coalesce((SELECT s.started_at FROM endpoint_starts s WHERE s.tenant_id = e.tenant_id AND s.endpoint_id = e.id), 'epoch')::timestamptz AS starting_at
FROM endpoints e JOIN lanes l ON l.tenant_id = e.tenant_id AND l.endpoint_id = e.id
LEFT JOIN LATERAL posthorn.pause_of(e.tenant_id, e.id, e.url) AS p ON true
WHERE e.id = ANY (@ids::uuid[]) AND (sqlc.narg('tenant_id')::uuid IS NULL OR e.tenant_id = sqlc.narg('tenant_id'));

-- name: HealthOfEndpoints :many
SELECT * FROM endpoint_health
WHERE endpoint_id = ANY (@ids::uuid[]) AND (sqlc.narg('tenant_id')::uuid IS NULL OR tenant_id = sqlc.narg('tenant_id'));

-- name: HeadsOfKeys :many
-- The first delivery of each ordering key.
SELECT u.endpoint_id::uuid AS endpoint_id, u.order_key::text AS order_key, h.delivery_id
FROM ROWS FROM (unnest(@endpoints::uuid[]), unnest(@order_keys::text[])) AS u(endpoint_id, order_key)
CROSS JOIN LATERAL (
	SELECT q.delivery_id FROM queue q
	WHERE q.endpoint_id = u.endpoint_id AND q.order_key = u.order_key AND q.state <> 3 ORDER BY q.seq LIMIT 1
) h;

-- name: CountAhead :many
-- How many ready deliveries of its lane go before each of some rows, counted up to a bound.
SELECT u.delivery_id::uuid AS delivery_id, (
	SELECT count(*) FROM (
		SELECT 1 FROM queue q WHERE q.state = 0 AND q.endpoint_id = u.endpoint_id AND q.seq < u.seq LIMIT sqlc.arg('limit')::int
	) w) AS ahead
FROM ROWS FROM (unnest(@deliveries::uuid[]), unnest(@endpoints::uuid[]), unnest(@seqs::bigint[])) AS u(delivery_id, endpoint_id, seq);

-- name: ReleaseBacklogs :exec
-- The breaker of some endpoints closed, or a person resumed them: deliveries that wait for a retry are made ready, in
-- chunks (ReleaseChunk). This writes one row per endpoint, whatever the backlog.
UPDATE lanes SET release_before = now(), release_after = 0 WHERE endpoint_id = ANY (@endpoints::uuid[]);

-- name: EventsOnChannel :many
-- Which of these events, created between two moments, went out on a channel.
SELECT e.id
FROM ROWS FROM (unnest(@ids::uuid[]), unnest(@created::timestamptz[])) AS u(id, created_at)
JOIN events e ON e.tenant_id = @tenant_id AND e.created_at = u.created_at AND e.id = u.id
	AND e.created_at BETWEEN @first::timestamptz AND @last::timestamptz
WHERE @channel::text = ANY(e.channels);

-- name: DeliveriesInBatch :many
-- Which of these deliveries had an attempt in a batch. The attempts have its moment, and its id in their format.
SELECT a.delivery_id FROM attempts a
WHERE a.tenant_id = @tenant_id AND a.delivery_id = ANY(@ids::uuid[]) AND a.created_at = @at::timestamptz
	AND position(@batch::text IN a.format) > 0;

-- name: ListAttempts :many
-- Newest first. All lie between the delivery's creation and a while after it was settled.
SELECT * FROM attempts
WHERE tenant_id = @tenant_id AND delivery_id = @delivery_id AND created_at BETWEEN @since AND @until
ORDER BY created_at DESC, id DESC LIMIT sqlc.arg('limit');

-- name: LastDurations :many
-- How long the newest attempt of each delivery lasted.
SELECT DISTINCT ON (a.delivery_id) a.delivery_id, a.total_us FROM attempts a
WHERE a.tenant_id = @tenant_id AND a.delivery_id = ANY(@deliveries::uuid[]) AND a.created_at BETWEEN @since AND @until
ORDER BY a.delivery_id, a.created_at DESC, a.id DESC;

-- name: GetAttempt :one
SELECT * FROM attempts
WHERE tenant_id = @tenant_id AND delivery_id = @delivery_id AND id = @id AND created_at BETWEEN @since AND @until
LIMIT 1;

-- name: LockQueued :one
-- The row of a waiting delivery, for who changes it. Taking the lock also gives the transaction its number, which it
-- must have before it draws one of the queue's.
SELECT * FROM queue WHERE tenant_id = @tenant_id AND delivery_id = @delivery_id FOR UPDATE;

-- name: QueueNow :exec
-- A deferred row gets the last place, as it would have when due, after the earlier rows of its key. If the endpoint's
-- breaker is open, the row is the next probe.
UPDATE queue q SET due_at = now(), gen = q.gen + 1,
	asked = EXISTS (SELECT 1 FROM endpoint_health h WHERE h.tenant_id = q.tenant_id AND h.endpoint_id = q.endpoint_id AND h.breaker_state <> 0),
	state = CASE WHEN q.state = 3 AND q.order_key IS NOT NULL THEN 2 ELSE 0 END,
	seq = CASE WHEN q.state = 3 THEN nextval('queue_seq') ELSE q.seq END
WHERE q.tenant_id = @tenant_id AND q.delivery_id = @delivery_id;

-- name: AskNow :execrows
-- A ready row waits for nothing, unless its endpoint's breaker is open or the endpoint asked for a wait: then it is
-- the next probe.
UPDATE queue q SET asked = true
WHERE q.tenant_id = @tenant_id AND q.delivery_id = @delivery_id AND NOT q.asked
	AND (EXISTS (SELECT 1 FROM endpoint_health h WHERE h.tenant_id = q.tenant_id AND h.endpoint_id = q.endpoint_id AND h.breaker_state <> 0)
		OR EXISTS (SELECT 1 FROM lanes l WHERE l.tenant_id = q.tenant_id AND l.endpoint_id = q.endpoint_id AND l.not_before > now()));

-- name: DropQueued :exec
DELETE FROM queue WHERE tenant_id = @tenant_id AND delivery_id = @delivery_id;

-- name: CancelDelivery :one
UPDATE deliveries SET status = 4, settled_at = now()
WHERE tenant_id = @tenant_id AND created_at = @created_at AND id = @id
RETURNING attempts, event_type;

-- name: InsertCancellation :exec
INSERT INTO cancellations (tenant_id, delivery_id, endpoint_id, event_type, attempted)
VALUES (@tenant_id, @delivery_id, @endpoint_id, @event_type, @attempted)
ON CONFLICT (tenant_id, delivery_id) DO NOTHING;

-- name: EnterOwnTotals :exec
-- The transaction's tenant, a row a day (UTC) of the deliveries' creation.
SELECT posthorn.enter_books(@days::date[], @accepted::int[], @delivered::int[], @failed::int[], @canceled::int[], @expunged::int[]);

-- name: ReplayableEvent :one
-- The event that a replay sends. Without it, or without its data, there is no replay.
SELECT key, (data IS NOT NULL)::boolean AS has_data FROM events
WHERE tenant_id = @tenant_id AND created_at = @created_at AND id = @id;

-- name: InsertReplay :exec
INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, replay_of, first_id, routing_version)
VALUES (@tenant_id, @created_at, @id, @event_id, @endpoint_id, @event_type, @replay_of, @first_id, (SELECT t.routing_version FROM tenants t WHERE t.id = @tenant_id));

-- name: QueueReplay :exec
-- After its delivery, always: see LockQueued.
INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, state, order_key, replay, first_id, routing_version)
VALUES (@tenant_id, @delivery_id, @event_id, @endpoint_id, @state, sqlc.narg('order_key'), true, @first_id, (SELECT t.routing_version FROM tenants t WHERE t.id = @tenant_id));

-- name: LastReplay :one
-- The newest replay of a delivery; no row: it was not replayed.
SELECT delivery_id FROM replays WHERE tenant_id = @tenant_id AND replay_of = @delivery_id ORDER BY delivery_id DESC LIMIT 1;

-- name: NoteReplays :exec
-- That deliveries were sent again as others. A pair with the zero id as replay_of is an event that its endpoint never
-- had.
INSERT INTO replays (tenant_id, replay_of, delivery_id, job_id)
SELECT @tenant_id, u.replay_of, u.delivery_id, sqlc.narg('job_id')::uuid
FROM ROWS FROM (unnest(@replays_of::uuid[]), unnest(@deliveries::uuid[])) AS u(replay_of, delivery_id)
ON CONFLICT DO NOTHING;

-- name: LockDelivery :one
SELECT * FROM deliveries
WHERE tenant_id = @tenant_id AND created_at = @created_at AND id = @id FOR NO KEY UPDATE;

-- name: ArchiveDelivery :exec
UPDATE deliveries SET archived_at = CASE WHEN @archived::boolean THEN coalesce(archived_at, now()) END
WHERE tenant_id = @tenant_id AND created_at = @created_at AND id = @id;

-- name: ArchiveDeadLetter :exec
UPDATE dead_letters SET archived = @archived WHERE tenant_id = @tenant_id AND delivery_id = @delivery_id;

-- name: ArchiveCancellation :exec
UPDATE cancellations SET archived = @archived WHERE tenant_id = @tenant_id AND delivery_id = @delivery_id;

-- name: LastResponses :many
-- The start of the body of the last response to each delivery, of attempts between two moments. Both are of the
-- delivery, so that only the days between them are read.
SELECT u.delivery_id::uuid AS delivery_id, x.body::bytea AS body
FROM ROWS FROM (unnest(@deliveries::uuid[]), unnest(@since::timestamptz[]), unnest(@until::timestamptz[])) AS u(delivery_id, since, until)
CROSS JOIN LATERAL (
	SELECT substring(a.response_excerpt for @size::int) AS body FROM attempts a
	WHERE a.tenant_id = @tenant_id AND a.delivery_id = u.delivery_id AND a.created_at BETWEEN u.since AND u.until AND NOT a.late
	ORDER BY a.created_at DESC LIMIT 1
) x
WHERE x.body IS NOT NULL;
