-- Deliveries and events of all tenants, for operators. Each tenant's rows are read by its own key, a bounded number
-- within a bounded time, so that a page costs an index step per tenant and partition, and needs no other index. Runs
-- as the console role, planned by index (PlanByIndex).

-- name: ScanAllDeliveries :one
-- The newest limit deliveries between two ids, from the table that has the wanted status (@source: deliveries, queue,
-- dead_letters or cancellations). @scan rows of each tenant are read; if a tenant has more, the list is complete only
-- down to reached. The retention of a tenant applies here too.
WITH looked AS MATERIALIZED (
	SELECT t.id AS tenant_id, x.id, x.place, x.matches
	FROM tenants t CROSS JOIN LATERAL (
		(SELECT d.id, row_number() OVER (ORDER BY d.created_at DESC, d.id DESC) AS place,
			(@status::int < 0 OR d.status = @status) AND posthorn.matches_type(@event_type::text, d.event_type) AS matches
		FROM deliveries d
		WHERE @source::text = 'deliveries' AND d.tenant_id = t.id AND d.created_at BETWEEN @low_at::timestamptz AND @high_at::timestamptz
			AND (d.created_at, d.id) > (@low_at, @low::uuid) AND (d.created_at, d.id) < (@high_at, @high::uuid)
		ORDER BY d.created_at DESC, d.id DESC LIMIT @scan::int)
		UNION ALL
		(SELECT q.delivery_id AS id, row_number() OVER (ORDER BY q.delivery_id DESC) AS place,
			@waiting::boolean OR coalesce(l.held, false) = @held::boolean AND (@held OR (q.attempts > 0) = @tried::boolean) AS matches
		FROM queue q LEFT JOIN lanes l ON l.endpoint_id = q.endpoint_id
		WHERE @source::text = 'queue' AND q.tenant_id = t.id AND q.delivery_id > @low AND q.delivery_id < @high
		ORDER BY q.delivery_id DESC LIMIT @scan::int)
		UNION ALL
		(SELECT z.delivery_id AS id, row_number() OVER (ORDER BY z.delivery_id DESC) AS place,
			posthorn.matches_type(@event_type::text, z.event_type) AND (NOT @open::boolean OR NOT z.replayed AND NOT z.archived
				AND z.trial IS NOT TRUE) AS matches
		FROM dead_letters z
		WHERE @source::text = 'dead_letters' AND z.tenant_id = t.id AND z.delivery_id > @low AND z.delivery_id < @high
		ORDER BY z.delivery_id DESC LIMIT @scan::int)
		UNION ALL
		(SELECT z.delivery_id AS id, row_number() OVER (ORDER BY z.delivery_id DESC) AS place,
			posthorn.matches_type(@event_type::text, z.event_type) AS matches
		FROM cancellations z
		WHERE @source::text = 'cancellations' AND z.tenant_id = t.id AND z.delivery_id > @low AND z.delivery_id < @high
		ORDER BY z.delivery_id DESC LIMIT @scan::int)
	) x
	WHERE t.state <> 'deleted' AND x.id > posthorn.first_id(now() - make_interval(days => t.retention_days))
), reached AS (
	SELECT coalesce(max(id::text), '00000000-0000-0000-0000-000000000000')::uuid AS id FROM looked WHERE place = @scan
), page AS (
	SELECT l.tenant_id, l.id FROM looked l, reached r WHERE l.matches AND l.id >= r.id ORDER BY l.id DESC LIMIT sqlc.arg('limit')::int
)
SELECT (SELECT id FROM reached)::uuid AS reached, (SELECT count(*) FROM looked) AS looked,
	coalesce(array_agg(tenant_id ORDER BY id DESC), '{}')::uuid[] AS tenants, coalesce(array_agg(id ORDER BY id DESC), '{}')::uuid[] AS ids
FROM page;

-- name: ScanAllEvents :many
-- The newest events of all tenants or of one between two ids, without data; as ScanAllDeliveries. The last row that
-- was read of a tenant that has more is returned too, matching or not. The last row has no id: its place is the number
-- of rows that were read.
WITH looked AS MATERIALIZED (
	SELECT x.*, t.id AS tenant_id, t.name AS tenant_name
	FROM tenants t CROSS JOIN LATERAL (
		SELECT e.id, e.type, e.channels, e.deliver_at, row_number() OVER (ORDER BY e.created_at DESC, e.id DESC) AS place,
			posthorn.matches_type(@type::text, e.type)::boolean AS matches
		FROM events e
		WHERE e.tenant_id = t.id AND e.created_at BETWEEN @low_at::timestamptz AND @high_at::timestamptz
			AND (e.created_at, e.id) > (@low_at, @low::uuid) AND (e.created_at, e.id) < (@high_at, @high::uuid)
		ORDER BY e.created_at DESC, e.id DESC LIMIT @scan::int
	) x
	WHERE (sqlc.narg('tenant_id')::uuid IS NULL OR t.id = sqlc.narg('tenant_id')) AND t.state <> 'deleted'
		AND x.id > posthorn.first_id(now() - make_interval(days => t.retention_days))
)
SELECT l.id, l.type, l.channels, l.deliver_at, l.place, l.matches, l.tenant_id, l.tenant_name FROM looked l WHERE l.matches OR l.place = @scan::int
UNION ALL
SELECT '00000000-0000-0000-0000-000000000000', '', '{}', NULL, count(*), false, '00000000-0000-0000-0000-000000000000', '' FROM looked
ORDER BY id DESC
LIMIT sqlc.arg('limit')::int;

-- name: OldestShown :one
-- Before this no tenant's retention shows anything.
SELECT (now() - make_interval(days => coalesce(max(retention_days), 1)))::timestamptz FROM tenants WHERE state <> 'deleted';

-- name: EndpointsNamed :many
-- One endpoint, or all that point to a host, with or without a port; also deleted ones.
SELECT e.tenant_id, e.id FROM endpoints e
WHERE (sqlc.narg('tenant_id')::uuid IS NULL OR e.tenant_id = sqlc.narg('tenant_id'))
	AND (sqlc.narg('endpoint_id')::uuid IS NULL OR e.id = sqlc.narg('endpoint_id'))
	AND (@host::text = '' OR
		substring(lower(e.url) FROM '^[a-z]+://([^/?#]+)') IN (lower(@host::text), lower(@host::text) || ':443', lower(@host::text) || ':80'))
ORDER BY e.id DESC
LIMIT sqlc.arg('limit');

-- name: TenantOfDelivery :one
-- The tenant of a delivery of any tenant.
SELECT t.id FROM tenants t
WHERE t.state <> 'deleted' AND EXISTS (SELECT FROM deliveries d WHERE d.tenant_id = t.id AND d.created_at = @created_at AND d.id = @id);

-- name: TenantOfEvent :one
SELECT t.id FROM tenants t
WHERE t.state <> 'deleted' AND EXISTS (SELECT FROM events e WHERE e.tenant_id = t.id AND e.created_at = @created_at AND e.id = @id);

-- name: AnyEndpointOfExternalID :one
-- An operator searches without knowing the tenant. Endpoints of several tenants can have the same external id; the
-- newest is returned.
SELECT id FROM endpoints WHERE external_id = @external_id::text AND deleted_at IS NULL ORDER BY id DESC LIMIT 1;
