-- Numbers of a tenant's attempts, from the roll-ups and from the ledger's entries that are not folded yet. The bulk
-- tables are never counted.

-- name: AttemptStats :many
-- Attempts between two moments by bucket (0 seconds: one for all), endpoint, type and kind. The hourly roll-ups lag by
-- up to two hours, and the edges need minutes: so the window is read in parts (domain/analytics). The index begins
-- with tenant and endpoint: each endpoint's rows are looked up, not the tenant's filtered.
SELECT (CASE WHEN @bucket_seconds::double precision > 0
		THEN date_bin(make_interval(secs => @bucket_seconds), x.bucket, timestamptz '2000-01-01 00:00:00Z') ELSE timestamptz '1970-01-01 00:00:00Z' END)::timestamptz AS bucket,
	(CASE WHEN @by_endpoint::boolean THEN x.endpoint_id ELSE '00000000-0000-0000-0000-000000000000' END)::uuid AS endpoint_id,
	(CASE WHEN @by_type::boolean THEN x.event_type ELSE '' END)::text AS event_type,
	x.kind, sum(x.n)::bigint AS n, sum(x.us)::bigint AS us, min(x.least_us)::int AS least, max(x.most_us)::int AS longest
FROM (
	SELECT s.endpoint_id, s.event_type, s.bucket, s.kind, s.n, s.us, s.least_us, s.most_us
	FROM endpoints e
	CROSS JOIN LATERAL (
		(SELECT h.* FROM endpoint_stats h
		WHERE h.tenant_id = @tenant_id AND h.endpoint_id = e.id AND h.width = 3600 AND h.bucket >= @hours_from::timestamptz AND h.bucket < @hours_to::timestamptz)
		UNION ALL
		(SELECT m.* FROM endpoint_stats m
		WHERE m.tenant_id = @tenant_id AND m.endpoint_id = e.id AND m.width = 60 AND m.bucket >= @early_from::timestamptz AND m.bucket < @early_to::timestamptz)
		UNION ALL
		(SELECT m.* FROM endpoint_stats m
		WHERE m.tenant_id = @tenant_id AND m.endpoint_id = e.id AND m.width = 60 AND m.bucket >= @late_from::timestamptz AND m.bucket < @late_to::timestamptz)
	) s
	WHERE e.tenant_id = @tenant_id AND (sqlc.narg('endpoint')::uuid IS NULL OR e.id = sqlc.narg('endpoint'))
	UNION ALL
	SELECT u.endpoint_id, u.event_type, u.minute, u.kind, u.n, u.us, u.least_us, u.most_us
	FROM posthorn.unfolded_attempts(@tenant_id) u
	WHERE u.minute >= @early_from AND u.minute < @late_to AND (sqlc.narg('endpoint')::uuid IS NULL OR u.endpoint_id = sqlc.narg('endpoint'))
) x
WHERE posthorn.matches_type(@event_type::text, x.event_type)
GROUP BY 1, 2, 3, 4
LIMIT sqlc.arg('limit');

-- name: EndpointDays :many
-- What attempts to some endpoints of a tenant ended with between two moments, as AttemptStats counts them: how many in
-- all and with success (kinds below 16), and when the last minute or hour began in which one succeeded, and one failed;
-- the epoch if none did.
SELECT x.endpoint_id::uuid AS endpoint_id, sum(x.n)::bigint AS total,
	coalesce(sum(x.n) FILTER (WHERE x.kind & 127 < 16), 0)::bigint AS succeeded,
	coalesce(max(x.bucket) FILTER (WHERE x.kind & 127 < 16), 'epoch')::timestamptz AS last_ok,
	coalesce(max(x.bucket) FILTER (WHERE x.kind & 127 >= 16), 'epoch')::timestamptz AS last_failed
FROM (
	SELECT s.endpoint_id, s.bucket, s.kind, s.n FROM unnest(@endpoints::uuid[]) AS e(id)
	CROSS JOIN LATERAL (
		(SELECT h.endpoint_id, h.bucket, h.kind, h.n FROM endpoint_stats h
		WHERE h.tenant_id = @tenant_id AND h.endpoint_id = e.id AND h.width = 3600 AND h.bucket >= @hours_from::timestamptz AND h.bucket < @hours_to::timestamptz)
		UNION ALL
		(SELECT m.endpoint_id, m.bucket, m.kind, m.n FROM endpoint_stats m
		WHERE m.tenant_id = @tenant_id AND m.endpoint_id = e.id AND m.width = 60 AND m.bucket >= @early_from::timestamptz AND m.bucket < @early_to::timestamptz)
		UNION ALL
		(SELECT m.endpoint_id, m.bucket, m.kind, m.n FROM endpoint_stats m
		WHERE m.tenant_id = @tenant_id AND m.endpoint_id = e.id AND m.width = 60 AND m.bucket >= @late_from::timestamptz AND m.bucket < @late_to::timestamptz)
	) s
	UNION ALL
	SELECT u.endpoint_id, u.minute, u.kind, u.n FROM posthorn.unfolded_attempts(@tenant_id) u
	WHERE u.minute >= @early_from AND u.minute < @late_to AND u.endpoint_id = ANY(@endpoints::uuid[])
) x
GROUP BY 1;

-- name: ConsoleEndpointDays :many
-- EndpointDays for endpoints of any tenant.
SELECT x.endpoint_id::uuid AS endpoint_id, sum(x.n)::bigint AS total,
	coalesce(sum(x.n) FILTER (WHERE x.kind & 127 < 16), 0)::bigint AS succeeded,
	coalesce(max(x.bucket) FILTER (WHERE x.kind & 127 < 16), 'epoch')::timestamptz AS last_ok,
	coalesce(max(x.bucket) FILTER (WHERE x.kind & 127 >= 16), 'epoch')::timestamptz AS last_failed
FROM (
	SELECT s.endpoint_id, s.bucket, s.kind, s.n FROM endpoints e
	CROSS JOIN LATERAL (
		(SELECT h.endpoint_id, h.bucket, h.kind, h.n FROM endpoint_stats h
		WHERE h.tenant_id = e.tenant_id AND h.endpoint_id = e.id AND h.width = 3600 AND h.bucket >= @hours_from::timestamptz AND h.bucket < @hours_to::timestamptz)
		UNION ALL
		(SELECT m.endpoint_id, m.bucket, m.kind, m.n FROM endpoint_stats m
		WHERE m.tenant_id = e.tenant_id AND m.endpoint_id = e.id AND m.width = 60 AND m.bucket >= @early_from::timestamptz AND m.bucket < @early_to::timestamptz)
		UNION ALL
		(SELECT m.endpoint_id, m.bucket, m.kind, m.n FROM endpoint_stats m
		WHERE m.tenant_id = e.tenant_id AND m.endpoint_id = e.id AND m.width = 60 AND m.bucket >= @late_from::timestamptz AND m.bucket < @late_to::timestamptz)
	) s
	WHERE e.id = ANY(@endpoints::uuid[])
	UNION ALL
	SELECT u.endpoint, to_timestamp(u.minute::bigint * 60), u.kind, u.n
	FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.stat_endpoint), unnest(l.stat_minute), unnest(l.stat_kind), unnest(l.stat_count))
		AS u(endpoint, minute, kind, n)
	WHERE u.endpoint = ANY(@endpoints::uuid[]) AND to_timestamp(u.minute::bigint * 60) >= @early_from AND to_timestamp(u.minute::bigint * 60) < @late_to
) x
GROUP BY 1;

-- name: FailureCodes :many
-- The outcomes of failed attempts between two moments, by endpoint: the HTTP status, or a negative failure
-- (domain/delivery). The ledger's unfolded entries are included. The index begins with tenant and endpoint, so an
-- endpoint's rows are looked up.
SELECT x.endpoint_id::uuid AS endpoint_id, x.code::smallint AS code, sum(x.n)::bigint AS n
FROM (
	SELECT f.endpoint_id, f.code, f.n FROM endpoints e
	CROSS JOIN LATERAL (
		SELECT c.endpoint_id, c.code, c.n FROM endpoint_failures c
		WHERE c.tenant_id = @tenant_id AND c.endpoint_id = e.id AND c.bucket >= @since::timestamptz AND c.bucket < @until::timestamptz
	) f
	WHERE e.tenant_id = @tenant_id AND (sqlc.narg('endpoint')::uuid IS NULL OR e.id = sqlc.narg('endpoint'))
	UNION ALL
	SELECT u.endpoint_id, u.code, u.n FROM posthorn.unfolded_failures(@tenant_id) u
	WHERE u.minute >= @since AND u.minute < @until AND (sqlc.narg('endpoint')::uuid IS NULL OR u.endpoint_id = sqlc.narg('endpoint'))
) x
GROUP BY 1, 2
LIMIT 100000;

-- name: RecentDisablings :many
-- The endpoints that Posthorn disabled since a moment, resumed ones included, with when that was last and why.
SELECT DISTINCT ON (e.id) e.id, e.url, e.description, e.status, n.created_at AS disabled_at, coalesce(n.details ->> 'reason', '')::text AS reason
FROM notices n JOIN endpoints e ON e.tenant_id = n.tenant_id AND e.id = n.endpoint_id
WHERE n.tenant_id = @tenant_id AND n.id > posthorn.first_id(@since::timestamptz) AND n.kind = 'endpoint.disabled'
	AND e.deleted_at IS NULL AND e.kind <> 'listen'
ORDER BY e.id, n.id DESC;

-- name: EndpointsHealth :many
-- The state and counters of a tenant's endpoints, and whether a pause of an operator or the tenant's suspension keeps
-- them.
SELECT e.id, e.url, e.description, e.status, e.status_at, (e.id IN (SELECT posthorn.paused_endpoints(@tenant_id)))::boolean AS on_hold,
	sqlc.embed(h)
FROM endpoints e
JOIN endpoint_health h ON h.tenant_id = @tenant_id AND h.endpoint_id = e.id
WHERE e.tenant_id = @tenant_id AND e.deleted_at IS NULL AND e.kind <> 'listen';

-- name: CountConditions :many
-- How many endpoints of a tenant, or of all tenants, are in each condition (domain/condition). Listeners are no endpoints.
SELECT s.condition::text AS condition, count(*) AS n
FROM posthorn.lane_states(sqlc.narg('tenant_id'), @silent_seconds)
	AS s(endpoint_id, tenant_id, listens, condition, waits, ready, due, not_before, since)
WHERE NOT s.listens AND (sqlc.narg('tenant_id')::uuid IS NULL OR s.tenant_id = sqlc.narg('tenant_id'))
GROUP BY 1;

-- name: CountRecentFailures :one
-- Deliveries that failed permanently since a moment, counted up to a bound, without those of listeners.
SELECT count(*) FROM (
	SELECT 1 FROM dead_letters l WHERE l.tenant_id = @tenant_id AND l.failed_at >= @since::timestamptz
		AND l.trial IS NOT TRUE LIMIT 100000
) d;

-- name: OldestDue :one
-- For how many seconds the head of a lane has been due with only the platform delaying it: the longest of them.
-- Deliveries in flight do not count. A lane costs one index step.
SELECT coalesce(max(extract(epoch FROM now() - greatest(coalesce(h.due_at, posthorn.created_at(h.delivery_id)), l.since))), 0)::double precision AS seconds
FROM posthorn.lane_states(@tenant_id, @silent_seconds)
	AS l(endpoint_id, tenant_id, listens, condition, waits, ready, due, not_before, since)
JOIN lanes x ON x.tenant_id = @tenant_id AND x.endpoint_id = l.endpoint_id
CROSS JOIN LATERAL (
	SELECT q.due_at, q.delivery_id FROM queue q
	WHERE q.tenant_id = @tenant_id AND q.state = 0 AND q.endpoint_id = l.endpoint_id AND NOT (l.waits = 'next' AND x.in_flight ? q.delivery_id::text)
	ORDER BY q.seq LIMIT 1
) h
WHERE l.tenant_id = @tenant_id AND l.due;

-- name: EndpointNames :many
-- The names of endpoints.
SELECT id, url, description, status, deleted_at FROM endpoints WHERE tenant_id = @tenant_id AND id = ANY(@ids::uuid[]);

-- name: TenantPulse :one
-- A text that differs when something has happened to the deliveries of a tenant: the totals of the last days, and how
-- many attempts the newest endpoints have had in the last minutes.
SELECT md5(concat_ws(' ',
	(SELECT string_agg(concat_ws('/', b.day, b.accepted, b.delivered, b.failed, b.canceled, b.expunged), ' ' ORDER BY b.day)
	FROM books b WHERE b.tenant_id = @tenant_id AND b.day >= @day::date),
	posthorn.events_since(@tenant_id, @day::date),
	(SELECT coalesce(sum(m.n), 0) FROM (SELECT e.id FROM endpoints e WHERE e.tenant_id = @tenant_id ORDER BY e.id DESC LIMIT sqlc.arg('limit')) e
	CROSS JOIN LATERAL (SELECT s.n FROM endpoint_stats s
		WHERE s.tenant_id = @tenant_id AND s.endpoint_id = e.id AND s.width = 60 AND s.bucket >= @since::timestamptz) m)
	+ (SELECT coalesce(sum(u.n), 0) FROM posthorn.unfolded_attempts(@tenant_id) u WHERE u.minute >= @since)))::text AS pulse;
