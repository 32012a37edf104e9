-- The status page: how the platform does, from a sample of what it wrote down of late. Nothing of one tenant is told. Runs as the
-- console role.

-- name: AttemptPages :one
-- How many pages the attempts since a day fill, to choose how many of them are looked at.
SELECT (coalesce(sum(pg_relation_size(to_regclass('posthorn.attempts_y' || to_char(d.day, 'YYYYMMDD')))), 0) / 8192)::bigint AS pages
FROM generate_series(@day::date, (now() AT TIME ZONE 'UTC')::date, interval '1 day') AS d(day);

-- name: LatencyByHour :many
-- From acknowledgement to the first request, in seconds, of deliveries to endpoints that were healthy and in no order: neither
-- replays nor events that were to be sent later.
SELECT date_trunc('hour', s.at)::timestamptz AS hour, count(*) AS n,
	(percentile_cont(0.5) WITHIN GROUP (ORDER BY s.seconds))::float8 AS p50, (percentile_cont(0.99) WITHIN GROUP (ORDER BY s.seconds))::float8 AS p99
FROM (
	SELECT a.created_at AS at, greatest(extract(epoch FROM a.created_at - d.created_at), 0)::float8 AS seconds
	FROM attempts a TABLESAMPLE SYSTEM (@percent::real)
	JOIN endpoints e ON e.id = a.endpoint_id
	JOIN deliveries d ON d.tenant_id = a.tenant_id AND d.created_at = posthorn.created_at(a.delivery_id) AND d.id = a.delivery_id
	JOIN events v ON v.tenant_id = d.tenant_id AND v.created_at = posthorn.created_at(d.event_id) AND v.id = d.event_id
	WHERE a.created_at >= @since::timestamptz AND d.created_at >= @since AND v.created_at >= @since
		AND a.number = 1 AND a.status BETWEEN 200 AND 299 AND NOT a.late
		AND e.status = 'active' AND e.status_at < d.created_at AND e.ordering = 'none' AND d.replay_of IS NULL AND v.deliver_at IS NULL
) s
GROUP BY 1 ORDER BY 1;

-- name: SuccessByHour :many
SELECT date_trunc('hour', a.created_at)::timestamptz AS hour, count(*) AS n, count(*) FILTER (WHERE a.status BETWEEN 200 AND 299) AS ok
FROM attempts a TABLESAMPLE SYSTEM (@percent::real)
WHERE a.created_at >= @since::timestamptz
GROUP BY 1 ORDER BY 1;
