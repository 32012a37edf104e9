-- The group commit: one transaction stores a batch of events with their deliveries and queue rows. The statements
-- travel together, as one round trip (db/queue/store.go).

-- name: RoutingTenants :many
-- Versions first, endpoints after: the endpoints can be newer than the version, never older.
SELECT id, routing_version, state, moving, strict_types, settings, (SELECT p.settings FROM platform p)::jsonb AS defaults FROM tenants WHERE id = ANY(@tenants::uuid[]) AND state <> 'deleted';

-- name: RoutingVersions :many
SELECT id, routing_version FROM tenants WHERE id = ANY(@tenants::uuid[]) AND state <> 'deleted';

-- name: RoutingEndpoints :many
SELECT tenant_id, id, kind, event_types, filter, channels, ordering, status, when_held, payload_version, expires_after_seconds,
	EXISTS (SELECT 1 FROM endpoint_starts s WHERE s.tenant_id = endpoints.tenant_id AND s.endpoint_id = endpoints.id)::boolean AS starting
FROM endpoints
WHERE tenant_id = ANY(@tenants::uuid[]) AND deleted_at IS NULL
ORDER BY tenant_id, id;

-- name: RoutingTypes :many
-- All types of a strict catalogue; of another, those that check data.
SELECT tenant_id, name, schema_check, schema, versions FROM event_types
WHERE tenant_id = ANY(@tenants::uuid[]) AND (@strict::boolean OR schema_check <> 'off');

-- name: AssertRoutes :exec
-- Fails the transaction if the routes changed since the batch was fanned out: no event misses an endpoint that was
-- acknowledged before it. It is an error because an error stops a pipeline.
SELECT CASE WHEN bool_and(t.routing_version IS NOT DISTINCT FROM u.version) THEN 1 ELSE routes_changed() END
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@versions::bigint[])) AS u(id, version)
LEFT JOIN LATERAL (SELECT r.routing_version FROM tenants r WHERE r.id = u.id LIMIT 1) t ON true;

-- name: ClaimIdempotencyKeys :many
-- Who returns won; in key order, so that two nodes never wait for each other in a circle. An expired key is taken over.
INSERT INTO idempotency_keys AS k (tenant_id, key, body_hash, event_id, deliveries, expires_at)
SELECT u.tenant_id, u.key, u.body_hash, u.event_id, u.deliveries, now() + interval '24 hours'
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@keys::text[]), unnest(@hashes::bytea[]), unnest(@events::uuid[]),
	unnest(@deliveries::int[])) AS u(tenant_id, key, body_hash, event_id, deliveries)
ORDER BY u.tenant_id, u.key
ON CONFLICT (tenant_id, key) DO UPDATE
SET body_hash = excluded.body_hash, event_id = excluded.event_id, deliveries = excluded.deliveries, expires_at = excluded.expires_at
WHERE k.expires_at < now()
RETURNING k.event_id;

-- name: IdempotencyAnswers :many
-- The response to the first request under a key.
SELECT k.tenant_id, k.key, k.body_hash, k.event_id, k.deliveries
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@keys::text[])) AS u(tenant_id, key)
JOIN idempotency_keys k ON k.tenant_id = u.tenant_id AND k.key = u.key;

-- name: InsertEvents :exec
INSERT INTO events (tenant_id, created_at, id, type, data, key, channels, version, occurred_at, deliver_at, routing_version, external_id, traceparent, content_type, external_id_unsent, expires_at)
SELECT u.tenant_id, u.created_at, u.id, u.type, u.data, nullif(u.key, ''), string_to_array(nullif(u.channels, ''), chr(31)),
	nullif(u.version, ''), u.occurred_at, u.deliver_at, u.routing_version, nullif(u.external_id, ''), nullif(u.traceparent, ''),
	nullif(u.content_type, ''), nullif(u.external_id_unsent, false), u.expires_at
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@created::timestamptz[]), unnest(@ids::uuid[]), unnest(@types::text[]),
	unnest(@datas::bytea[]), unnest(@keys::text[]), unnest(@channels::text[]), unnest(@versions::text[]),
	unnest(@occurred::timestamptz[]), unnest(@deliver::timestamptz[]), unnest(@routing_versions::bigint[]), unnest(@external_ids::text[]),
	unnest(@traceparents::text[]), unnest(@content_types::text[]), unnest(@unsent::boolean[]), unnest(@expires::timestamptz[]))
	AS u(tenant_id, created_at, id, type, data, key, channels, version, occurred_at, deliver_at, routing_version, external_id, traceparent, content_type, external_id_unsent, expires_at);

-- name: InsertEventsOnce :many
-- The same after a COMMIT of unknown outcome: an event that is there already is left out of the result, and waits for
-- the first transaction to end if it still runs.
INSERT INTO events (tenant_id, created_at, id, type, data, key, channels, version, occurred_at, deliver_at, routing_version, external_id, traceparent, content_type, external_id_unsent, expires_at)
SELECT u.tenant_id, u.created_at, u.id, u.type, u.data, nullif(u.key, ''), string_to_array(nullif(u.channels, ''), chr(31)),
	nullif(u.version, ''), u.occurred_at, u.deliver_at, u.routing_version, nullif(u.external_id, ''), nullif(u.traceparent, ''),
	nullif(u.content_type, ''), nullif(u.external_id_unsent, false), u.expires_at
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@created::timestamptz[]), unnest(@ids::uuid[]), unnest(@types::text[]),
	unnest(@datas::bytea[]), unnest(@keys::text[]), unnest(@channels::text[]), unnest(@versions::text[]),
	unnest(@occurred::timestamptz[]), unnest(@deliver::timestamptz[]), unnest(@routing_versions::bigint[]), unnest(@external_ids::text[]),
	unnest(@traceparents::text[]), unnest(@content_types::text[]), unnest(@unsent::boolean[]), unnest(@expires::timestamptz[]))
	AS u(tenant_id, created_at, id, type, data, key, channels, version, occurred_at, deliver_at, routing_version, external_id, traceparent, content_type, external_id_unsent, expires_at)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: InsertDeliveries :exec
INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type)
SELECT * FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@created::timestamptz[]), unnest(@ids::uuid[]), unnest(@events::uuid[]),
	unnest(@endpoints::uuid[]), unnest(@types::text[])) AS u(tenant_id, created_at, id, event_id, endpoint_id, event_type);

-- name: InsertQueue :many
-- After the deliveries, always: a transaction must have its number before it draws one of the queue's
-- (worker/lanes/watermark.go).
INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, state, order_key, due_at, expires_at)
SELECT u.tenant_id, u.delivery_id, u.event_id, u.endpoint_id, u.state, nullif(u.order_key, ''), u.due_at, u.expires_at
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@deliveries::uuid[]), unnest(@events::uuid[]), unnest(@endpoints::uuid[]),
	unnest(@states::smallint[]), unnest(@order_keys::text[]), unnest(@due::timestamptz[]),
	unnest(@expires::timestamptz[])) AS u(tenant_id, delivery_id, event_id, endpoint_id, state, order_key, due_at, expires_at)
RETURNING seq, delivery_id;

-- name: EnterAccepted :exec
INSERT INTO ledger (book_tenant, book_day, accepted, delivered, failed, canceled, expunged, events)
SELECT @tenants::uuid[], @days::date[], @accepted::int[], z.zeros, z.zeros, z.zeros, z.zeros, @events::int[]
FROM (SELECT array_fill(0, ARRAY[cardinality(@tenants::uuid[])]) AS zeros) z
WHERE cardinality(@tenants::uuid[]) > 0;
