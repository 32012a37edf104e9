-- Endpoint health: what the recorder counted (SaveHealth), its evaluation, and its notices.

-- name: HealthToAssess :many
-- Active endpoints with an open decision, page by page, or those of a list: failures since the last success, warnings,
-- and long outages. One row an endpoint, so that no changing column needs an index.
SELECT sqlc.embed(h), t.settings, p.settings AS platform_settings
FROM endpoint_health h JOIN endpoints e ON e.tenant_id = h.tenant_id AND e.id = h.endpoint_id JOIN tenants t ON t.id = h.tenant_id
	CROSS JOIN platform p
WHERE h.endpoint_id > @after AND (cardinality(@endpoints::uuid[]) = 0 OR h.endpoint_id = ANY(@endpoints::uuid[]))
	AND e.status = 'active' AND e.deleted_at IS NULL
	AND (h.first_failure_at IS NOT NULL OR h.exhausted > 0 OR h.gone_at IS NOT NULL OR h.outage_from IS NOT NULL
		OR EXISTS (SELECT 1 FROM endpoint_warnings w WHERE w.tenant_id = h.tenant_id AND w.endpoint_id = h.endpoint_id))
ORDER BY h.endpoint_id LIMIT sqlc.arg('limit');

-- name: WarningsToAssess :many
SELECT * FROM endpoint_warnings WHERE tenant_id = ANY(@tenants::uuid[]) AND endpoint_id = ANY(@endpoints::uuid[]);

-- name: EndpointHealthOf :many
SELECT * FROM endpoint_health WHERE tenant_id = @tenant_id AND endpoint_id = ANY(@endpoints::uuid[]);

-- name: WarningsOf :many
SELECT * FROM endpoint_warnings WHERE tenant_id = @tenant_id AND endpoint_id = ANY(@endpoints::uuid[]) ORDER BY at;

-- name: RememberWarning :exec
-- In the transaction that posts its notice.
INSERT INTO endpoint_warnings (tenant_id, endpoint_id, reason, stage, since, at)
VALUES (@tenant_id, @endpoint_id, @reason, @stage, sqlc.narg('since'), @at)
ON CONFLICT (tenant_id, endpoint_id, reason, stage) DO UPDATE SET since = excluded.since, at = excluded.at;

-- name: ForgetWarnings :exec
DELETE FROM endpoint_warnings WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: ForgetOutage :exec
UPDATE endpoint_health SET outage_from = NULL WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: ClearHealth :exec
-- An endpoint that is active again starts over. The epoch voids the counts of its lane's owner.
INSERT INTO endpoint_health AS h (endpoint_id, tenant_id, epoch) VALUES (@endpoint_id, @tenant_id, 1)
ON CONFLICT (endpoint_id) DO UPDATE SET epoch = h.epoch + 1, consecutive_failures = 0, auth_streak = 0, auth_since = NULL, exhausted = 0,
	unhealthy_since = NULL, tls_only_since = NULL, first_failure_at = NULL, last_failure_at = NULL,
	closed_at = CASE WHEN h.breaker_state <> 0 THEN now() ELSE h.closed_at END, breaker_state = 0, opened_at = NULL,
	next_probe_at = NULL, probes = 0, gone_at = NULL, outage_from = NULL, last_status = 0, last_failure = 0, last_error = '', last_excerpt = '';

-- name: CloseBreaker :execrows
-- The endpoint is to have no breaker any more. The counters stay; the epoch has its lane's owner read them back.
UPDATE endpoint_health SET epoch = epoch + 1, closed_at = now(), breaker_state = 0, opened_at = NULL, next_probe_at = NULL, probes = 0
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND breaker_state <> 0;

-- name: CountHeld :many
-- How many deliveries wait for each endpoint, counted up to a bound.
SELECT u.endpoint_id::uuid AS endpoint_id, (
	SELECT count(*) FROM (
		SELECT 1 FROM queue q WHERE q.tenant_id = @tenant_id AND q.state IN (0, 1, 2, 3) AND q.endpoint_id = u.endpoint_id LIMIT sqlc.arg('limit')::int
	) w) AS held
FROM unnest(@endpoints::uuid[]) AS u(endpoint_id);

-- name: LanePolicies :many
-- What the evaluation of endpoints depends on: the settings of their tenants, and of the platform.
SELECT e.id, t.settings, p.settings AS platform_settings
FROM endpoints e JOIN tenants t ON t.id = e.tenant_id CROSS JOIN platform p WHERE e.id = ANY(@endpoints::uuid[]);

-- name: HastenVerification :execrows
-- A repeated request does not wait for a late next try. A verification that is under way keeps its claim for a minute.
UPDATE verifications SET due_at = CASE WHEN due_at > now() + interval '1 minute' THEN now() ELSE due_at END
WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id AND state = 'pending' AND requested_at > @since;

-- name: BumpLanesOf :exec
-- The tenant's settings changed, and with them how its lanes are served.
UPDATE lanes SET rev = rev + 1 WHERE tenant_id = @tenant_id;

-- name: BumpAllLanes :exec
UPDATE lanes SET rev = rev + 1;

-- name: HoldingEndpoints :many
-- Endpoints that receive nothing now, page by page, with how long their tenant keeps its events.
SELECT e.tenant_id, e.id, e.status, e.status_at, t.retention_days
FROM endpoints e JOIN tenants t ON t.id = e.tenant_id
WHERE e.id > @after AND e.status <> 'active' AND e.deleted_at IS NULL
ORDER BY e.id LIMIT sqlc.arg('limit');

-- name: OldestHeld :many
-- The oldest delivery of an endpoint that waits and is older than an id: the scan begins at the tenant's oldest and
-- ends there. A delivery with a deliver_at is as old as that moment.
SELECT posthorn.waits_since(tenant_id, delivery_id, event_id)::timestamptz AS since FROM queue
WHERE tenant_id = @tenant_id AND delivery_id < @before AND endpoint_id = @endpoint_id
	AND posthorn.waits_since(tenant_id, delivery_id, event_id) < posthorn.created_at(@before)
ORDER BY delivery_id LIMIT 1;

-- name: TakeHeldRows :many
DELETE FROM queue q
USING (SELECT r.tenant_id, r.delivery_id FROM queue r
	WHERE r.tenant_id = @tenant_id AND r.delivery_id < @before AND r.endpoint_id = @endpoint_id
		AND posthorn.waits_since(r.tenant_id, r.delivery_id, r.event_id) < posthorn.created_at(@before)
	ORDER BY r.delivery_id LIMIT sqlc.arg('limit')::int FOR UPDATE SKIP LOCKED) t
WHERE q.tenant_id = t.tenant_id AND q.delivery_id = t.delivery_id
RETURNING q.tenant_id, q.delivery_id, q.event_id, q.attempts;
