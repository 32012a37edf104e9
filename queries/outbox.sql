-- The outbox: events that a product emitted in its own transaction (posthorn.emit), until the relay has stored them.

-- name: OutboxWaits :one
SELECT EXISTS (SELECT 1 FROM outbox WHERE due_at <= now());

-- name: TakeOutbox :many
-- Committed and due entries, in the order of emission. The relay never reads from "after the last one": ids are drawn
-- before their transactions commit, and a late one would be skipped. Rows of some tenants can be left out.
SELECT * FROM outbox WHERE due_at <= now() AND tenant_id <> ALL(@without::uuid[]) ORDER BY id LIMIT sqlc.arg('limit') FOR UPDATE SKIP LOCKED;

-- name: DeleteOutbox :exec
DELETE FROM outbox WHERE id = ANY(@ids::uuid[]);

-- name: PostponeOutbox :exec
UPDATE outbox SET tries = tries + 1, due_at = now() + least(power(2, least(tries, 6)), 60) * interval '1 second' WHERE id = ANY(@ids::uuid[]);

-- name: RejectOutbox :exec
INSERT INTO outbox_rejected (id, tenant_id, type, data, key, channels, version, occurred_at, deliver_at, idempotency_key, external_id, expires_in, expires_at, source_id, code, detail)
SELECT o.id, o.tenant_id, o.type, o.data, o.key, o.channels, o.version, o.occurred_at, o.deliver_at, o.idempotency_key, o.external_id, o.expires_in, o.expires_at, o.source_id, @code, @detail
FROM outbox o WHERE o.id = @id;

-- name: OutboxSize :one
-- How many rows wait, counted up to a bound, and for how long the oldest has. What of a source waits for a quota is left
-- out.
SELECT count(*) AS n, coalesce(extract(epoch FROM now() - posthorn.created_at((array_agg(o.id ORDER BY o.id))[1])), 0)::double precision AS lag_seconds
FROM (SELECT id FROM outbox WHERE source_id IS NULL OR tries = 0 ORDER BY id LIMIT 100000) o;

-- name: CountRejected :one
-- Events that were emitted in SQL, and messages of sources.
SELECT (SELECT count(*) FROM (SELECT 1 FROM outbox_rejected WHERE source_id IS NULL LIMIT 100000) e) AS events,
	(SELECT count(*) FROM (SELECT 1 FROM outbox_rejected WHERE source_id IS NOT NULL LIMIT 100000) m) AS messages;

-- name: ListRejected :many
-- Of one tenant or, for the console, of all, without their data. An unknown tenant has no name.
SELECT r.id, r.tenant_id, coalesce(t.name, '') AS tenant, r.type, octet_length(r.data)::int AS size, r.key, r.idempotency_key,
	r.code, r.detail, r.rejected_at, NULL::bytea AS data, r.source_id
FROM outbox_rejected r LEFT JOIN tenants t ON t.id = r.tenant_id
WHERE (sqlc.narg('tenant')::uuid IS NULL OR r.tenant_id = sqlc.narg('tenant')) AND r.id IN (
	(SELECT x.id FROM outbox_rejected x WHERE @newest::boolean AND x.id < @after AND (@code::text = '' OR x.code = @code) AND (sqlc.narg('source')::uuid IS NULL OR x.source_id = sqlc.narg('source'))
		AND (sqlc.narg('tenant')::uuid IS NULL OR x.tenant_id = sqlc.narg('tenant')) ORDER BY x.id DESC LIMIT sqlc.arg('limit'))
	UNION ALL
	(SELECT x.id FROM outbox_rejected x WHERE NOT @newest::boolean AND x.id > @after AND (@code::text = '' OR x.code = @code) AND (sqlc.narg('source')::uuid IS NULL OR x.source_id = sqlc.narg('source'))
		AND (sqlc.narg('tenant')::uuid IS NULL OR x.tenant_id = sqlc.narg('tenant')) ORDER BY x.id LIMIT sqlc.arg('limit'))
)
ORDER BY CASE WHEN @newest::boolean THEN r.id END DESC, r.id;

-- name: RejectedByReason :many
-- How many of each tenant and reason, the most first; of the newest hundred thousand, so that the page always opens.
SELECT x.tenant_id, coalesce(t.name, '') AS tenant, x.code, count(*) AS n, min(x.rejected_at)::timestamptz AS oldest, max(x.rejected_at)::timestamptz AS newest
FROM (SELECT tenant_id, code, rejected_at FROM outbox_rejected ORDER BY id DESC LIMIT 100000) x LEFT JOIN tenants t ON t.id = x.tenant_id
GROUP BY x.tenant_id, t.name, x.code ORDER BY n DESC, x.tenant_id, x.code LIMIT sqlc.arg('limit');

-- name: RetryRejected :one
-- Back to where the relay finds it, under its own id.
WITH again AS (
	DELETE FROM outbox_rejected r WHERE r.tenant_id = @tenant_id AND r.id = @id RETURNING r.*
), queued AS (
	INSERT INTO outbox (id, tenant_id, type, data, key, channels, version, occurred_at, deliver_at, idempotency_key, external_id, expires_in, expires_at, source_id)
	SELECT a.id, a.tenant_id, a.type, a.data, a.key, a.channels, a.version, a.occurred_at, a.deliver_at, a.idempotency_key, a.external_id, a.expires_in, a.expires_at, a.source_id FROM again a
)
SELECT code FROM again;

-- name: DiscardRejected :one
DELETE FROM outbox_rejected WHERE tenant_id = @tenant_id AND id = @id RETURNING code;

-- name: NotifyOutbox :exec
SELECT pg_notify('posthorn_outbox', '');
