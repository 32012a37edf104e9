-- The status page: the platform's performance, from a sample of recent rows, without data of one tenant. Runs as the
-- console role.

-- name: AttemptPages :one
-- How many pages the attempts since a day fill, to choose how many of them are looked at.
SELECT (coalesce(sum(pg_relation_size(to_regclass('posthorn.attempts_y' || to_char(d.day, 'YYYYMMDD')))), 0) / 8192)::bigint AS pages
FROM generate_series(@day::date, (now() AT TIME ZONE 'UTC')::date, interval '1 day') AS d(day);

-- name: LatencyByHour :many
-- From acknowledgement to the first request, in seconds, of unordered deliveries to healthy endpoints, without replays
-- and events with a deliver_at. The time for which an endpoint's own limits delayed a delivery is left out. Deliveries
-- and events are looked up by their primary keys: the OFFSET and the LIMIT leave the planner no other choice, also for
-- a day without statistics.
SELECT date_trunc('hour', s.at)::timestamptz AS hour, count(*) AS n,
	(percentile_cont(0.5) WITHIN GROUP (ORDER BY s.seconds))::float8 AS p50, (percentile_cont(0.99) WITHIN GROUP (ORDER BY s.seconds))::float8 AS p99
FROM (
	SELECT a.created_at AS at, greatest(extract(epoch FROM a.created_at - d.created_at) - a.held_ms / 1000.0, 0)::float8 AS seconds
	FROM (
		SELECT t.created_at, t.tenant_id, t.delivery_id, t.held_ms, e.status_at FROM attempts t TABLESAMPLE SYSTEM (@percent::real)
		CROSS JOIN LATERAL (SELECT x.status_at FROM endpoints x
			WHERE x.tenant_id = t.tenant_id AND x.id = t.endpoint_id AND x.status = 'active' AND x.ordering = 'none' LIMIT 1) e
		WHERE t.created_at >= @since::timestamptz AND t.number = 1 AND t.status BETWEEN 200 AND 299 AND NOT t.late
		OFFSET 0
	) a
	CROSS JOIN LATERAL (
		SELECT r.created_at, r.event_id FROM deliveries r
		WHERE r.tenant_id = a.tenant_id AND r.created_at = posthorn.created_at(a.delivery_id) AND r.created_at >= @since AND r.id = a.delivery_id
			AND r.replay_of IS NULL AND r.created_at > a.status_at
		LIMIT 1
	) d
	CROSS JOIN LATERAL (
		SELECT 1 FROM events v
		WHERE v.tenant_id = a.tenant_id AND v.created_at = posthorn.created_at(d.event_id) AND v.created_at >= @since AND v.id = d.event_id
			AND v.deliver_at IS NULL
		LIMIT 1
	) w
) s
GROUP BY 1 ORDER BY 1;

-- name: SuccessByHour :many
SELECT date_trunc('hour', a.created_at)::timestamptz AS hour, count(*) AS n, count(*) FILTER (WHERE a.status BETWEEN 200 AND 299) AS ok
FROM attempts a TABLESAMPLE SYSTEM (@percent::real)
WHERE a.created_at >= @since::timestamptz
GROUP BY 1 ORDER BY 1;
