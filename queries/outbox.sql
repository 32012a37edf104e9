-- The outbox: events that a product emitted in a transaction of its own (posthorn.emit), until the relay has stored them.

-- name: OutboxWaits :one
SELECT EXISTS (SELECT 1 FROM outbox WHERE due_at <= now());

-- name: TakeOutbox :many
-- What is committed and due, in the order of emission. Whatever is there is taken, never "what came after the last one": ids
-- are drawn before their transactions commit, and a late one would be passed over for ever.
SELECT * FROM outbox WHERE due_at <= now() ORDER BY id LIMIT @most FOR UPDATE SKIP LOCKED;

-- name: DeleteOutbox :exec
DELETE FROM outbox WHERE id = ANY(@ids::uuid[]);

-- name: PostponeOutbox :exec
UPDATE outbox SET tries = tries + 1, due_at = now() + least(power(2, tries), 60) * interval '1 second' WHERE id = ANY(@ids::uuid[]);

-- name: RejectOutbox :exec
INSERT INTO outbox_rejected (id, tenant_id, type, data, key, channels, version, occurred_at, deliver_at, idempotency_key, code, detail)
SELECT o.id, o.tenant_id, o.type, o.data, o.key, o.channels, o.version, o.occurred_at, o.deliver_at, o.idempotency_key, @code, @detail
FROM outbox o WHERE o.id = @id;

-- name: OutboxSize :one
-- How many rows wait, counted up to a bound, and for how long the oldest has.
SELECT count(*) AS n, coalesce(extract(epoch FROM now() - posthorn.created_at((array_agg(o.id ORDER BY o.id))[1])), 0)::double precision AS lag_seconds
FROM (SELECT id FROM outbox ORDER BY id LIMIT 100000) o;

-- name: CountRejected :one
SELECT count(*) FROM (SELECT 1 FROM outbox_rejected LIMIT 100000) r;
