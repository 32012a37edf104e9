-- Reads of events. created_at comes from the id or from both ends of an interval of ids, always as parameters, so that
-- partitions prune; lists plan by index (PlanByIndex).

-- name: GetEvent :one
SELECT * FROM events WHERE tenant_id = @tenant_id AND created_at = @created_at AND id = @id;

-- name: LinkedDelivery :one
-- What decides whether the signed link of a delivery opens. No row: it is not kept any more.
SELECT d.event_id, d.status, d.reason, coalesce(d.settled_at, now())::timestamptz AS settled_at, now()::timestamptz AS now
FROM deliveries d JOIN tenants t ON t.id = d.tenant_id AND t.state <> 'deleted'
WHERE d.tenant_id = @tenant_id AND d.created_at = @created_at AND d.id = @id;

-- name: EventExists :one
SELECT EXISTS (SELECT 1 FROM events WHERE tenant_id = @tenant_id AND created_at = @created_at AND id = @id);

-- name: ScanEvents :one
-- The first limit matching events whose ids lie between low and high. A filter that matches rarely must not read
-- months of events for one page: at most @scan rows are read; reached is the last of them.
WITH page AS (
	(SELECT e.id, e.type, e.channels, e.traceparent FROM events e
	WHERE @newest::boolean AND e.tenant_id = @tenant_id AND e.created_at BETWEEN @low_at::timestamptz AND @high_at::timestamptz
		AND (e.created_at, e.id) > (@low_at, @low::uuid) AND (e.created_at, e.id) < (@high_at, @high::uuid)
	ORDER BY e.created_at DESC, e.id DESC LIMIT @scan::int)
	UNION ALL
	(SELECT e.id, e.type, e.channels, e.traceparent FROM events e
	WHERE NOT @newest::boolean AND e.tenant_id = @tenant_id AND e.created_at BETWEEN @low_at AND @high_at
		AND (e.created_at, e.id) > (@low_at, @low) AND (e.created_at, e.id) < (@high_at, @high)
	ORDER BY e.created_at, e.id LIMIT @scan)
)
SELECT count(*)::int AS scanned,
	coalesce((array_agg(id ORDER BY CASE WHEN @newest::boolean THEN id END, id DESC))[1], '00000000-0000-0000-0000-000000000000')::uuid AS reached,
	coalesce((array_agg(id ORDER BY CASE WHEN @newest::boolean THEN id END DESC, id)
		FILTER (WHERE posthorn.matches_type(@type::text, type)
			AND (@channel::text = '' OR coalesce(@channel = ANY(channels), false))
			AND (@trace_id::text = '' OR coalesce(substr(traceparent, 4, 32) = @trace_id, false))))[1:sqlc.arg('limit')::int], '{}')::uuid[] AS ids
FROM page;

-- name: EventsOfExternalID :many
-- The same for events with the producer's own id, which are few. Older days, which have no index for these ids, are
-- left out.
SELECT e.id FROM events e
WHERE e.tenant_id = @tenant_id AND e.external_id = @external_id::text
	AND e.created_at >= greatest(@low_at::timestamptz, posthorn.event_ids_since()) AND e.created_at <= @high_at::timestamptz
	AND e.id > @low::uuid AND e.id < @high::uuid
	AND posthorn.matches_type(@type::text, e.type)
	AND (@channel::text = '' OR @channel = ANY(e.channels))
	AND (@trace_id::text = '' OR substr(e.traceparent, 4, 32) = @trace_id)
ORDER BY CASE WHEN @newest::boolean THEN e.id END DESC, e.id LIMIT sqlc.arg('limit')::int;

-- name: EventsByID :many
-- Events by id, created between two moments, with so many bytes of their data; none: without data.
SELECT e.tenant_id, e.created_at, e.id, e.type, (CASE WHEN @octets::int > 0 THEN substring(e.data, 1, @octets) END)::bytea AS data, e.key, e.channels,
	e.version, e.occurred_at, e.deliver_at, e.routing_version, e.traceparent, e.external_id,
	e.content_type, e.external_id_unsent, e.expires_at
FROM ROWS FROM (unnest(@ids::uuid[]), unnest(@created::timestamptz[])) AS u(id, created_at)
JOIN events e ON e.tenant_id = @tenant_id AND e.created_at = u.created_at AND e.id = u.id
	AND e.created_at BETWEEN @first::timestamptz AND @last::timestamptz;

-- name: RoutesOfEvent :many
-- The tenant's endpoints at one version of its routes: existing ones first, the newest of each first. An endpoint
-- without a revision of that age was created later. A feed is read with its settings of now. Endpoints and listeners that were deleted before the event are
-- left out.
SELECT e.id, e.kind, EXISTS (SELECT 1 FROM endpoint_starts s WHERE s.tenant_id = @tenant_id AND s.endpoint_id = e.id)::boolean AS starting,
	e.url, e.description, (e.deleted_at IS NOT NULL)::boolean AS gone, (r.routing_version IS NULL)::boolean AS later,
	coalesce(r.deleted, false)::boolean AS deleted, coalesce(r.status, '')::text AS status,
	coalesce(r.event_types, '{}')::text[] AS event_types, coalesce(r.channels, '{}')::text[] AS channels, coalesce(r.filter, '')::text AS filter,
	coalesce(r.payload_version, '')::text AS payload_version, coalesce(r.when_held, 'hold')::text AS when_held
FROM endpoints e
LEFT JOIN LATERAL (
	SELECT x.routing_version, x.deleted, x.status, x.event_types, x.channels, x.filter, x.payload_version, x.when_held FROM endpoint_revisions x
	WHERE x.tenant_id = @tenant_id AND x.endpoint_id = e.id AND (x.routing_version <= @routing_version OR e.kind = 'feed')
	ORDER BY x.routing_version DESC LIMIT 1
) r ON true
WHERE e.tenant_id = @tenant_id
	AND (e.deleted_at IS NULL OR e.deleted_at > @event_at::timestamptz OR e.kind <> 'listen' AND e.deleted_at > @day_before::timestamptz)
ORDER BY (e.deleted_at IS NOT NULL), e.id DESC
LIMIT sqlc.arg('limit');

-- name: FirstDeliveriesOfEvent :many
-- The first delivery of an event to each endpoint; ids are ordered by time. Two parts, as in ScanEvent.
SELECT DISTINCT ON (x.endpoint_id) x.endpoint_id, x.id
FROM (
	SELECT d.endpoint_id, d.id FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.created_at = @event_at::timestamptz AND d.event_id = @event_id
	UNION ALL
	SELECT d.endpoint_id, d.id FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.event_id = @event_id AND substring(uuid_send(d.id), 1, 6) <> substring(uuid_send(d.event_id), 1, 6)
		AND d.created_at >= @since::timestamptz
) x
ORDER BY x.endpoint_id, x.id;

-- name: OutcomesOfEvents :many
-- How many deliveries each event has in which status. A delivery that was replayed counts as its newest replay. Those
-- that were created with their event have its moment in the primary key; the others are read at once, from
-- deliveries_later (as in ScanEvent). The moments are parameters, as in DeliveredEvents.
WITH later AS MATERIALIZED (
	SELECT d.tenant_id, d.event_id, d.id, d.status FROM deliveries d
	WHERE d.event_id = ANY(@events::uuid[]) AND substring(uuid_send(d.id), 1, 6) <> substring(uuid_send(d.event_id), 1, 6)
		AND d.created_at >= @since::timestamptz
)
SELECT u.id::uuid AS id, o.waiting, o.delivered, o.failed, o.canceled
FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@events::uuid[]), unnest(@created::timestamptz[])) AS u(tenant_id, id, created_at)
CROSS JOIN LATERAL (
	SELECT count(*) FILTER (WHERE x.status < 2)::int AS waiting, count(*) FILTER (WHERE x.status = 2)::int AS delivered,
		count(*) FILTER (WHERE x.status = 3)::int AS failed, count(*) FILTER (WHERE x.status = 4)::int AS canceled
	FROM (
		SELECT d.id, d.status FROM deliveries d
		WHERE d.tenant_id = u.tenant_id AND d.created_at = u.created_at AND d.event_id = u.id
		UNION ALL
		SELECT l.id, l.status FROM later l WHERE l.tenant_id = u.tenant_id AND l.event_id = u.id
		OFFSET 0
	) x
	WHERE NOT EXISTS (SELECT FROM replays r WHERE r.tenant_id = u.tenant_id AND r.replay_of = x.id)
) o;

-- name: LatestEvents :many
-- The newest events whose type matches a pattern, and the size of each, without reading its data. At most @scan rows
-- are read.
SELECT id, octets FROM (
	SELECT e.id, e.created_at, coalesce(octet_length(e.data), 0)::int AS octets,
		EXISTS (SELECT 1 FROM unnest(@patterns::text[]) AS p(pattern)
			WHERE p.pattern = '*' AND NOT starts_with(e.type, 'posthorn.') OR posthorn.matches_type(p.pattern, e.type)) AS matches
	FROM events e
	WHERE e.tenant_id = @tenant_id AND e.created_at BETWEEN @low_at::timestamptz AND @high_at::timestamptz
	ORDER BY e.created_at DESC, e.id DESC
	LIMIT @scan::int
) looked
WHERE matches
ORDER BY created_at DESC, id DESC
LIMIT sqlc.arg('limit')::int;

-- name: BoundStatements :exec
-- How long a statement of this transaction can run, in milliseconds.
SELECT set_config('statement_timeout', (@ms::int)::text, true);

-- name: SearchEvents :one
-- The newest events below a point whose type, ordering key or trace equals a text, or whose data contains one of some
-- bytes, in any case. Folding the case of data costs three times as much as searching it, so only data that contains
-- what is certain, bytes without a case, is folded.
-- At most @scan events are read; reached is the oldest of them.
WITH page AS (
	SELECT e.id, e.type, e.key, e.traceparent, e.data FROM events e
	WHERE e.tenant_id = @tenant_id AND e.created_at BETWEEN @low_at::timestamptz AND @high_at::timestamptz
		AND (e.created_at, e.id) < (@high_at, @high::uuid)
	ORDER BY e.created_at DESC, e.id DESC
	LIMIT @scan::int
)
SELECT count(*)::int AS scanned,
	coalesce((array_agg(id ORDER BY id))[1], '00000000-0000-0000-0000-000000000000')::uuid AS reached,
	coalesce(array_agg(id ORDER BY id DESC) FILTER (WHERE @text::text IN (type, key, substr(traceparent, 4, 32))
		OR CASE WHEN @in_data::boolean AND position(@certain::bytea IN data) > 0 THEN EXISTS (
			SELECT FROM (SELECT lower(encode(data, 'escape') COLLATE "C") AS folded OFFSET 0) AS f, unnest(@needles::bytea[]) AS n(bytes)
			WHERE position(lower(encode(n.bytes, 'escape') COLLATE "C") IN f.folded) > 0) ELSE false END), '{}')::uuid[] AS ids
FROM page;

-- name: EventOfIdempotencyKey :one
-- The event that was emitted under an idempotency key of the transaction's tenant, while the key is kept; else no row.
SELECT found::uuid AS id FROM posthorn.event_of_key(@key) AS found WHERE found IS NOT NULL;
