-- A worker's statements about lanes and the queue, for all tenants, under the worker role.

-- name: RegisterWorker :exec
INSERT INTO workers (id, name, beat_at) VALUES (@id, @name, now());

-- name: Beat :execrows
-- No row: another worker has declared this one dead.
UPDATE workers SET beat = beat + 1, beat_at = now() WHERE id = @id AND NOT dead;

-- name: LiveWorkers :many
SELECT id, name, beat FROM workers WHERE NOT dead;

-- name: LockSilentWorker :one
-- Waits for the recorder transactions that hold the row, so that none of them commits after its worker is dead.
SELECT id FROM workers WHERE id = @id AND beat = @beat AND NOT dead FOR UPDATE;

-- name: MarkWorkerDead :exec
UPDATE workers SET dead = true WHERE id = @id;

-- name: FreeLanesOf :many
-- The token bucket of a lane that changes hands without a release starts empty.
UPDATE lanes SET owner = NULL, tokens = 0, released_at = now() WHERE owner = @worker RETURNING endpoint_id;

-- name: DeleteWorker :exec
DELETE FROM workers WHERE id = @id;

-- name: ForgetDeadWorkers :exec
-- Operators see them for a day.
DELETE FROM workers WHERE dead AND coalesce(beat_at, started_at) < now() - interval '1 day';

-- name: AssertAlive :exec
SELECT posthorn.assert_alive(@worker);

-- name: LeaseLanes :many
-- Settings are read after it, so they are of this version of the tenant's routes or of a newer one.
WITH free AS (
	SELECT l.endpoint_id FROM lanes l
	WHERE l.endpoint_id = ANY(@endpoints::uuid[]) AND l.owner IS NULL AND NOT l.held AND NOT l.deleted
	FOR UPDATE SKIP LOCKED
)
UPDATE lanes l SET owner = @worker::uuid, leased_at = now(), in_flight = '{}'
FROM free WHERE l.endpoint_id = free.endpoint_id
RETURNING l.endpoint_id, l.tenant_id, l.rev, l.tokens, l.drop_below,
	coalesce((SELECT t.routing_version FROM tenants t WHERE t.id = l.tenant_id), 0)::bigint AS routing_version,
	extract(epoch FROM now() - l.released_at)::double precision AS idle_seconds,
	coalesce(extract(epoch FROM l.not_before - now()), 0)::double precision AS wait_seconds,
	coalesce(extract(epoch FROM least(l.look_at, l.not_before) - now()), 0)::double precision AS look_seconds, l.wait_epoch;

-- name: ReleaseLanes :exec
UPDATE lanes l SET owner = NULL, tokens = u.tokens, released_at = now()
FROM ROWS FROM (unnest(@endpoints::uuid[]), unnest(@tokens::double precision[])) AS u(endpoint_id, tokens)
WHERE l.endpoint_id = u.endpoint_id AND l.owner = @worker::uuid;

-- name: LaneRevs :many
-- What the owner of lanes reads once a second.
SELECT endpoint_id, rev, held, deleted, drop_below, wait_epoch FROM lanes WHERE owner = @worker::uuid;

-- name: LaneEndpoints :many
SELECT * FROM endpoints WHERE id = ANY(@endpoints::uuid[]);

-- name: LaneSecrets :many
-- Newest first.
SELECT endpoint_id, id, sealed, expires_at FROM endpoint_secrets
WHERE endpoint_id = ANY(@endpoints::uuid[]) AND (expires_at IS NULL OR expires_at > now())
ORDER BY endpoint_id, created_at DESC, id DESC;

-- name: ScanLanes :many
-- Steps through the lanes that have rows of a state, one index probe a lane however many rows it has, from where the
-- last walk stopped. Rows without a lane were on their way into the queue when their endpoint was deleted.
WITH RECURSIVE ring AS (
	(SELECT q.endpoint_id, 1 AS n FROM queue q WHERE q.state = @state::smallint AND q.endpoint_id > @after::uuid ORDER BY q.endpoint_id LIMIT 1)
	UNION ALL
	SELECT (SELECT q.endpoint_id FROM queue q WHERE q.state = @state::smallint AND q.endpoint_id > ring.endpoint_id ORDER BY q.endpoint_id LIMIT 1),
		ring.n + 1
	FROM ring WHERE ring.endpoint_id IS NOT NULL AND ring.n < @steps::int
)
SELECT ring.endpoint_id::uuid AS endpoint_id, l.owner, coalesce(NOT l.held AND NOT l.deleted, false)::boolean AS open,
	(l.endpoint_id IS NULL)::boolean AS orphaned
FROM ring LEFT JOIN lanes l ON l.endpoint_id = ring.endpoint_id
WHERE ring.endpoint_id IS NOT NULL
ORDER BY ring.n;

-- name: QueueTop :one
-- The newest number drawn from the queue's sequence, by anybody, committed or not.
SELECT coalesce(pg_sequence_last_value('queue_seq'::regclass), 0)::bigint;

-- name: OwnXid :one
-- Gives this transaction its number: greater than the number of every transaction that drew from the sequence before.
SELECT pg_current_xact_id()::text::bigint;

-- name: OldestRunningXid :one
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint;

-- name: ReadLanes :many
-- The heads of lanes: ready rows above the lane's floor that the owner does not hold in memory.
SELECT q.seq, q.gen, q.attempts, q.probes, q.tenant_id, q.endpoint_id, q.delivery_id, q.event_id, q.replay, q.first_id,
	q.routing_version, coalesce(q.order_key, '')::text AS order_key, q.expires_at
FROM ROWS FROM (unnest(@endpoints::uuid[]), unnest(@floors::bigint[]), unnest(@limits::int[])) AS l(endpoint_id, floor, most)
CROSS JOIN LATERAL (
	SELECT * FROM queue r
	WHERE r.state = 0 AND r.endpoint_id = l.endpoint_id AND r.seq > l.floor AND r.seq <> ALL(@known::bigint[])
	ORDER BY r.seq LIMIT l.most
) q;

-- name: ReadFollowers :many
-- What is next of the keys of heads, in order: blocked rows, and the first that is none ends them.
SELECT q.seq, q.gen, q.attempts, q.probes, q.tenant_id, q.endpoint_id, q.delivery_id, q.event_id, q.replay, q.first_id,
	q.routing_version, coalesce(q.order_key, '')::text AS order_key, q.expires_at, (q.state = 2)::boolean AS blocked
FROM ROWS FROM (unnest(@endpoints::uuid[]), unnest(@keys::text[]), unnest(@heads::bigint[]), unnest(@limits::int[])) AS u(endpoint_id, order_key, head, most)
CROSS JOIN LATERAL (
	SELECT * FROM queue r
	WHERE r.endpoint_id = u.endpoint_id AND r.order_key = u.order_key AND r.seq > u.head AND r.state <> 3
	ORDER BY r.seq LIMIT u.most
) q;

-- name: ReadEvents :many
-- Payloads of events, each once, within their days. Beyond a budget of bytes rows come without their data, marked as
-- cut; the first is never cut. An event that is missing from the result no longer exists. The LIMIT keeps this a
-- look-up by key, even if the planner takes a partition for empty.
SELECT s.tenant_id, s.created_at, s.id, s.type, s.key, s.channels, s.version, s.occurred_at, s.deliver_at, s.routing_version, s.external_id, s.traceparent,
	s.content_type, s.external_id_unsent, s.expires_at,
	(s.total > @budget::bigint AND s.total > s.size)::boolean AS cut,
	(CASE WHEN s.total <= @budget::bigint OR s.total = s.size THEN s.data END)::bytea AS data
FROM (
	SELECT e.*, coalesce(octet_length(e.data), 0)::bigint AS size, sum(coalesce(octet_length(e.data), 0)) OVER (ORDER BY u.n) AS total
	FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@created::timestamptz[]), unnest(@ids::uuid[])) WITH ORDINALITY AS u(tenant_id, created_at, id, n)
	CROSS JOIN LATERAL (
		SELECT * FROM events v
		WHERE v.tenant_id = u.tenant_id AND v.created_at = u.created_at AND v.id = u.id AND v.created_at BETWEEN @low AND @high
		LIMIT 1
	) e
) s;

-- name: MakeDueReady :many
-- Due retries become ready, in their old place. Due deferred events get their place now. None, if the clock is not
-- where the worker expects it after the time since the last read, less the known steps.
WITH due AS (
	SELECT q.tenant_id, q.delivery_id FROM queue q
	WHERE q.state IN (1, 3) AND q.due_at <= now() AND q.due_at > @since::timestamptz
		AND (SELECT now() - make_interval(secs => c.shifted - @shifted::double precision) BETWEEN @earliest::timestamptz AND @latest::timestamptz FROM clock c)
	ORDER BY q.due_at LIMIT sqlc.arg('limit')::int
	FOR UPDATE SKIP LOCKED
)
UPDATE queue q
SET state = CASE WHEN q.state = 3 AND q.order_key IS NOT NULL THEN 2 ELSE 0 END,
	seq = CASE WHEN q.state = 3 THEN nextval('queue_seq') ELSE q.seq END
FROM due WHERE q.tenant_id = due.tenant_id AND q.delivery_id = due.delivery_id
RETURNING q.endpoint_id, q.seq;

-- name: LanesToRelease :many
-- Lanes with a backlog to release, each once in a round.
SELECT endpoint_id FROM lanes WHERE release_before IS NOT NULL ORDER BY endpoint_id LIMIT sqlc.arg('limit');

-- name: LockRelease :one
-- The session that holds the row releases the next chunk. The lock is the lease: a kill leaves either all of a chunk
-- or nothing of it.
SELECT release_before::timestamptz AS release_before, release_after FROM lanes
WHERE endpoint_id = @endpoint_id AND release_before IS NOT NULL FOR UPDATE SKIP LOCKED;

-- name: ReleaseChunk :many
-- The next rows of a lane that wait for a retry, oldest first. Rows that were put back before the breaker closed
-- become ready; rows that failed after it keep their time. A row that another transaction has locked is moved by that
-- one.
WITH page AS (
	SELECT q.tenant_id, q.delivery_id, q.seq FROM queue q
	WHERE q.state = 1 AND q.endpoint_id = @endpoint_id AND q.seq > @after::bigint ORDER BY q.seq LIMIT 1000
), free AS (
	SELECT r.tenant_id, r.delivery_id FROM page JOIN queue r ON r.tenant_id = page.tenant_id AND r.delivery_id = page.delivery_id
	WHERE r.state = 1 AND (r.tried_at IS NULL OR r.tried_at <= @before::timestamptz) FOR UPDATE OF r SKIP LOCKED
), freed AS (
	UPDATE queue q SET state = 0, due_at = least(q.due_at, now()) FROM free
	WHERE q.tenant_id = free.tenant_id AND q.delivery_id = free.delivery_id RETURNING q.seq
)
SELECT page.seq, (freed.seq IS NOT NULL)::boolean AS freed FROM page LEFT JOIN freed ON freed.seq = page.seq ORDER BY page.seq;

-- name: ReleasedUpTo :exec
UPDATE lanes SET release_after = @after, release_before = CASE WHEN @done::boolean THEN NULL ELSE release_before END
WHERE endpoint_id = @endpoint_id;

-- name: MakeArrivalsReady :many
-- New keyed rows of a lane, oldest first: rows without an earlier one of their key are ready.
WITH seen AS (
	SELECT q.tenant_id, q.delivery_id, q.seq, NOT EXISTS (
		SELECT 1 FROM queue p WHERE p.endpoint_id = q.endpoint_id AND p.order_key = q.order_key AND p.state <> 3 AND p.seq < q.seq) AS head
	FROM queue q
	WHERE q.state = 2 AND q.endpoint_id = @endpoint AND q.seq > @floor::bigint
	ORDER BY q.seq LIMIT sqlc.arg('limit')::int
), readied AS (
	UPDATE queue q SET state = 0 FROM seen
	WHERE seen.head AND q.tenant_id = seen.tenant_id AND q.delivery_id = seen.delivery_id AND q.state = 2
	RETURNING q.seq
)
SELECT seen.seq, (readied.seq IS NOT NULL)::boolean AS readied
FROM seen LEFT JOIN readied ON readied.seq = seen.seq
ORDER BY seen.seq;

-- name: MakeKeysReady :many
-- The next row of each key whose head has ended.
UPDATE queue q SET state = 0
FROM ROWS FROM (unnest(@endpoints::uuid[]), unnest(@keys::text[])) AS u(endpoint_id, order_key)
CROSS JOIN LATERAL (
	SELECT r.tenant_id, r.delivery_id, r.state FROM queue r
	WHERE r.endpoint_id = u.endpoint_id AND r.order_key = u.order_key AND r.state <> 3
	ORDER BY r.seq LIMIT 1
) h
WHERE q.tenant_id = h.tenant_id AND q.delivery_id = h.delivery_id AND h.state = 2 AND q.state = 2
RETURNING q.endpoint_id, q.seq;

-- name: SweepKeys :many
-- A new owner steps from key to key, not from row to row: the oldest row of each is ready, or waits for its retry.
WITH RECURSIVE heads AS (
	(SELECT q.order_key, q.tenant_id, q.delivery_id, q.state, 1 AS n FROM queue q
	 WHERE q.endpoint_id = @endpoint AND q.order_key > @after::text AND q.state <> 3
	 ORDER BY q.order_key, q.seq LIMIT 1)
	UNION ALL
	SELECT x.order_key, x.tenant_id, x.delivery_id, x.state, heads.n + 1
	FROM heads CROSS JOIN LATERAL (
		SELECT q.order_key, q.tenant_id, q.delivery_id, q.state FROM queue q
		WHERE q.endpoint_id = @endpoint AND q.order_key > heads.order_key AND q.state <> 3
		ORDER BY q.order_key, q.seq LIMIT 1) x
	WHERE heads.n < sqlc.arg('limit')::int
), readied AS (
	UPDATE queue q SET state = 0 FROM heads
	WHERE heads.state = 2 AND q.tenant_id = heads.tenant_id AND q.delivery_id = heads.delivery_id AND q.state = 2
	RETURNING q.delivery_id
)
SELECT heads.order_key::text AS order_key, (readied.delivery_id IS NOT NULL)::boolean AS readied
FROM heads LEFT JOIN readied ON readied.delivery_id = heads.delivery_id
ORDER BY heads.n;

-- name: SettleQueue :many
-- Results that end a delivery delete its row, unless it was changed in between: then they are late.
SELECT s::uuid FROM posthorn.settle(@tenants::uuid[], @deliveries::uuid[], @gens::int[]) AS s;

-- name: RescheduleQueue :many
SELECT s::uuid FROM posthorn.reschedule(@tenants::uuid[], @deliveries::uuid[], @gens::int[], @delays_us::bigint[], @attempts::smallint[],
	@probes::smallint[]) AS s;

-- name: RecordDeliveries :exec
-- The rows exist, since their queue rows did: every one conflicts, and is found by the key. An UPDATE with a join would
-- be planned, and planned badly for a day that has just started.
INSERT INTO deliveries AS d (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, reason, attempts, last_status, last_failure, settled_at)
SELECT u.tenant_id, u.created_at, u.id, u.event_id, u.endpoint_id, u.event_type, u.status, u.reason, u.attempts, u.last_status, u.last_failure,
	CASE WHEN u.status >= 2 THEN now() END
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@created::timestamptz[]), unnest(@ids::uuid[]), unnest(@events::uuid[]),
	unnest(@endpoints::uuid[]), unnest(@types::text[]), unnest(@statuses::smallint[]),
	unnest(@reasons::smallint[]), unnest(@attempts::smallint[]), unnest(@last_statuses::smallint[]), unnest(@last_failures::smallint[]))
	AS u(tenant_id, created_at, id, event_id, endpoint_id, event_type, status, reason, attempts, last_status, last_failure)
ON CONFLICT (tenant_id, created_at, id) DO UPDATE SET status = excluded.status, reason = excluded.reason, attempts = excluded.attempts,
	last_status = excluded.last_status, last_failure = excluded.last_failure, settled_at = excluded.settled_at;

-- name: RecordLate :many
-- Attempts of deliveries that ended during their request: they count. A success wins: if it arrives after a cancel, or
-- after the delivery failed because its endpoint was deleted (5) or it waited for too long (4), the delivery becomes
-- delivered. These are returned, with their previous status.
WITH ended AS (
	SELECT d.tenant_id, d.created_at, d.id, d.status, u.attempts, u.last_status,
		u.success AND (d.status = 4 OR d.reason IN (4, 5)) AS won
	FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@created::timestamptz[]), unnest(@ids::uuid[]), unnest(@attempts::smallint[]),
		unnest(@last_statuses::smallint[]), unnest(@successes::boolean[])) AS u(tenant_id, created_at, id, attempts, last_status, success)
	JOIN deliveries d ON d.tenant_id = u.tenant_id AND d.created_at = u.created_at AND d.id = u.id
	WHERE d.created_at BETWEEN @low AND @high AND d.status IN (3, 4)
	ORDER BY d.tenant_id, d.created_at, d.id
	FOR UPDATE OF d
), counted AS (
	UPDATE deliveries d SET attempts = greatest(d.attempts, e.attempts), status = CASE WHEN e.won THEN 2 ELSE d.status END,
		reason = CASE WHEN e.won THEN 0 ELSE d.reason END, last_status = CASE WHEN e.won THEN e.last_status ELSE d.last_status END,
		settled_at = CASE WHEN e.won THEN now() ELSE d.settled_at END
	FROM ended e
	WHERE d.tenant_id = e.tenant_id AND d.created_at = e.created_at AND d.id = e.id AND d.created_at BETWEEN @low AND @high
), gone AS (
	DELETE FROM cancellations c USING ended e WHERE e.won AND c.tenant_id = e.tenant_id AND c.delivery_id = e.id
), delivered AS (
	DELETE FROM dead_letters x USING ended e WHERE e.won AND x.tenant_id = e.tenant_id AND x.delivery_id = e.id
)
SELECT tenant_id, created_at, id, status FROM ended WHERE won;

-- name: ExpungedEvents :many
-- Which of these events were expunged: the responses to their last requests are not kept.
SELECT v.id FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@created::timestamptz[]), unnest(@ids::uuid[])) AS u(tenant_id, created_at, id)
CROSS JOIN LATERAL (
	SELECT e.id, e.data IS NULL AS expunged FROM events e
	WHERE e.tenant_id = u.tenant_id AND e.created_at = u.created_at AND e.id = u.id AND e.created_at BETWEEN @low AND @high
	LIMIT 1
) v
WHERE v.expunged;

-- name: DeletedTenants :many
-- Which of these tenants were deleted: the responses to their requests are not kept.
SELECT id FROM tenants WHERE id = ANY(@tenants::uuid[]) AND state = 'deleted';

-- name: KnownAttempts :many
-- Which attempts an earlier try of the same transaction recorded, its outcome unknown until now.
SELECT a.id FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@deliveries::uuid[]), unnest(@created::timestamptz[]), unnest(@ids::uuid[]))
	AS u(tenant_id, delivery_id, created_at, id)
JOIN attempts a ON a.tenant_id = u.tenant_id AND a.delivery_id = u.delivery_id AND a.created_at = u.created_at AND a.id = u.id
WHERE a.created_at BETWEEN @low AND @high;

-- name: InsertAttempts :exec
INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, late, status, failure, dns_us, connect_us, tls_us,
	wait_us, read_us, total_us, url, format, signature, response_headers, response_excerpt, error, held_ms)
SELECT u.tenant_id, u.created_at, u.id, u.delivery_id, u.endpoint_id, u.number, u.late, u.status, u.failure, u.dns_us, u.connect_us,
	u.tls_us, u.wait_us, u.read_us, u.total_us, u.url, u.format, u.signature, nullif(u.response_headers, ''), u.response_excerpt,
	nullif(u.error, ''), u.held_ms
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@created::timestamptz[]), unnest(@ids::uuid[]), unnest(@deliveries::uuid[]),
	unnest(@endpoints::uuid[]), unnest(@numbers::smallint[]), unnest(@late::boolean[]), unnest(@statuses::smallint[]),
	unnest(@failures::smallint[]), unnest(@dns::int[]), unnest(@connect::int[]), unnest(@tls::int[]), unnest(@wait::int[]),
	unnest(@read::int[]), unnest(@total::int[]), unnest(@urls::text[]), unnest(@formats::text[]), unnest(@signatures::text[]),
	unnest(@headers::text[]), unnest(@excerpts::bytea[]), unnest(@errors::text[]), unnest(@held::int[]))
	AS u(tenant_id, created_at, id, delivery_id, endpoint_id, number, late, status, failure, dns_us, connect_us, tls_us, wait_us,
		read_us, total_us, url, format, signature, response_headers, response_excerpt, error, held_ms);

-- name: InsertDeadLetters :exec
-- If the delivery's event was dropped, the type is read from the delivery. A trial (a test event, a test inbox or a
-- listener) causes no operational event. A day that the tenant's retention would hide within a week is shown for a
-- week.
WITH late AS (
	INSERT INTO late_days AS l (tenant_id, day, until)
	SELECT x.tenant_id, x.day, now() + interval '7 days' FROM (
		SELECT DISTINCT u.tenant_id, (posthorn.created_at(u.delivery_id) AT TIME ZONE 'UTC')::date AS day
		FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@deliveries::uuid[])) AS u(tenant_id, delivery_id)
		JOIN tenants t ON t.id = u.tenant_id
		WHERE posthorn.created_at(u.delivery_id) < now() - make_interval(days => t.retention_days) + interval '7 days'
	) x
	WHERE NOT EXISTS (SELECT FROM late_days d WHERE d.tenant_id = x.tenant_id AND d.day = x.day AND d.until > now() + interval '167 hours')
	ORDER BY x.tenant_id, x.day
	ON CONFLICT (tenant_id, day) DO UPDATE SET until = greatest(l.until, excluded.until)
)
INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason, announced, trial)
SELECT f.tenant_id, f.delivery_id, f.endpoint_id, f.type, f.reason, f.trial, f.trial FROM (
	SELECT u.tenant_id, u.delivery_id, u.endpoint_id, t.type, u.reason, (t.type = 'endpoint.test'
		OR EXISTS (SELECT 1 FROM endpoints e WHERE e.tenant_id = u.tenant_id AND e.id = u.endpoint_id AND e.kind IN ('listen', 'inbox'))) AS trial
	FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@deliveries::uuid[]), unnest(@endpoints::uuid[]), unnest(@types::text[]),
		unnest(@reasons::smallint[])) AS u(tenant_id, delivery_id, endpoint_id, event_type, reason)
	CROSS JOIN LATERAL (SELECT coalesce(nullif(u.event_type, ''), (SELECT d.event_type FROM deliveries d
		WHERE d.tenant_id = u.tenant_id AND d.created_at = posthorn.created_at(u.delivery_id) AND d.id = u.delivery_id), '') AS type) t
) f
ON CONFLICT (tenant_id, delivery_id) DO UPDATE SET reason = excluded.reason, failed_at = excluded.failed_at, replayed = false;

-- name: EnterSettled :exec
INSERT INTO ledger (book_tenant, book_day, accepted, delivered, failed, canceled, expunged)
VALUES (@tenants::uuid[], @days::date[], @accepted::int[], @delivered::int[], @failed::int[], @canceled::int[], @expunged::int[]);

-- name: EnterOutcomes :exec
-- The results of deliveries and attempts, in one row: nearly every transaction of the recorder has both, and few of
-- each.
INSERT INTO ledger (book_tenant, book_day, accepted, delivered, failed, canceled, expunged, stat_endpoint, stat_type, stat_minute, stat_kind, stat_count, stat_us,
	stat_least, stat_most)
VALUES (@tenants::uuid[], @days::date[], @accepted::int[], @delivered::int[], @failed::int[], @canceled::int[], @expunged::int[],
	@endpoints::uuid[], @types::text[], @minutes::int[], @kinds::smallint[], @counts::int[], @us::bigint[], @least::int[], @longest::int[]);

-- name: EnterFailures :exec
INSERT INTO ledger (fail_endpoint, fail_minute, fail_code, fail_count)
VALUES (@endpoints::uuid[], @minutes::int[], @codes::smallint[], @counts::int[]);

-- name: DelayLanes :exec
-- Retry-After: the whole lane waits, under every owner. The response to a request that was sent during the wait
-- replaces it. A wait that was requested before a person ended it changes nothing.
UPDATE lanes l SET asked_at = CASE WHEN l.not_before > now() THEN coalesce(l.asked_at, now()) ELSE now() END,
	not_before = CASE WHEN u.replaces THEN now() + u.wait_us * interval '1 microsecond'
		ELSE greatest(l.not_before, now() + u.wait_us * interval '1 microsecond') END,
	look_at = now() + u.look_us * interval '1 microsecond'
FROM ROWS FROM (unnest(@endpoints::uuid[]), unnest(@waits_us::bigint[]), unnest(@looks_us::bigint[]), unnest(@replaces::boolean[]), unnest(@epochs::int[]))
	AS u(endpoint_id, wait_us, look_us, replaces, epoch)
WHERE l.endpoint_id = u.endpoint_id AND l.wait_epoch = u.epoch;

-- name: SaveHealth :exec
-- Counts from before a reset overwrite nothing. The last error stays until the next one.
INSERT INTO endpoint_health AS h (endpoint_id, tenant_id, epoch, consecutive_failures, auth_streak, auth_since, exhausted, unhealthy_since, tls_only_since,
	first_failure_at, last_failure_at, last_success_at, breaker_state, opened_at, next_probe_at, probes, gone_at, outage_from,
	last_status, last_failure, last_error, last_excerpt)
SELECT u.endpoint_id, u.tenant_id, u.epoch, u.failures, u.auth, u.refused, u.exhausted, u.unhealthy, u.tls, u.first, u.last, u.success, u.breaker, u.opened,
	u.probe, u.probes, u.gone, u.outage, u.status, u.failure, u.error, u.excerpt
FROM ROWS FROM (unnest(@endpoints::uuid[]), unnest(@tenants::uuid[]), unnest(@epochs::int[]), unnest(@failures::int[]), unnest(@auths::int[]), unnest(@refused::timestamptz[]),
	unnest(@exhausted::int[]), unnest(@unhealthy::timestamptz[]), unnest(@tls::timestamptz[]), unnest(@firsts::timestamptz[]),
	unnest(@lasts::timestamptz[]), unnest(@successes::timestamptz[]), unnest(@breakers::smallint[]), unnest(@opened::timestamptz[]),
	unnest(@next_probes::timestamptz[]), unnest(@probes::int[]), unnest(@gone::timestamptz[]), unnest(@outages::timestamptz[]),
	unnest(@statuses::smallint[]), unnest(@last_failures::smallint[]), unnest(@errors::text[]), unnest(@excerpts::text[]))
	AS u(endpoint_id, tenant_id, epoch, failures, auth, refused, exhausted, unhealthy, tls, first, last, success, breaker, opened, probe, probes, gone, outage,
		status, failure, error, excerpt)
ON CONFLICT (endpoint_id) DO UPDATE SET consecutive_failures = excluded.consecutive_failures, auth_streak = excluded.auth_streak,
	auth_since = excluded.auth_since,
	exhausted = excluded.exhausted, unhealthy_since = excluded.unhealthy_since, tls_only_since = excluded.tls_only_since,
	first_failure_at = excluded.first_failure_at, last_failure_at = excluded.last_failure_at,
	last_success_at = greatest(h.last_success_at, excluded.last_success_at),
	closed_at = CASE WHEN h.breaker_state <> 0 AND excluded.breaker_state = 0 THEN now() ELSE h.closed_at END,
	breaker_state = excluded.breaker_state, opened_at = excluded.opened_at, next_probe_at = excluded.next_probe_at, probes = excluded.probes,
	gone_at = excluded.gone_at, outage_from = coalesce(excluded.outage_from, h.outage_from),
	last_status = CASE WHEN excluded.last_error = '' THEN h.last_status ELSE excluded.last_status END,
	last_failure = CASE WHEN excluded.last_error = '' THEN h.last_failure ELSE excluded.last_failure END,
	last_excerpt = CASE WHEN excluded.last_error = '' THEN h.last_excerpt ELSE excluded.last_excerpt END,
	last_error = CASE WHEN excluded.last_error = '' THEN h.last_error ELSE excluded.last_error END
WHERE h.epoch = excluded.epoch;

-- name: LaneAsked :many
-- The oldest ready row of each lane that is to be tried at once, although its endpoint's breaker is open.
SELECT endpoint_id, coalesce(min(seq) FILTER (WHERE state = 0), 0)::bigint AS seq
FROM queue WHERE asked AND endpoint_id = ANY(@endpoints::uuid[]) GROUP BY endpoint_id;

-- name: NoteLimits :exec
-- What delays ready deliveries of lanes, which deliveries are in flight, and how many microseconds ago (less than 0:
-- never). Readers show why a delivery waits and how late it is.
UPDATE lanes l SET limited_by = u.limited_by, in_flight = u.in_flight::jsonb,
	limited_until = CASE WHEN u.ago_us >= 0 THEN greatest(l.limited_until, now() - u.ago_us * interval '1 microsecond') ELSE l.limited_until END
FROM ROWS FROM (unnest(@endpoints::uuid[]), unnest(@limits::smallint[]), unnest(@ago_us::bigint[]), unnest(@in_flight::text[]))
	AS u(endpoint_id, limited_by, ago_us, in_flight)
WHERE l.endpoint_id = u.endpoint_id AND l.owner = @worker::uuid
	AND (l.limited_by <> u.limited_by OR u.ago_us >= 0 OR l.in_flight <> u.in_flight::jsonb);

-- name: LaneHealth :many
SELECT * FROM endpoint_health WHERE endpoint_id = ANY(@endpoints::uuid[]);

-- name: DisableEndpoint :one
-- By Posthorn, not by a person. No row: it was not active any more.
UPDATE endpoints SET status = 'disabled', status_reason = @reason, status_at = now(), updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND status = 'active' AND deleted_at IS NULL
RETURNING *;

-- name: LaneRevsOf :many
-- The same for lanes of a notification.
SELECT endpoint_id, rev, held, deleted, drop_below, wait_epoch FROM lanes WHERE owner = @worker::uuid AND endpoint_id = ANY(@endpoints::uuid[]);

-- name: LaneCounts :many
-- How many lanes each live worker holds.
SELECT w.id, count(l.endpoint_id) AS lanes FROM workers w LEFT JOIN lanes l ON l.owner = w.id WHERE NOT w.dead GROUP BY w.id;

-- name: NextDue :one
-- Seconds until the next retry or deferred event is due; null if there is none.
SELECT extract(epoch FROM min(due_at) - now())::double precision AS seconds
FROM (SELECT due_at FROM queue WHERE state IN (1, 3) AND due_at > @since::timestamptz ORDER BY due_at LIMIT 1) q;
