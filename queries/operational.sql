-- Operational webhooks: notices and dead letters of all tenants become events of the platform's own tenant. Alert
-- channels: they become events of the tenant itself, where an endpoint asks for them. The relay runs as the worker role;
-- making the tenant, as the console.

-- name: LockForPlatformTenant :one
SELECT settings FROM platform FOR UPDATE;

-- name: SetPlatformTenant :exec
UPDATE platform SET settings = jsonb_set(settings, '{tenant}', to_jsonb(@tenant::text));

-- name: PlatformSubscriptions :many
-- The event types that the endpoints of the platform's tenant subscribe to.
SELECT event_types FROM endpoints WHERE tenant_id = @tenant_id AND deleted_at IS NULL;

-- name: TakeUnrelayed :many
-- With the mutes of their tenant and of the alerts of their endpoint.
SELECT sqlc.embed(n), t.settings AS tenant_settings, m.muted_at, m.muted_until
FROM notices n JOIN tenants t ON t.id = n.tenant_id LEFT JOIN endpoints m ON m.tenant_id = n.tenant_id AND m.id = n.endpoint_id
WHERE n.relayed_at IS NULL ORDER BY n.id LIMIT sqlc.arg('limit') FOR UPDATE OF n SKIP LOCKED;

-- name: AlertChannels :many
-- The endpoints that ask for notices of their own tenant, of tenants that can emit.
SELECT e.tenant_id, e.id, e.event_types
FROM endpoints e JOIN tenants t ON t.id = e.tenant_id AND t.state = 'active'
WHERE e.tenant_id = ANY(@tenants::uuid[]) AND e.deleted_at IS NULL
	AND EXISTS (SELECT FROM unnest(e.event_types) AS p(pattern) WHERE starts_with(p.pattern, 'posthorn.'));

-- name: OwnAlertChannels :many
-- A tenant's endpoints that ask for its notices, for its pages.
SELECT e.id, e.url, e.description, e.event_types FROM endpoints e
WHERE e.tenant_id = @tenant_id AND e.deleted_at IS NULL
	AND EXISTS (SELECT FROM unnest(e.event_types) AS p(pattern) WHERE starts_with(p.pattern, 'posthorn.'))
ORDER BY e.id;

-- name: MarkRelayed :exec
UPDATE notices n SET relayed_at = now()
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@ids::uuid[])) AS u(tenant_id, id)
WHERE n.tenant_id = u.tenant_id AND n.id = u.id;

-- name: LastAlert :one
-- The kind of the last notice of some kinds, about one endpoint or none, that was sent to channels. No row: none was.
SELECT n.kind FROM notices n
WHERE n.tenant_id = @tenant_id AND n.kind = ANY(@kinds::text[]) AND n.alerted_at IS NOT NULL
	AND n.endpoint_id IS NOT DISTINCT FROM sqlc.narg('endpoint_id')::uuid
ORDER BY n.id DESC LIMIT 1;

-- name: MarkAlerted :exec
-- Its channels were sent the notice.
UPDATE notices SET alerted_at = now() WHERE tenant_id = @tenant_id AND id = @id;

-- name: EmitOperational :one
-- Rejected if the tenant is suspended or deleted: the notice is dropped.
SELECT posthorn.emit(@tenant::text, @type::text, CAST(@data::text AS json), NULL::text, NULL::text[], @idempotency_key::text, NULL::text, @occurred_at::timestamptz)::text AS event;

-- name: EmitAlert :one
-- The key of what opens an alert and what ends it is the same: a channel that is ordered by key gets them in this order.
SELECT posthorn.emit(@tenant::text, @type::text, CAST(@data::text AS json), @key::text, NULL::text[], NULL::text, NULL::text, @occurred_at::timestamptz)::text AS event;

-- name: TakeUnannounced :many
-- Dead letters with the facts of their deliveries.
SELECT l.tenant_id, l.delivery_id, l.endpoint_id, l.event_type, l.reason, l.failed_at,
	coalesce(d.event_id, '00000000-0000-0000-0000-000000000000')::uuid AS event_id, coalesce(d.attempts, 0)::int AS attempts,
	coalesce(d.last_status, 0)::int AS last_status, coalesce(d.last_failure, 0)::smallint AS last_failure, coalesce(e.url, '') AS url, t.settings AS tenant_settings, e.muted_at, e.muted_until
FROM dead_letters l
JOIN tenants t ON t.id = l.tenant_id
LEFT JOIN deliveries d ON d.tenant_id = l.tenant_id AND d.created_at = posthorn.created_at(l.delivery_id) AND d.id = l.delivery_id
LEFT JOIN endpoints e ON e.tenant_id = l.tenant_id AND e.id = l.endpoint_id
WHERE NOT l.announced
ORDER BY l.failed_at LIMIT sqlc.arg('limit')
FOR UPDATE OF l SKIP LOCKED;

-- name: MarkAnnounced :exec
UPDATE dead_letters l SET announced = true
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@deliveries::uuid[])) AS u(tenant_id, delivery_id)
WHERE l.tenant_id = u.tenant_id AND l.delivery_id = u.delivery_id;

-- name: SomeAlertChannel :one
-- Whether an endpoint of any tenant asks for notices.
SELECT EXISTS (SELECT FROM endpoints e WHERE e.deleted_at IS NULL AND e.event_types::text LIKE '%posthorn.%');

-- name: SkipUnannounced :execrows
-- Nobody subscribes to them.
UPDATE dead_letters l SET announced = true
FROM (SELECT u.tenant_id, u.delivery_id FROM dead_letters u WHERE NOT u.announced LIMIT sqlc.arg('limit')::int FOR UPDATE SKIP LOCKED) few
WHERE l.tenant_id = few.tenant_id AND l.delivery_id = few.delivery_id;
