-- Subscriptions of AI clients (docs/mcp.md). Each has an endpoint, and is deleted with it.

-- name: GetSubscription :one
SELECT * FROM subscriptions WHERE tenant_id = @tenant_id AND id = @id;

-- name: InsertSubscription :exec
INSERT INTO subscriptions (tenant_id, id, endpoint_id, principal, event_type, arguments, cursor, expires_at)
VALUES (@tenant_id, @id, @endpoint_id, @principal, @event_type, @arguments, @cursor, @expires_at);

-- name: RefreshSubscription :exec
UPDATE subscriptions SET expires_at = @expires_at, cursor = @cursor, refreshed_at = now(), missed = false WHERE tenant_id = @tenant_id AND id = @id;

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

-- name: UntoldSubscriptions :many
-- Those with a delivery that failed permanently since their clients were last told, with the time until which they are told
-- now: a few seconds ago, so that no transaction adds an older one.
SELECT s.tenant_id, s.id, s.told_until, (now() - interval '5 seconds')::timestamptz AS until FROM subscriptions s
JOIN endpoints e ON e.tenant_id = s.tenant_id AND e.id = s.endpoint_id
WHERE e.status = 'active' AND EXISTS (SELECT FROM dead_letters d WHERE d.tenant_id = s.tenant_id AND d.endpoint_id = s.endpoint_id
	AND d.failed_at > s.told_until AND d.failed_at <= now() - interval '5 seconds' AND NOT d.replayed)
ORDER BY s.told_until LIMIT sqlc.arg('limit')::int;

-- name: NoteTold :execrows
UPDATE subscriptions SET told_until = @until, missed = true WHERE tenant_id = @tenant_id AND id = @id AND told_until = @was;

-- name: GetMCPAccess :one
-- Of a tenant that exists.
SELECT coalesce(a.issuer, '')::text AS issuer, coalesce(a.audience, '')::text AS audience, coalesce(a.claim, '')::text AS claim,
	coalesce(a.claim_value, '')::text AS claim_value, coalesce(a.message_id_hosts, '{}')::text[] AS message_id_hosts
FROM tenants t LEFT JOIN mcp_access a ON a.tenant_id = t.id WHERE t.id = @tenant_id AND t.state <> 'deleted';

-- name: PutMCPAccess :exec
INSERT INTO mcp_access (tenant_id, issuer, audience, claim, claim_value, message_id_hosts)
VALUES (@tenant_id, @issuer, @audience, @claim, @claim_value, @message_id_hosts)
ON CONFLICT (tenant_id) DO UPDATE SET issuer = excluded.issuer, audience = excluded.audience, claim = excluded.claim,
	claim_value = excluded.claim_value, message_id_hosts = excluded.message_id_hosts, changed_at = now();
