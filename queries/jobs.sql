-- Periodic maintenance, done by the first worker that finds it due.

-- name: ClaimPeriodic :one
-- Claims a periodic job that was not done within an interval, by the database's clock. No row: it is not due, or
-- another worker does it.
UPDATE chores SET done_at = now()
WHERE name = (SELECT c.name FROM chores c
	WHERE c.name = @chore AND c.done_at <= now() - make_interval(secs => @seconds)
	FOR UPDATE SKIP LOCKED)
RETURNING name;

-- name: InsertPeriodic :exec
INSERT INTO chores (name) VALUES (@name) ON CONFLICT DO NOTHING;

-- name: FoldLedger :one
-- Moves entries of the ledger into the totals and the roll-ups of minutes. Readers add both, so the moment does not
-- matter. The arrays are unnested in the select list: ROWS FROM would set up each function again for every entry.
WITH taken AS (
	DELETE FROM ledger WHERE id IN (SELECT l.id FROM ledger l ORDER BY l.id LIMIT sqlc.arg('limit')::int)
	RETURNING book_tenant, book_day, accepted, delivered, failed, canceled, expunged, events, stat_endpoint, stat_type, stat_minute, stat_kind, stat_count, stat_us, stat_least, stat_most,
		fail_endpoint, fail_minute, fail_code, fail_count
), book AS (
	INSERT INTO books AS b (tenant_id, day, accepted, delivered, failed, canceled, expunged, events)
	SELECT u.tenant_id, u.day, sum(u.accepted), sum(u.delivered), sum(u.failed), sum(u.canceled), sum(u.expunged), sum(coalesce(u.events, 0))
	FROM (SELECT unnest(t.book_tenant) AS tenant_id, unnest(t.book_day) AS day, unnest(t.accepted) AS accepted, unnest(t.delivered) AS delivered,
		unnest(t.failed) AS failed, unnest(t.canceled) AS canceled, unnest(t.expunged) AS expunged, unnest(t.events) AS events FROM taken t) u
	GROUP BY u.tenant_id, u.day ORDER BY u.tenant_id, u.day
	ON CONFLICT (tenant_id, day) DO UPDATE SET accepted = b.accepted + excluded.accepted, delivered = b.delivered + excluded.delivered,
		failed = b.failed + excluded.failed, canceled = b.canceled + excluded.canceled, expunged = b.expunged + excluded.expunged, events = b.events + excluded.events
), stat AS (
	INSERT INTO endpoint_stats AS s (tenant_id, endpoint_id, width, bucket, event_type, kind, n, us, least_us, most_us)
	SELECT e.tenant_id, g.endpoint_id, 60, to_timestamp(g.minute::bigint * 60), g.event_type, g.kind, g.n, g.us, g.least_us, g.most_us
	FROM (
		-- Entries of older processes have no shortest and longest duration.
		SELECT u.endpoint_id, u.minute, u.event_type, u.kind, sum(u.n)::bigint AS n, sum(u.us)::bigint AS us,
			min(coalesce(u.least_us, 0)) AS least_us, max(coalesce(u.most_us, 2147483647)) AS most_us
		FROM (SELECT unnest(t.stat_endpoint) AS endpoint_id, unnest(t.stat_type) AS event_type, unnest(t.stat_minute) AS minute,
			unnest(t.stat_kind) AS kind, unnest(t.stat_count) AS n, unnest(t.stat_us) AS us,
			unnest(t.stat_least) AS least_us, unnest(t.stat_most) AS most_us FROM taken t) u
		GROUP BY u.endpoint_id, u.minute, u.event_type, u.kind
	) g JOIN endpoints e ON e.id = g.endpoint_id
	ORDER BY e.tenant_id, g.endpoint_id, g.minute, g.event_type, g.kind
	ON CONFLICT (tenant_id, endpoint_id, width, bucket, event_type, kind) DO UPDATE SET n = s.n + excluded.n, us = s.us + excluded.us,
		least_us = least(s.least_us, excluded.least_us), most_us = greatest(s.most_us, excluded.most_us)
), failure AS (
	INSERT INTO endpoint_failures AS f (tenant_id, endpoint_id, bucket, code, n)
	SELECT e.tenant_id, g.endpoint_id, to_timestamp(g.minute::bigint * 60), g.code, g.n
	FROM (
		SELECT u.endpoint_id, u.minute, u.code, sum(u.n)::bigint AS n
		FROM (SELECT unnest(t.fail_endpoint) AS endpoint_id, unnest(t.fail_minute) AS minute, unnest(t.fail_code) AS code, unnest(t.fail_count) AS n
			FROM taken t) u
		GROUP BY u.endpoint_id, u.minute, u.code
	) g JOIN endpoints e ON e.id = g.endpoint_id
	ORDER BY e.tenant_id, g.endpoint_id, g.minute, g.code
	ON CONFLICT (tenant_id, endpoint_id, bucket, code) DO UPDATE SET n = f.n + excluded.n
)
SELECT count(*) FROM taken;

-- name: FoldHours :exec
-- The roll-ups of the present hour and the one before, computed again from their minutes: repeating it changes nothing.
INSERT INTO endpoint_stats AS s (tenant_id, endpoint_id, width, bucket, event_type, kind, n, us, least_us, most_us)
SELECT m.tenant_id, m.endpoint_id, 3600, date_trunc('hour', m.bucket, 'UTC') AS hour, m.event_type, m.kind, sum(m.n)::bigint, sum(m.us)::bigint,
	min(m.least_us), max(m.most_us)
FROM endpoint_stats m
WHERE m.width = 60 AND m.bucket >= date_trunc('hour', now(), 'UTC') - interval '1 hour'
GROUP BY 1, 2, 4, 5, 6
ORDER BY 1, 2, 4, 5, 6
ON CONFLICT (tenant_id, endpoint_id, width, bucket, event_type, kind) DO UPDATE SET n = excluded.n, us = excluded.us,
	least_us = excluded.least_us, most_us = excluded.most_us
WHERE s.n <> excluded.n;

-- name: ExpireIdempotencyKeys :execrows
DELETE FROM idempotency_keys k
USING (SELECT i.tenant_id, i.key FROM idempotency_keys i WHERE i.expires_at < now() LIMIT sqlc.arg('limit')::int) old
WHERE k.tenant_id = old.tenant_id AND k.key = old.key AND k.expires_at < now();

-- name: ForgetExpired :one
-- Expired sessions, links in mails, and counts of tries: some of each, and how many there were of the most. They open
-- nothing any more, but they name people.
WITH sessions_gone AS (
	DELETE FROM sessions WHERE id IN (SELECT s.id FROM sessions s WHERE s.expires_at < now() ORDER BY s.expires_at LIMIT sqlc.arg('limit')::int) RETURNING 1
), links_gone AS (
	DELETE FROM one_time_links WHERE hash IN (SELECT l.hash FROM one_time_links l WHERE l.expires_at < now() ORDER BY l.expires_at LIMIT sqlc.arg('limit')::int) RETURNING 1
), limits_gone AS (
	DELETE FROM account_limits WHERE key IN (SELECT a.key FROM account_limits a WHERE a.until < now() ORDER BY a.until LIMIT sqlc.arg('limit')::int) RETURNING 1
), mails_gone AS (
	DELETE FROM mail_limits WHERE key IN (SELECT m.key FROM mail_limits m WHERE m.until < now() ORDER BY m.until LIMIT sqlc.arg('limit')::int) RETURNING 1
)
SELECT greatest((SELECT count(*) FROM sessions_gone), (SELECT count(*) FROM links_gone), (SELECT count(*) FROM limits_gone),
	(SELECT count(*) FROM mails_gone))::bigint AS n;

-- name: DropOldStats :execrows
DELETE FROM endpoint_stats WHERE (width = 60 AND bucket < now() - interval '3 days') OR bucket < now() - make_interval(days => @days);

-- name: DropOldFailures :execrows
-- The notice covers the last 24 hours.
DELETE FROM endpoint_failures WHERE bucket < now() - interval '2 days';

-- name: DeletedLanes :many
SELECT endpoint_id, tenant_id FROM lanes WHERE deleted LIMIT sqlc.arg('limit')::int;

-- name: TakeDeletedRows :many
-- Rows of a deleted endpoint, to be failed.
DELETE FROM queue q
USING (SELECT r.tenant_id, r.delivery_id FROM queue r WHERE r.state IN (0, 1, 2, 3) AND r.endpoint_id = @endpoint LIMIT sqlc.arg('limit')::int FOR UPDATE SKIP LOCKED) t
WHERE q.tenant_id = t.tenant_id AND q.delivery_id = t.delivery_id
RETURNING q.tenant_id, q.delivery_id, q.event_id, q.attempts;

-- name: EndpointKind :one
SELECT kind FROM endpoints WHERE id = @id;

-- name: TakeExpiringRows :many
-- Rows whose delivery or event is of a day that will be dropped, and that could be sent since before @overdue.
DELETE FROM queue q
USING (SELECT r.tenant_id, r.delivery_id FROM queue r WHERE (r.delivery_id < @before OR r.event_id < @before)
	AND posthorn.waits_since(r.tenant_id, r.delivery_id, r.event_id) < @overdue::timestamptz LIMIT sqlc.arg('limit')::int FOR UPDATE SKIP LOCKED) t
WHERE q.tenant_id = t.tenant_id AND q.delivery_id = t.delivery_id
RETURNING q.tenant_id, q.delivery_id, q.event_id, q.attempts;

-- name: TakeExpiredRows :many
-- Rows of deliveries that were not sent before their expiry.
DELETE FROM queue q
USING (SELECT r.tenant_id, r.delivery_id FROM queue r WHERE r.expires_at <= @now::timestamptz
	ORDER BY r.expires_at LIMIT sqlc.arg('limit')::int FOR UPDATE SKIP LOCKED) t
WHERE q.tenant_id = t.tenant_id AND q.delivery_id = t.delivery_id
RETURNING q.tenant_id, q.delivery_id, q.event_id, q.attempts, q.endpoint_id;

-- name: BumpTakenLanes :exec
-- Rows of these lanes, of any tenant, were taken away: their owners read again. In one order, so that no two wait for
-- each other.
UPDATE lanes SET rev = rev + 1
WHERE endpoint_id IN (SELECT l.endpoint_id FROM lanes l WHERE l.endpoint_id = ANY(@endpoints::uuid[]) ORDER BY l.endpoint_id FOR UPDATE);

-- name: FailDeliveries :many
-- Ends deliveries whose queue rows were deleted; the result becomes dead letters.
UPDATE deliveries d SET status = 3, reason = @reason, settled_at = now()
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@created::timestamptz[]), unnest(@ids::uuid[])) AS u(tenant_id, created_at, id)
WHERE d.tenant_id = u.tenant_id AND d.created_at = u.created_at AND d.id = u.id AND d.created_at BETWEEN @low AND @high
RETURNING d.tenant_id, d.id, d.endpoint_id, d.event_type;

-- name: RemoveLane :execrows
DELETE FROM lanes l WHERE l.endpoint_id = @endpoint AND l.deleted AND l.owner IS NULL
AND NOT EXISTS (SELECT 1 FROM queue q WHERE q.state IN (0, 1, 2, 3) AND q.endpoint_id = l.endpoint_id);

-- name: LongestRetries :one
-- How many seconds the longest schedule of an endpoint's own takes, without jitter.
SELECT coalesce(max((SELECT sum(d) FROM unnest(e.retry_delays) AS d)), 0)::bigint FROM endpoints e WHERE e.deleted_at IS NULL AND e.retry_delays IS NOT NULL;

-- name: KeptDays :many
-- Days before a moment that are kept although no tenant keeps them: a delivery waits in them, or for one of their events,
-- or one ended late.
SELECT (posthorn.created_at(q.delivery_id) AT TIME ZONE 'UTC')::date AS day FROM queue q WHERE q.delivery_id < @before
UNION
SELECT (posthorn.created_at(q.event_id) AT TIME ZONE 'UTC')::date FROM queue q WHERE q.event_id < @before
UNION
SELECT l.day FROM late_days l WHERE l.until > @now;

-- name: ForgetLateDays :execrows
DELETE FROM late_days WHERE until <= @now;

-- name: DropOldDeadLetters :execrows
DELETE FROM dead_letters WHERE delivery_id >= @since AND delivery_id < @before;

-- name: DropOldReplays :execrows
DELETE FROM replays WHERE delivery_id >= @since AND delivery_id < @before;

-- name: DropOldCancellations :execrows
DELETE FROM cancellations WHERE delivery_id >= @since AND delivery_id < @before;

-- name: LongestRetention :one
-- Days that some tenant keeps its history: the platform's horizon.
SELECT coalesce(max(retention_days), 90)::int FROM tenants WHERE state <> 'deleted';

-- name: PendingVerifications :many
-- Verifications that are due; the claim holds for a minute, so that a worker that dies gives it up.
UPDATE verifications v SET tries = v.tries + 1, due_at = now() + interval '1 minute'
FROM (SELECT p.tenant_id, p.id FROM verifications p WHERE p.state = 'pending' AND p.due_at <= now() ORDER BY p.due_at LIMIT sqlc.arg('limit')::int FOR UPDATE SKIP LOCKED) due
WHERE v.tenant_id = due.tenant_id AND v.id = due.id
RETURNING v.tenant_id, v.id, v.endpoint_id, v.challenge, v.tries;

-- name: FinishVerification :execrows
UPDATE verifications SET state = @state, done_at = now(), last_status = sqlc.narg('last_status'), last_detail = @last_detail
WHERE tenant_id = @tenant_id AND id = @id AND state = 'pending';

-- name: PostponeVerification :exec
UPDATE verifications SET due_at = now() + make_interval(secs => @seconds), last_status = sqlc.narg('last_status'), last_detail = @last_detail
WHERE tenant_id = @tenant_id AND id = @id AND state = 'pending';

-- name: PendingSecretChecks :many
-- Checks of secrets that are due; the claim holds for a minute, as that of a verification.
UPDATE endpoint_secrets s SET check_due_at = now() + interval '1 minute'
FROM (SELECT p.tenant_id, p.id FROM endpoint_secrets p WHERE p.check_state = 'pending' AND p.check_due_at <= now()
	ORDER BY p.check_due_at LIMIT sqlc.arg('limit')::int FOR UPDATE SKIP LOCKED) due
WHERE s.tenant_id = due.tenant_id AND s.id = due.id
RETURNING s.tenant_id, s.id, s.endpoint_id, s.checked_at;

-- name: FinishSecretCheck :exec
-- Not one that a later request has replaced.
UPDATE endpoint_secrets SET check_state = @state::text, checked_at = now(), check_due_at = NULL, check_status = sqlc.narg('status'), check_detail = @detail
WHERE tenant_id = @tenant_id AND id = @id AND check_state = 'pending' AND checked_at = @requested_at::timestamptz;

-- name: LimitRate :one
UPDATE endpoints SET rate_limit = @rate_limit, updated_at = now() WHERE tenant_id = @tenant_id AND id = @id RETURNING *;

-- name: ActivateEndpoint :one
-- No row: the endpoint was changed, paused or deleted while it was being verified.
UPDATE endpoints SET status = 'active', status_reason = '', status_at = now(), verified_at = now(), updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND status IN ('unverified', 'disabled') AND deleted_at IS NULL
RETURNING *;

-- name: PendingByAge :many
-- How many deliveries wait, by age and by reason (domain/condition), how many of them only the platform delays
-- (ready), and for how long the oldest of those has been due; counted up to a bound that keeps the query cheap.
-- Deliveries of a deleted endpoint have no reason. The states of lanes are computed before the join (OFFSET 0), once
-- each. Ages come from comparing ids, which begin with their time, and only the oldest id of each lane is decoded:
-- decoding each takes ten times as long, a fifth of a second of a core with a long backlog.
SELECT o.bucket, o.reason::text AS reason, sum(o.n)::bigint AS n, sum(o.due)::bigint AS ready,
	coalesce(extract(epoch FROM now() - min(greatest(least(o.due_at, posthorn.created_at(o.oldest::uuid)), o.since))
		FILTER (WHERE o.due > 0)), 0)::double precision AS lag_seconds
FROM (
	SELECT (CASE WHEN q.delivery_id >= cut.recent THEN 0 WHEN q.delivery_id >= cut.hour THEN 1 WHEN q.delivery_id >= cut.day THEN 2 ELSE 3 END)::int AS bucket,
		q.reason, q.endpoint_id, q.since, count(*) AS n, count(*) FILTER (WHERE q.due) AS due,
		min(q.due_at) FILTER (WHERE q.due) AS due_at, min(q.delivery_id::text COLLATE "C") FILTER (WHERE q.due AND q.due_at IS NULL) AS oldest
	FROM (
		SELECT w.endpoint_id, w.delivery_id, w.due_at, l.since, w.state = 0 AND l.due AS due,
			CASE WHEN l.endpoint_id IS NULL THEN '' WHEN l.in_flight ? w.delivery_id::text AND coalesce(w.due_at <= now(), true) THEN 'in_flight' ELSE posthorn.row_waits(w.state, w.due_at, w.asked, l.condition, l.waits, l.not_before) END AS reason
		FROM queue w LEFT JOIN (
			SELECT s.*, f.in_flight FROM posthorn.lane_states(NULL, @silent_seconds)
				AS s(endpoint_id, tenant_id, listens, condition, waits, ready, due, not_before, since)
				LEFT JOIN lanes f ON f.endpoint_id = s.endpoint_id AND f.owner IS NOT NULL AND f.in_flight <> '{}' OFFSET 0
		) l ON l.endpoint_id = w.endpoint_id LIMIT 200000
	) q, (
		SELECT posthorn.first_id(now() - interval '5 minutes') AS recent, posthorn.first_id(now() - interval '1 hour') AS hour,
			posthorn.first_id(now() - interval '24 hours') AS day
		OFFSET 0
	) cut
	GROUP BY 1, 2, 3, 4
) o
GROUP BY 1, 2;

-- name: CountDeadLetters :one
-- Of all tenants (domain/delivery defines dead letters). What a tenant's retention hides is not counted.
SELECT count(*) FROM (SELECT 1 FROM dead_letters x
	JOIN (SELECT t.id, posthorn.first_id(now() - make_interval(days => t.retention_days)) AS oldest FROM tenants t WHERE t.state <> 'deleted' OFFSET 0) t
		ON t.id = x.tenant_id AND x.delivery_id > t.oldest
	WHERE NOT x.archived AND NOT x.replayed
		AND x.trial IS NOT TRUE LIMIT 100000) d;
