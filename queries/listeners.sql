-- Listeners: endpoints whose lane no worker leases. A client receives the queued deliveries over a stream and reports
-- each result.

-- name: CountListeners :one
SELECT count(*) FROM listeners WHERE tenant_id = @tenant_id;

-- name: InsertListener :exec
INSERT INTO listeners (tenant_id, endpoint_id) VALUES (@tenant_id, @endpoint_id);

-- name: MakeListener :one
-- Of an endpoint that was just created. It is active at once: the creator's key is proof enough.
UPDATE endpoints SET status = 'active', status_at = now(), verified_at = now()
WHERE tenant_id = @tenant_id AND id = @id
RETURNING *;

-- name: BeginStream :one
-- The stream that begins takes the place of the one before, which sees that it is not served any more.
UPDATE listeners SET stream = stream + 1, contact_at = now() WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id
RETURNING stream;

-- name: TakeBack :exec
-- What the previous stream did not deliver is leased again, under another number.
DELETE FROM handed_out WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND number > @seen;

-- name: PeekListener :one
-- A stream runs it several times a second, and usually nothing else: no write, no lock. Deliveries that operators have
-- paused are not leased.
SELECT l.stream, (l.contact_at < now() - interval '20 seconds')::boolean AS silent,
	(e.status = 'active' AND posthorn.paused_by(e.tenant_id, e.id, e.url) IS NULL AND EXISTS (
		SELECT 1 FROM queue q
		WHERE q.tenant_id = @tenant_id AND q.state = 0 AND q.endpoint_id = @endpoint_id AND q.seq > n.drop_below
			AND NOT EXISTS (SELECT 1 FROM handed_out h WHERE h.tenant_id = q.tenant_id AND h.delivery_id = q.delivery_id AND h.gen = q.gen)))::boolean AS waits
FROM listeners l
JOIN endpoints e ON e.tenant_id = l.tenant_id AND e.id = l.endpoint_id
JOIN lanes n ON n.endpoint_id = l.endpoint_id
WHERE l.tenant_id = @tenant_id AND l.endpoint_id = @endpoint_id;

-- name: TouchListener :exec
UPDATE listeners SET contact_at = now()
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND contact_at < now() - interval '20 seconds';

-- name: LockListener :one
-- No row: another stream has taken over. Only the transaction that holds this row leases.
SELECT sent FROM listeners WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND stream = @stream FOR UPDATE;

-- name: CountLeased :one
-- Leased deliveries without a result.
SELECT count(*) FROM handed_out h
JOIN queue q ON q.tenant_id = h.tenant_id AND q.delivery_id = h.delivery_id AND q.gen = h.gen
WHERE h.tenant_id = @tenant_id AND h.endpoint_id = @endpoint_id;

-- name: NextToLease :many
-- The head of the lane, without leased deliveries.
SELECT q.gen, q.attempts, q.delivery_id, q.event_id, q.replay, q.first_id FROM queue q
WHERE q.tenant_id = @tenant_id AND q.state = 0 AND q.endpoint_id = @endpoint_id
	AND q.seq > (SELECT n.drop_below FROM lanes n WHERE n.tenant_id = @tenant_id AND n.endpoint_id = @endpoint_id)
	AND NOT EXISTS (SELECT 1 FROM handed_out h WHERE h.tenant_id = q.tenant_id AND h.delivery_id = q.delivery_id AND h.gen = q.gen)
ORDER BY q.seq LIMIT sqlc.arg('limit')::int;

-- name: InsertLease :exec
INSERT INTO handed_out (tenant_id, endpoint_id, delivery_id, number, gen, attempts, attempt_id, signature)
VALUES (@tenant_id, @endpoint_id, @delivery_id, @number, @gen, @attempts, @attempt_id, @signature)
ON CONFLICT (tenant_id, delivery_id) DO UPDATE SET number = excluded.number, gen = excluded.gen, attempts = excluded.attempts,
	attempt_id = excluded.attempt_id, signature = excluded.signature, handed_at = excluded.handed_at;

-- name: SetSent :exec
UPDATE listeners SET sent = @sent, contact_at = now() WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: ForgetStale :exec
-- Deliveries that were canceled while the client had them, and never got a result.
DELETE FROM handed_out h WHERE h.tenant_id = @tenant_id AND h.endpoint_id = @endpoint_id AND h.handed_at < now() - interval '1 hour'
	AND NOT EXISTS (SELECT 1 FROM queue q WHERE q.tenant_id = h.tenant_id AND q.delivery_id = h.delivery_id);

-- name: GetLease :one
SELECT * FROM handed_out
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND delivery_id = @delivery_id AND attempt_id = @attempt_id;

-- name: AttemptExists :one
SELECT EXISTS (SELECT 1 FROM attempts
	WHERE tenant_id = @tenant_id AND delivery_id = @delivery_id AND created_at = @created_at AND id = @id);

-- name: TakeAnswered :exec
-- In the transaction that records the result.
DELETE FROM handed_out WHERE tenant_id = @tenant_id AND delivery_id = @delivery_id AND attempt_id = @attempt_id;

-- name: ForgetListener :exec
DELETE FROM listeners WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: SetListening :one
-- A listener whose program went away is paused, and drops events, until the program connects again.
UPDATE endpoints SET status = @status, status_reason = @status_reason, when_held = @when_held, status_at = now(), updated_at = now()
WHERE tenant_id = @tenant_id AND id = @id AND deleted_at IS NULL
RETURNING *;

-- name: SilentListeners :many
-- Listeners that still get deliveries, and had no contact for a time.
SELECT l.tenant_id, l.endpoint_id FROM listeners l JOIN endpoints e ON e.tenant_id = l.tenant_id AND e.id = l.endpoint_id
WHERE l.contact_at < now() - make_interval(secs => @seconds) AND e.status = 'active' AND e.deleted_at IS NULL
ORDER BY l.contact_at LIMIT sqlc.arg('limit');

-- name: AbandonedListeners :many
SELECT tenant_id, endpoint_id FROM listeners WHERE contact_at < now() - make_interval(secs => @seconds) ORDER BY contact_at LIMIT sqlc.arg('limit');

-- name: LockAbandoned :one
-- No row: its client has come back.
SELECT contact_at FROM listeners
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND contact_at < now() - make_interval(secs => @seconds) FOR UPDATE;

-- name: CancelTaken :many
-- Cancels deliveries whose queue rows were deleted.
WITH ended AS (
	UPDATE deliveries d SET status = 4, reason = @reason, settled_at = now()
	FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@created::timestamptz[]), unnest(@ids::uuid[])) AS u(tenant_id, created_at, id)
	WHERE d.tenant_id = u.tenant_id AND d.created_at = u.created_at AND d.id = u.id AND d.created_at BETWEEN @low AND @high
	RETURNING d.tenant_id, d.id, d.endpoint_id, d.event_type, d.attempts
)
INSERT INTO cancellations (tenant_id, delivery_id, endpoint_id, event_type, attempted)
SELECT tenant_id, id, endpoint_id, event_type, attempts > 0 FROM ended
ON CONFLICT (tenant_id, delivery_id) DO NOTHING
RETURNING delivery_id;
