-- What the console shows, across tenants. Runs as the console role. Large counts are bounded, so that a page never
-- slows the engine.

-- name: ConsoleTenants :many
-- Tenants: those with the most open breakers first, the newest first (@sort is newest), by name (name), or by their
-- waiting deliveries (waiting), which are counted up to 10,001. @before is the last tenant of the previous page; the
-- order by waiting has one page. Only endpoints of the page's tenants are counted, by condition. Events are those of
-- today and yesterday, UTC.
WITH failing AS MATERIALIZED (
	SELECT h.tenant_id, count(*) AS n FROM endpoint_health h JOIN endpoints e ON e.id = h.endpoint_id AND e.deleted_at IS NULL
	WHERE h.breaker_state <> 0 GROUP BY h.tenant_id
)
SELECT p.id, p.name, p.external_id, p.state, p.retention_days, p.created_at, c.endpoints, c.disabled, c.failing, v.n AS events, w.n AS waiting
FROM (
	SELECT t.id, t.name, t.external_id, t.state, t.retention_days, t.created_at, coalesce(f.n, 0) AS failing
	FROM tenants t LEFT JOIN failing f ON f.tenant_id = t.id
	WHERE t.state <> 'deleted' AND (@part::text = '' OR position(lower(@part::text) IN lower(t.name)) > 0 OR t.external_id = @part::text)
		AND (@state::text = '' OR t.state = @state::text)
		AND CASE @sort::text
			WHEN 'name' THEN coalesce((lower(t.name), t.id) > (SELECT lower(b.name), b.id FROM tenants b WHERE b.id = @before::uuid), true)
			WHEN 'waiting' THEN true
			WHEN 'newest' THEN t.id < @before::uuid
			ELSE coalesce((coalesce(f.n, 0), t.id) < (SELECT coalesce(o.n, 0), b.id FROM tenants b LEFT JOIN failing o ON o.tenant_id = b.id WHERE b.id = @before::uuid), true)
		END
	ORDER BY CASE WHEN @sort = 'waiting' THEN (SELECT count(*) FROM (SELECT 1 FROM queue q WHERE q.tenant_id = t.id LIMIT 10001) x) END DESC,
		CASE WHEN @sort = '' THEN coalesce(f.n, 0) END DESC,
		CASE WHEN @sort = 'name' THEN lower(t.name) END, CASE WHEN @sort = 'name' THEN t.id END, t.id DESC
	LIMIT sqlc.arg('limit')
) p
CROSS JOIN LATERAL (SELECT count(*) AS n FROM (SELECT 1 FROM queue q WHERE q.tenant_id = p.id LIMIT 10001) x) w
CROSS JOIN LATERAL (
	SELECT count(*) AS endpoints, count(*) FILTER (WHERE s.condition = 'disabled') AS disabled, count(*) FILTER (WHERE s.condition = 'failing') AS failing
	FROM posthorn.lane_states(p.id, @silent_seconds)
		AS s(endpoint_id, tenant_id, listens, condition, waits, ready, due, not_before, since)
	WHERE NOT s.listens
) c
CROSS JOIN LATERAL (
	SELECT coalesce(sum(b.events), 0)::bigint AS n FROM books b WHERE b.tenant_id = p.id AND b.day >= (now() AT TIME ZONE 'UTC')::date - 1
) v
ORDER BY CASE WHEN @sort = 'waiting' THEN w.n END DESC, CASE WHEN @sort = '' THEN p.failing END DESC,
	CASE WHEN @sort = 'name' THEN lower(p.name) END, CASE WHEN @sort = 'name' THEN p.id END, p.id DESC;

-- name: ConsoleTotals :one
-- The whole platform in one line. Waiting deliveries are counted up to 200,000, dead letters and rejected events up to
-- 100,000.
SELECT (SELECT count(*) FROM tenants WHERE state <> 'deleted') AS tenants,
	(SELECT count(*) FROM tenants WHERE state = 'suspended') AS suspended,
	(SELECT count(*) FROM endpoints WHERE deleted_at IS NULL AND kind <> 'listen') AS endpoints,
	(SELECT count(*) FROM endpoints WHERE deleted_at IS NULL AND status = 'disabled' AND status_at > now() - interval '24 hours') AS disabled_today,
	(SELECT count(*) FROM (SELECT DISTINCT h.tenant_id FROM endpoint_health h WHERE h.breaker_state <> 0) f
		CROSS JOIN LATERAL posthorn.lane_states(f.tenant_id, @silent_seconds) AS s(endpoint_id, tenant_id, listens, condition, waits, ready, due, not_before, since)
		WHERE s.condition = 'failing' AND NOT s.listens) AS breakers_open,
	(SELECT count(*) FROM workers WHERE NOT dead AND coalesce(beat_at > now() - make_interval(secs => @silent_seconds::float8), true)) AS workers,
	(SELECT count(*) FROM workers WHERE (dead OR beat_at <= now() - make_interval(secs => @silent_seconds::float8)) AND beat_at > now() - interval '1 hour') AS workers_lost,
	(SELECT coalesce(sum(amount), 0)::bigint FROM book_differences WHERE open) AS books_differ,
	(SELECT count(*) FROM (SELECT 1 FROM outbox_rejected WHERE source_id IS NULL LIMIT 100000) x) AS rejected,
	(SELECT count(*) FROM (SELECT 1 FROM queue LIMIT 200000) x) AS waiting,
	(SELECT count(*) FROM (SELECT 1 FROM dead_letters d
		JOIN (SELECT t.id, posthorn.first_id(now() - make_interval(days => t.retention_days)) AS oldest FROM tenants t WHERE t.state <> 'deleted' OFFSET 0) t
			ON t.id = d.tenant_id AND d.delivery_id > t.oldest
		WHERE NOT d.archived AND NOT d.replayed
			AND d.trial IS NOT TRUE LIMIT 100000) x) AS dead_letters,
	(SELECT count(*) FROM mails WHERE state = 'failed') AS mails_failed;

-- name: ConsoleOldestDue :many
-- The tenants whose deliveries have been due for the longest with only the platform delaying them: no pause, no
-- breaker, no limit of the endpoint, and no request in flight. Each tenant with a queue costs an index step, and of
-- each lane only the head counts, whatever the length of the backlog. The row names the lane and its owner.
WITH RECURSIVE waiting AS (
	(SELECT q.tenant_id FROM queue q ORDER BY q.tenant_id LIMIT 1)
	UNION ALL
	SELECT (SELECT q.tenant_id FROM queue q WHERE q.tenant_id > w.tenant_id ORDER BY q.tenant_id LIMIT 1) FROM waiting w WHERE w.tenant_id IS NOT NULL
)
SELECT t.id, t.name, o.ready_at::timestamptz AS ready_at, o.lanes, e.id AS endpoint_id, e.url, e.description, coalesce(w.name, '') AS owner
FROM (
	SELECT l.tenant_id, min(h.due) AS ready_at, count(*) AS lanes, (array_agg(l.endpoint_id ORDER BY h.due))[1]::uuid AS lane
	FROM (SELECT w.tenant_id FROM waiting w WHERE w.tenant_id IS NOT NULL) w
	CROSS JOIN LATERAL posthorn.lane_states(w.tenant_id, @silent_seconds)
		AS l(endpoint_id, tenant_id, listens, condition, waits, ready, due, not_before, since)
	JOIN lanes f ON f.endpoint_id = l.endpoint_id
	CROSS JOIN LATERAL (
		SELECT greatest(coalesce(q.due_at, posthorn.created_at(q.delivery_id)), l.since) AS due
		FROM queue q WHERE q.state = 0 AND q.endpoint_id = l.endpoint_id AND NOT (l.waits = 'next' AND f.in_flight ? q.delivery_id::text)
		ORDER BY q.seq LIMIT 1
	) h
	WHERE l.due
	GROUP BY l.tenant_id
	ORDER BY ready_at LIMIT sqlc.arg('limit')
) o JOIN tenants t ON t.id = o.tenant_id JOIN endpoints e ON e.id = o.lane JOIN lanes x ON x.endpoint_id = o.lane LEFT JOIN workers w ON w.id = x.owner
ORDER BY o.ready_at;

-- name: ConsoleBacklogs :many
-- The tenants of the first 200,000 waiting deliveries, and how many of these only the platform delays. The tenant with
-- the most is first.
WITH waiting AS MATERIALIZED (
	SELECT q.tenant_id, q.endpoint_id, count(*) AS n, count(*) FILTER (WHERE q.state = 0) AS sendable
	FROM (SELECT w.tenant_id, w.endpoint_id, w.state FROM queue w LIMIT 200000) q GROUP BY 1, 2
)
SELECT t.id, t.name, b.n AS waiting, b.ready, sum(b.ready) OVER ()::bigint AS all_ready
FROM (
	SELECT w.tenant_id, sum(w.n)::bigint AS n, coalesce(sum(w.sendable) FILTER (WHERE l.due), 0)::bigint AS ready
	FROM waiting w LEFT JOIN (
		SELECT s.endpoint_id, s.due FROM (SELECT DISTINCT x.tenant_id FROM waiting x) x
		CROSS JOIN LATERAL posthorn.lane_states(x.tenant_id, @silent_seconds)
			AS s(endpoint_id, tenant_id, listens, condition, waits, ready, due, not_before, since)
	) l ON l.endpoint_id = w.endpoint_id
	GROUP BY w.tenant_id
) b JOIN tenants t ON t.id = b.tenant_id
ORDER BY b.ready DESC, b.n DESC
LIMIT sqlc.arg('limit');

-- name: ConsoleShares :many
-- Who used the workers in the last ten minutes: attempts, and the time that their requests took. An endpoint costs one
-- index step.
SELECT t.id, t.name, sum(x.n)::bigint AS attempts, sum(x.us)::bigint AS us, count(*) AS endpoints,
	sum(sum(x.n)) OVER ()::bigint AS all_attempts, sum(sum(x.us)) OVER ()::bigint AS all_us
FROM (
	SELECT l.tenant_id, s.n, s.us FROM lanes l CROSS JOIN LATERAL (
		SELECT sum(e.n) AS n, sum(e.us) AS us FROM endpoint_stats e
		WHERE e.tenant_id = l.tenant_id AND e.endpoint_id = l.endpoint_id AND e.width = 60 AND e.bucket >= now() - interval '10 minutes'
	) s
	WHERE s.n > 0
) x JOIN tenants t ON t.id = x.tenant_id
GROUP BY t.id, t.name
ORDER BY us DESC
LIMIT sqlc.arg('limit');

-- name: ConsoleWorkers :many
-- The workers and how many lanes each holds, live ones first. A worker is not live when its last beat is too old, even
-- if no other worker is left to declare it dead.
SELECT w.id, w.name, w.dead, w.started_at, w.beat_at, (SELECT count(*) FROM lanes l WHERE l.owner = w.id) AS lanes,
	coalesce(w.beat_at <= now() - make_interval(secs => @silent_seconds::float8), false)::boolean AS silent
FROM workers w
ORDER BY w.dead, w.started_at;

-- name: ConsoleLanes :many
-- The lanes with the longest backlogs among the first 200,000 waiting deliveries.
SELECT e.tenant_id, t.name AS tenant_name, e.id AS endpoint_id, e.url, e.description, b.n AS waiting, b.ready, b.oldest::timestamptz AS oldest,
	coalesce(w.name, '') AS owner, l.leased_at
FROM (
	SELECT q.endpoint_id, count(*) AS n, count(*) FILTER (WHERE q.state = 0) AS ready, posthorn.created_at(min(q.delivery_id::text)::uuid) AS oldest
	FROM (SELECT endpoint_id, state, delivery_id FROM queue LIMIT 200000) q
	GROUP BY q.endpoint_id ORDER BY count(*) DESC LIMIT sqlc.arg('limit')
) b
JOIN lanes l ON l.endpoint_id = b.endpoint_id
JOIN endpoints e ON e.id = b.endpoint_id
JOIN tenants t ON t.id = e.tenant_id
LEFT JOIN workers w ON w.id = l.owner
ORDER BY b.n DESC;

-- name: ConsoleHosts :many
-- Endpoints by the host of their URL, over all tenants: a host that is down is one row. @failing leaves out hosts
-- without a failing endpoint. active counts endpoints that are sent to, including those with an open breaker or a
-- requested wait.
WITH known AS MATERIALIZED (
	SELECT e.id, coalesce(substring(lower(e.url) FROM '^[a-z]+://([^/?#]+)'), '') AS host, coalesce(h.consecutive_failures, 0) AS consecutive_failures,
		h.last_failure_at, h.last_status, h.last_failure, coalesce(h.breaker_state, 0) <> 0 OR coalesce(h.consecutive_failures, 0) > 0 AS fails
	FROM endpoints e LEFT JOIN endpoint_health h ON h.endpoint_id = e.id
	WHERE e.deleted_at IS NULL AND (NOT @failing::boolean OR EXISTS (SELECT FROM endpoint_health f WHERE f.breaker_state <> 0 OR f.consecutive_failures > 0))
)
SELECT x.host::text AS host, count(*) AS endpoints, count(DISTINCT x.tenant_id) AS tenants,
	count(*) FILTER (WHERE x.condition IN ('active', 'waiting_for_worker', 'failing', 'asked_to_wait')) AS active, count(*) FILTER (WHERE x.condition = 'disabled') AS disabled,
	count(*) FILTER (WHERE x.condition = 'failing') AS breakers_open, count(*) FILTER (WHERE x.condition = 'paused_by_operator') AS paused,
	count(*) FILTER (WHERE x.consecutive_failures > 0 AND x.condition IN ('active', 'waiting_for_worker', 'failing', 'asked_to_wait')) AS failing,
	count(*) FILTER (WHERE x.condition = 'unverified') AS unverified,
	coalesce(mode() WITHIN GROUP (ORDER BY x.last_status) FILTER (WHERE x.consecutive_failures > 0), 0)::smallint AS last_status,
	coalesce(mode() WITHIN GROUP (ORDER BY x.last_failure) FILTER (WHERE x.consecutive_failures > 0), 0)::smallint AS last_failure,
	coalesce(max(x.last_failure_at), 'epoch')::timestamptz AS last_failure_at
FROM (
	SELECT k.host, k.consecutive_failures, k.last_failure_at, k.last_status, k.last_failure, s.tenant_id, s.condition
	FROM posthorn.lane_states(NULL, @silent_seconds)
		AS s(endpoint_id, tenant_id, listens, condition, waits, ready, due, not_before, since)
	JOIN known k ON k.id = s.endpoint_id
	WHERE NOT @failing::boolean OR k.host IN (SELECT f.host FROM known f WHERE f.fails)
) x
WHERE @part::text = '' OR position(lower(@part::text) IN x.host) > 0
GROUP BY x.host
HAVING NOT @failing::boolean OR count(*) FILTER (WHERE x.condition = 'failing' OR x.consecutive_failures > 0) > 0
ORDER BY breakers_open DESC, failing DESC, disabled DESC, endpoints DESC
LIMIT sqlc.arg('limit');

-- name: ConsoleEndpoints :many
-- Endpoints that fail, are disabled, or asked for a long wait: of all tenants, of one tenant, or at one host, the
-- worst first.
SELECT e.tenant_id, t.name AS tenant_name, e.id, e.url, e.description,
	coalesce(h.last_status, 0)::smallint AS last_status, coalesce(h.last_failure, 0)::smallint AS last_failure
FROM endpoints e JOIN tenants t ON t.id = e.tenant_id LEFT JOIN endpoint_health h ON h.endpoint_id = e.id
WHERE e.deleted_at IS NULL AND (sqlc.narg('tenant')::uuid IS NULL OR e.tenant_id = sqlc.narg('tenant')) AND CASE
	WHEN sqlc.narg('tenant')::uuid IS NOT NULL THEN true
	WHEN @host::text <> '' THEN coalesce(substring(lower(e.url) FROM '^[a-z]+://([^/?#]+)'), '') = @host
	ELSE e.status = 'disabled' OR coalesce(h.breaker_state, 0) <> 0 OR coalesce(h.consecutive_failures, 0) > 0
		OR e.id IN (SELECT l.endpoint_id FROM lanes l WHERE l.not_before > now() + interval '15 minutes') END
ORDER BY coalesce(h.breaker_state, 0) <> 0 DESC, coalesce(h.consecutive_failures, 0) DESC, e.status = 'disabled' DESC, e.id DESC
LIMIT sqlc.arg('limit');

-- name: ConsoleOperators :many
SELECT id, email, name FROM operators;

-- name: TenantActivity :one
-- Who can use a tenant, and when anybody last did: its newest event, a request with a key, or a member's page.
SELECT (SELECT count(*) FROM memberships m WHERE m.tenant_id = @tenant_id) AS members,
	(SELECT count(*) FROM api_keys k WHERE k.tenant_id = @tenant_id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())) AS keys,
	coalesce((SELECT e.created_at FROM events e WHERE e.tenant_id = @tenant_id ORDER BY e.created_at DESC, e.id DESC LIMIT 1), 'epoch')::timestamptz AS last_event,
	coalesce((SELECT max(k.last_used_at) FROM api_keys k WHERE k.tenant_id = @tenant_id), 'epoch')::timestamptz AS last_key,
	(SELECT coalesce(sum(b.events), 0)::bigint FROM books b WHERE b.tenant_id = @tenant_id AND b.day >= (now() AT TIME ZONE 'UTC')::date - 1) AS events;

-- name: LastOfTenant :one
-- The last entry of an action about a tenant: who did it, and why.
SELECT actor_kind, actor_id, reason, at FROM audit_log WHERE tenant_id = @tenant_id AND action = @action ORDER BY id DESC LIMIT 1;

-- name: ConsoleMails :many
SELECT m.id, m.recipient, m.kind, m.state, m.tries, m.due_at, m.last_error, m.created_at, m.done_at, m.tenant_id, coalesce(t.name, '') AS tenant_name
FROM mails m LEFT JOIN tenants t ON t.id = m.tenant_id
WHERE m.id < @before AND (@state::text = '' OR m.state = @state::text) AND (sqlc.narg('tenant')::uuid IS NULL OR m.tenant_id = sqlc.narg('tenant'))
ORDER BY m.id DESC
LIMIT sqlc.arg('limit');

-- name: SendMailAgain :execrows
-- A mail that was given up gets a new series of tries, under its old key: a provider that accepted it before sends
-- nothing.
UPDATE mails SET state = 'waiting', tries = 0, due_at = now(), last_error = '', done_at = NULL WHERE id = @id AND state = 'failed';

-- name: ConsoleJobs :many
SELECT j.*, t.name AS tenant_name FROM bulk_jobs j JOIN tenants t ON t.id = j.tenant_id
WHERE j.id < @before AND (@state::text = '' OR j.state = @state::text) AND (sqlc.narg('tenant')::uuid IS NULL OR j.tenant_id = sqlc.narg('tenant'))
ORDER BY j.id DESC
LIMIT sqlc.arg('limit');

-- name: ConsolePeriodic :many
-- When each periodic job was last done, by whichever worker.
SELECT name, done_at::timestamptz AS done_at FROM chores WHERE done_at > '-infinity' ORDER BY name;

-- name: ConsoleAudit :many
SELECT sqlc.embed(a), coalesce(t.name, '')::text AS tenant_name FROM audit_log a LEFT JOIN tenants t ON t.id = a.tenant_id
WHERE a.id < @before AND (@action::text = '' OR starts_with(a.action, @action::text)) AND (@actor::text = '' OR a.actor_kind = @actor::text)
	AND (sqlc.narg('tenant')::uuid IS NULL OR a.tenant_id = sqlc.narg('tenant'))
ORDER BY a.id DESC
LIMIT sqlc.arg('limit');

-- name: CountBooks :one
-- The lines of all tenants since a day, as far as they are folded.
SELECT count(*) FROM books b JOIN tenants t ON t.id = b.tenant_id WHERE b.day >= @since::date AND b.accepted > 0;

-- name: ConsoleLedger :many
-- The totals of one tenant or of all, of the days since @since, with the ledger's unfolded entries and the queue, all
-- at one moment: each accepted delivery that has not ended must be in the queue. Of the closed days that add up, only
-- the newest are summed.
WITH unfolded AS MATERIALIZED (
	SELECT u.tenant_id, u.day, u.accepted, u.delivered, u.failed, u.canceled, u.expunged
	FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.book_tenant), unnest(l.book_day), unnest(l.accepted), unnest(l.delivered),
		unnest(l.failed), unnest(l.canceled), unnest(l.expunged)) AS u(tenant_id, day, accepted, delivered, failed, canceled, expunged)
	WHERE u.day >= @since::date AND (sqlc.narg('tenant_id')::uuid IS NULL OR u.tenant_id = sqlc.narg('tenant_id'))
), waits AS MATERIALIZED (
	SELECT q.tenant_id, (posthorn.created_at(q.delivery_id) AT TIME ZONE 'UTC')::date AS day, count(*) AS n,
		count(*) FILTER (WHERE l.held) AS held
	FROM queue q LEFT JOIN lanes l ON l.endpoint_id = q.endpoint_id
	WHERE q.delivery_id >= posthorn.first_id((@since::date)::timestamp AT TIME ZONE 'UTC')
		AND (sqlc.narg('tenant_id')::uuid IS NULL OR q.tenant_id = sqlc.narg('tenant_id'))
	GROUP BY 1, 2
), folded AS (
	(SELECT b.* FROM books b
	WHERE b.day >= @since::date AND (sqlc.narg('tenant_id')::uuid IS NULL OR b.tenant_id = sqlc.narg('tenant_id'))
	ORDER BY b.day DESC, b.accepted DESC LIMIT sqlc.arg('limit'))
	UNION SELECT b.* FROM books b
	WHERE b.day >= @since::date AND (sqlc.narg('tenant_id')::uuid IS NULL OR b.tenant_id = sqlc.narg('tenant_id'))
		AND b.accepted <> b.delivered + b.failed + b.canceled
	UNION SELECT b.* FROM (SELECT u.tenant_id, u.day FROM unfolded u UNION SELECT w.tenant_id, w.day FROM waits w) d
	JOIN books b ON b.tenant_id = d.tenant_id AND b.day = d.day
), entries AS (
	SELECT f.tenant_id, f.day, f.accepted, f.delivered, f.failed, f.canceled, f.expunged FROM folded f
	UNION ALL
	SELECT u.tenant_id, u.day, u.accepted, u.delivered, u.failed, u.canceled, u.expunged FROM unfolded u
), sums AS (
	SELECT tenant_id, day, coalesce(sum(accepted), 0)::bigint AS accepted, coalesce(sum(delivered), 0)::bigint AS delivered,
		coalesce(sum(failed), 0)::bigint AS failed, coalesce(sum(canceled), 0)::bigint AS canceled, coalesce(sum(expunged), 0)::bigint AS expunged
	FROM entries GROUP BY tenant_id, day HAVING (sum(accepted), sum(delivered), sum(failed), sum(canceled)) <> (0, 0, 0, 0)
)
SELECT s.tenant_id, t.name AS tenant_name, s.day, s.accepted, s.delivered, s.failed, s.canceled, s.expunged, coalesce(b.purged, 0)::bigint AS purged, b.purged_at,
	coalesce(w.n, 0)::bigint AS waiting, coalesce(w.held, 0)::bigint AS held,
	(s.accepted - s.delivered - s.failed - s.canceled - coalesce(w.n, 0))::bigint AS difference
FROM sums s JOIN tenants t ON t.id = s.tenant_id LEFT JOIN waits w ON w.tenant_id = s.tenant_id AND w.day = s.day
	LEFT JOIN books b ON b.tenant_id = s.tenant_id AND b.day = s.day
ORDER BY (s.accepted - s.delivered - s.failed - s.canceled - coalesce(w.n, 0) <> 0) DESC, s.day DESC, s.accepted DESC
LIMIT sqlc.arg('limit');
