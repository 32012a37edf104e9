-- The export of a tenant. Read in pages beyond an id, oldest first, each planned by index (PlanByIndex) over an
-- interval that prunes partitions. Archived rows are exported too.

-- name: ExportEvents :many
-- At most limit of them with at most @bytes of data together, but always one.
SELECT y.tenant_id, y.created_at, y.id, y.type, y.data, y.key, y.channels, y.version, y.occurred_at, y.deliver_at, y.routing_version,
	y.traceparent, y.external_id, y.content_type, y.external_id_unsent, y.expires_at FROM (
	SELECT x.*, row_number() OVER w AS place, sum(coalesce(octet_length(x.data), 0)) OVER w AS so_far FROM (
		SELECT e.* FROM events e
		WHERE e.tenant_id = @tenant_id AND e.created_at BETWEEN @low_at::timestamptz AND @high_at::timestamptz
			AND (e.created_at, e.id) > (@low_at, @low::uuid) AND (e.created_at, e.id) < (@high_at, @high::uuid)
		ORDER BY e.created_at, e.id LIMIT sqlc.arg('limit')::int
	) x
	WINDOW w AS (ORDER BY x.created_at, x.id)
) y
WHERE y.place = 1 OR y.so_far <= @bytes::bigint
ORDER BY y.created_at, y.id;

-- name: ExportDeliveries :many
SELECT d.id FROM deliveries d
WHERE d.tenant_id = @tenant_id AND d.created_at BETWEEN @low_at::timestamptz AND @high_at::timestamptz
	AND (d.created_at, d.id) > (@low_at, @low::uuid) AND (d.created_at, d.id) < (@high_at, @high::uuid)
ORDER BY d.created_at, d.id LIMIT sqlc.arg('limit')::int;

-- name: ExportAttempts :many
-- Of some deliveries; all lie between their creation and a while after they were settled.
SELECT * FROM attempts
WHERE tenant_id = @tenant_id AND delivery_id = ANY (@ids::uuid[]) AND created_at BETWEEN @since AND @until
ORDER BY delivery_id, created_at, id;

-- name: ExportRejected :many
-- Entries of the outbox that became no event: bounded as ExportEvents is. Data over the limit of an event is left out.
SELECT y.id, y.tenant_id, ''::text AS tenant, y.type, y.size, y.key, y.idempotency_key, y.code, y.detail, y.rejected_at, (CASE WHEN y.size <= @bytes::bigint THEN y.data ELSE 'null' END)::bytea AS data, y.source_id FROM (
	SELECT x.*, row_number() OVER w AS place, sum(x.size) OVER w AS so_far FROM (
		SELECT r.*, octet_length(r.data)::int AS size FROM outbox_rejected r
		WHERE r.tenant_id = @tenant_id AND r.id > @after ORDER BY r.id LIMIT sqlc.arg('limit')::int
	) x
	WINDOW w AS (ORDER BY x.id)
) y
WHERE y.place = 1 OR y.so_far <= @bytes::bigint
ORDER BY y.id;

-- name: ExportSent :one
-- When an export of a tenant was last sent to its end, and the time now. No row: there was none in the period. The
-- log's ids are from the nodes, its times from the database.
SELECT a.at, now()::timestamptz AS now FROM audit_log a
WHERE a.tenant_id = @tenant_id AND a.action = 'tenant.export_sent' AND a.id > posthorn.first_id(now() - make_interval(secs => @seconds))
ORDER BY a.at DESC LIMIT 1;
