-- Subscriptions of AI clients (docs/mcp.md). Each has an endpoint, and is deleted with it.

-- name: GetSubscription :one
SELECT * FROM subscriptions WHERE tenant_id = @tenant_id AND id = @id;

-- name: InsertSubscription :exec
INSERT INTO subscriptions (tenant_id, id, endpoint_id, principal, event_type, arguments, cursor, expires_at)
VALUES (@tenant_id, @id, @endpoint_id, @principal, @event_type, @arguments, @cursor, @expires_at);

-- name: RefreshSubscription :exec
UPDATE subscriptions SET expires_at = @expires_at, cursor = @cursor, refreshed_at = now() WHERE tenant_id = @tenant_id AND id = @id;

-- name: CountSubscriptions :one
SELECT count(*) AS total, count(*) FILTER (WHERE principal = @principal) AS own FROM subscriptions WHERE tenant_id = @tenant_id;

-- name: ListSubscriptions :many
-- In either direction, beyond an endpoint. An empty principal is every one.
SELECT * FROM subscriptions
WHERE tenant_id = @tenant_id AND CASE WHEN @newest::boolean THEN endpoint_id < @after ELSE endpoint_id > @after END
	AND (@principal::text = '' OR principal = @principal)
ORDER BY CASE WHEN @newest THEN endpoint_id END DESC, endpoint_id LIMIT sqlc.arg('limit');

-- name: DeleteSubscription :exec
DELETE FROM subscriptions WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: EndedSubscriptions :many
-- Those that were not refreshed in time, and those whose receiver wants no more events.
SELECT s.tenant_id, s.id FROM subscriptions s
JOIN endpoints e ON e.tenant_id = s.tenant_id AND e.id = s.endpoint_id
WHERE s.expires_at < now() OR e.status = 'disabled' AND e.status_reason = @gone_reason::text
ORDER BY s.expires_at LIMIT sqlc.arg('limit')::int;
