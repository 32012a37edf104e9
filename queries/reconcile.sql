-- The comparison of the totals with the tables. Each read is one statement, and so sees one moment: concurrent work
-- does not disturb it. It runs as the worker role, a few pages at a time.

-- name: ReconcileProgress :one
-- Where a check stopped.
SELECT * FROM book_checks WHERE name = @name;

-- name: SaveReconcileProgress :exec
INSERT INTO book_checks AS c (name, day, after, checked, round_at) VALUES (@name, @day, @after, @checked, now())
ON CONFLICT (name) DO UPDATE SET day = excluded.day, after = excluded.after,
	checked = CASE WHEN @restart::boolean THEN excluded.checked ELSE c.checked + excluded.checked END,
	round_at = CASE WHEN @restart::boolean THEN now() ELSE c.round_at END;

-- name: NextPagesToReconcile :many
-- The tenants after one, without deleted ones, whose rows are being erased, with the expected number of deliveries of
-- their pages of a day.
SELECT t.id, coalesce((SELECT b.accepted FROM books b WHERE b.tenant_id = t.id AND b.day = @day), 0)::bigint AS accepted
FROM tenants t WHERE t.id > @after AND t.state <> 'deleted' ORDER BY t.id LIMIT sqlc.arg('limit');

-- name: ReconcilePages :many
-- Pages of a day by the totals and the ledger, and by the tables; without days whose rows are in storage.
WITH entries AS (
	SELECT b.tenant_id, b.accepted, b.delivered, b.failed, b.canceled, b.events FROM books b WHERE b.day = @day AND b.tenant_id = ANY(@tenants::uuid[])
	UNION ALL
	SELECT u.tenant_id, u.accepted, u.delivered, u.failed, u.canceled, u.events
	FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.book_tenant), unnest(l.book_day), unnest(l.accepted), unnest(l.delivered),
		unnest(l.failed), unnest(l.canceled), unnest(l.events)) AS u(tenant_id, day, accepted, delivered, failed, canceled, events)
	WHERE u.day = @day AND u.tenant_id = ANY(@tenants::uuid[])
), sums AS (
	SELECT tenant_id, sum(accepted)::bigint AS accepted, sum(delivered)::bigint AS delivered, sum(failed)::bigint AS failed, sum(canceled)::bigint AS canceled,
		sum(events)::bigint AS events
	FROM entries GROUP BY tenant_id
)
SELECT t.id::uuid AS tenant_id, coalesce(s.accepted, 0)::bigint AS accepted, coalesce(s.delivered, 0)::bigint AS delivered,
	coalesce(s.failed, 0)::bigint AS failed, coalesce(s.canceled, 0)::bigint AS canceled, coalesce(s.events, 0)::bigint AS events, e.n AS rows_events,
	d.n AS rows_n, d.delivered AS rows_delivered, d.failed AS rows_failed, d.canceled AS rows_canceled, d.waiting AS rows_waiting, d.unqueued AS rows_unqueued, q.n AS queued
FROM (SELECT u.id FROM unnest(@tenants::uuid[]) AS u(id)
	WHERE NOT EXISTS (SELECT FROM history_days h WHERE h.tenant_id = u.id AND h.day = @day AND h.state IN ('leaving', 'stored', 'returning'))) t
LEFT JOIN sums s ON s.tenant_id = t.id
CROSS JOIN LATERAL (
	SELECT count(*) AS n, count(*) FILTER (WHERE r.status = 2) AS delivered, count(*) FILTER (WHERE r.status = 3) AS failed,
		count(*) FILTER (WHERE r.status = 4) AS canceled, count(*) FILTER (WHERE r.status < 2) AS waiting,
		count(*) FILTER (WHERE r.status < 2 AND NOT EXISTS (SELECT 1 FROM queue w WHERE w.tenant_id = t.id AND w.delivery_id = r.id)) AS unqueued
	FROM deliveries r WHERE r.tenant_id = t.id AND r.created_at >= @low AND r.created_at < @high
) d
CROSS JOIN LATERAL (
	SELECT count(*) AS n FROM events v WHERE @count_events::boolean AND v.tenant_id = t.id AND v.created_at >= @low AND v.created_at < @high
		AND NOT starts_with(v.type, 'posthorn.') -- notices to the tenant itself, which no quota counts
) e
CROSS JOIN LATERAL (
	SELECT count(*) AS n FROM queue w WHERE w.tenant_id = t.id AND w.delivery_id >= @first AND w.delivery_id < @last
) q;

-- name: ContradictedDeliveries :many
-- The rows of one page that the tables contradict themselves about, each with a word of domain/reconcile. Each is
-- looked up by its whole key, the time in the id included, one after the other (LIMIT): a join would be planned, and
-- planned badly for a day that has just started.
SELECT x.id::uuid AS id, x.word::text AS word FROM (
	(SELECT d.id, 'unqueued' AS word FROM deliveries d
	 WHERE d.tenant_id = @tenant_id AND d.created_at >= @low AND d.created_at < @high AND d.status < 2
		AND (SELECT 1 FROM queue q WHERE q.tenant_id = @tenant_id AND q.delivery_id = d.id LIMIT 1) IS NULL LIMIT sqlc.arg('limit')::int)
	UNION ALL
	(SELECT q.delivery_id, CASE WHEN d.id IS NULL THEN 'unknown' ELSE 'ended' END
	 FROM queue q LEFT JOIN LATERAL (
		SELECT r.id, r.status FROM deliveries r WHERE r.tenant_id = @tenant_id AND r.created_at = posthorn.created_at(q.delivery_id) AND r.id = q.delivery_id
			AND r.created_at >= @low AND r.created_at < @high LIMIT 1
	 ) d ON true
	 WHERE q.tenant_id = @tenant_id AND q.delivery_id >= @first AND q.delivery_id < @last AND (d.id IS NULL OR d.status >= 2) LIMIT sqlc.arg('limit')::int)
	UNION ALL
	(SELECT DISTINCT a.delivery_id, 'attempted' FROM attempts a
	 WHERE a.tenant_id = @tenant_id AND a.created_at >= @low AND a.delivery_id >= @first AND a.delivery_id < @last
		AND (SELECT 1 FROM deliveries d WHERE d.tenant_id = @tenant_id AND d.created_at = posthorn.created_at(a.delivery_id) AND d.id = a.delivery_id
			AND d.created_at >= @low AND d.created_at < @high LIMIT 1) IS NULL
	 LIMIT sqlc.arg('limit')::int)
	UNION ALL
	(SELECT l.delivery_id, 'deadletter' FROM dead_letters l
	 WHERE l.tenant_id = @tenant_id AND l.delivery_id >= @first AND l.delivery_id < @last
		AND (SELECT 1 FROM deliveries d WHERE d.tenant_id = @tenant_id AND d.created_at = posthorn.created_at(l.delivery_id) AND d.id = l.delivery_id
			AND d.created_at >= @low AND d.created_at < @high AND d.status = 3 LIMIT 1) IS NULL
	 LIMIT sqlc.arg('limit')::int)
	UNION ALL
	(SELECT c.delivery_id, 'canceled' FROM cancellations c
	 WHERE c.tenant_id = @tenant_id AND c.delivery_id >= @first AND c.delivery_id < @last
		AND (SELECT 1 FROM deliveries d WHERE d.tenant_id = @tenant_id AND d.created_at = posthorn.created_at(c.delivery_id) AND d.id = c.delivery_id
			AND d.created_at >= @low AND d.created_at < @high AND d.status = 4 LIMIT 1) IS NULL
	 LIMIT sqlc.arg('limit')::int)
	UNION ALL
	(SELECT d.id, CASE d.status WHEN 2 THEN 'unattempted' WHEN 3 THEN 'unlisted' ELSE 'uncalled' END FROM deliveries d
	 WHERE d.tenant_id = @tenant_id AND d.created_at >= @low AND d.created_at < @high AND CASE d.status
		WHEN 2 THEN (SELECT 1 FROM attempts a WHERE a.delivery_id = d.id AND a.tenant_id = @tenant_id AND a.created_at >= @attempted::timestamptz LIMIT 1) IS NULL
		WHEN 3 THEN (SELECT 1 FROM dead_letters l WHERE l.tenant_id = @tenant_id AND l.delivery_id = d.id LIMIT 1) IS NULL
		WHEN 4 THEN (SELECT 1 FROM cancellations c WHERE c.tenant_id = @tenant_id AND c.delivery_id = d.id LIMIT 1) IS NULL
	 END LIMIT sqlc.arg('limit')::int)
	UNION ALL
	(SELECT d.id, 'eventless' FROM deliveries d
	 WHERE d.tenant_id = @tenant_id AND d.created_at >= @low AND d.created_at < @high AND d.event_id >= @first AND d.event_id < @last
		AND (SELECT 1 FROM events v WHERE v.tenant_id = @tenant_id AND v.created_at = posthorn.created_at(d.event_id) AND v.id = d.event_id
			AND v.created_at >= @low AND v.created_at < @high LIMIT 1) IS NULL
	 LIMIT sqlc.arg('limit')::int)
) x LIMIT sqlc.arg('limit')::int;

-- name: KeepDiscrepancy :exec
INSERT INTO book_differences AS b (tenant_id, day, found_at, seen_at, amount, gap, details) VALUES (@tenant_id, @day, now(), now(), @amount, @gap, @details)
ON CONFLICT (tenant_id, day) DO UPDATE SET seen_at = now(), amount = excluded.amount, gap = excluded.gap, details = excluded.details, ended_at = NULL,
	found_at = CASE WHEN b.ended_at IS NULL THEN b.found_at ELSE now() END;

-- name: EndDiscrepancies :execrows
-- Pages that agree again. They are no longer accepted: a later discrepancy is new.
UPDATE book_differences SET ended_at = now(), accepted_gap = NULL WHERE day = @day AND tenant_id = ANY(@tenants::uuid[]) AND ended_at IS NULL;

-- name: AcceptDiscrepancy :one
-- No row: it is no longer as it was shown, or was accepted already.
UPDATE book_differences SET accepted_gap = gap, accepted_at = now(), accepted_by = @accepted_by::text, accepted_reason = @reason::text
WHERE tenant_id = @tenant_id AND day = @day AND open AND gap = @gap
RETURNING *;

-- name: ReconcileState :one
-- By how much the totals differ from the tables, over all pages with a discrepancy that is not accepted; and how many
-- seconds ago the last comparison was, 0 if there was none.
SELECT coalesce((SELECT sum(d.amount) FROM book_differences d WHERE d.open), 0)::bigint AS differs,
	coalesce((SELECT extract(epoch FROM now() - c.done_at) FROM chores c WHERE c.name = @chore AND c.done_at > '-infinity'), 0)::float8 AS unchecked;

-- name: ListDiscrepancies :many
-- Open discrepancies first, then accepted ones, then past ones.
SELECT b.*, t.name AS tenant_name FROM book_differences b JOIN tenants t ON t.id = b.tenant_id
WHERE (@open_alone::boolean = false OR b.open)
ORDER BY b.open DESC, b.ended_at IS NOT NULL, b.seen_at DESC LIMIT sqlc.arg('limit');

-- name: ListReconcileProgress :many
SELECT * FROM book_checks ORDER BY name DESC;

-- name: AreEventsEntered :one
-- Whether all events of a day are in the books.
SELECT EXISTS (SELECT FROM platform p WHERE p.events_from <= @day::date)::boolean AS entered;

-- name: IsDayKept :one
-- Whether a day's deliveries are there, or must be: retention has not dropped them.
SELECT (to_regclass('posthorn.deliveries_y' || to_char(@day::date, 'YYYYMMDD')) IS NOT NULL
	OR EXISTS (SELECT FROM platform p WHERE p.days_from <= @day::date))::boolean AS kept;

-- name: DropOldDiscrepancies :execrows
-- Discrepancies of dropped days: nothing can agree with them any more.
DELETE FROM book_differences WHERE day < @before;
