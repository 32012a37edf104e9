-- The end of a tenant: what its deletion removes, and what a job erases later. Runs as the console role.

-- name: TenantHoldings :one
-- What the deletion of a tenant removes. Waiting deliveries are counted up to 10,001.
SELECT (SELECT count(*) FROM endpoints e WHERE e.tenant_id = @tenant_id AND e.deleted_at IS NULL) AS endpoints,
	(SELECT count(*) FROM api_keys k WHERE k.tenant_id = @tenant_id AND k.revoked_at IS NULL) AS keys,
	(SELECT count(*) FROM memberships m WHERE m.tenant_id = @tenant_id) AS members,
	(SELECT count(*) FROM (SELECT 1 FROM queue q WHERE q.tenant_id = @tenant_id LIMIT 10001) x) AS waiting;

-- name: LiveEndpointIDs :many
SELECT id FROM endpoints WHERE tenant_id = @tenant_id AND deleted_at IS NULL ORDER BY id;

-- name: EndBulkJobs :exec
UPDATE bulk_jobs SET state = 'canceled', ended_at = now() WHERE tenant_id = @tenant_id AND state IN ('queued', 'running', 'sampled');

-- name: EndKeys :exec
UPDATE api_keys SET revoked_at = now() WHERE tenant_id = @tenant_id AND revoked_at IS NULL;

-- name: EndMemberships :exec
DELETE FROM memberships WHERE tenant_id = @tenant_id;

-- name: EndInvitations :exec
DELETE FROM invitations WHERE tenant_id = @tenant_id;

-- name: EndPortalLinks :exec
UPDATE portal_links SET revoked_at = now() WHERE tenant_id = @tenant_id AND revoked_at IS NULL;

-- name: EndShares :exec
DELETE FROM delivery_shares WHERE tenant_id = @tenant_id;

-- name: EndViews :exec
-- Ends operators' views of it.
DELETE FROM operator_views WHERE tenant_id = @tenant_id;

-- name: EndPauses :exec
DELETE FROM dispatch_pauses WHERE tenant_id = @tenant_id;

-- name: EndMails :exec
DELETE FROM mails WHERE tenant_id = @tenant_id AND state = 'waiting';

-- name: EndTenant :exec
-- Its settings hold addresses of people. Its routes are others now, so that no group commit under way stores an event
-- for it.
UPDATE tenants SET state = 'deleted', deleted_at = now(), settings = '{}', routing_version = routing_version + 1 WHERE id = @tenant_id;

-- name: TenantsToErase :many
-- Tenants that were deleted a while ago: requests of that time have ended. The data that a moved tenant left can be
-- kept.
SELECT id FROM tenants
WHERE state = 'deleted' AND erased_at IS NULL AND deleted_at <= now() - make_interval(secs => @seconds)
	AND NOT EXISTS (SELECT FROM tenant_moves m WHERE m.tenant_id = tenants.id AND m.keep)
ORDER BY deleted_at LIMIT 100;

-- name: HoldErasure :one
-- The lock is the lease of one batch. No row: another worker is at it, or it is done.
SELECT t.id FROM tenants t WHERE t.id = @tenant_id AND t.state = 'deleted' AND t.erased_at IS NULL FOR NO KEY UPDATE SKIP LOCKED;

-- name: QueuedEndpoints :many
-- The endpoints for which something of a tenant still waits, though they are deleted.
SELECT DISTINCT endpoint_id FROM queue WHERE tenant_id = @tenant_id LIMIT 100;

-- name: EraseDeliveries :one
-- Some deliveries of one day, oldest first, with their attempts of any day; returns where the next ones begin. It
-- plans by index.
WITH few AS MATERIALIZED (
	SELECT d.created_at, d.id FROM deliveries d
	WHERE d.tenant_id = @tenant_id AND d.created_at >= @low AND d.created_at < @high
	ORDER BY d.created_at, d.id LIMIT sqlc.arg('limit')::int
), tried AS (
	DELETE FROM attempts a USING few WHERE a.delivery_id = few.id AND a.tenant_id = @tenant_id AND a.created_at >= @since::timestamptz RETURNING 1
), gone AS (
	DELETE FROM deliveries d USING few
	WHERE d.tenant_id = @tenant_id AND d.created_at = few.created_at AND d.id = few.id AND d.created_at >= @low AND d.created_at < @high RETURNING 1
)
SELECT (SELECT count(*) FROM gone)::bigint AS deliveries, (SELECT count(*) FROM tried)::bigint AS attempts,
	coalesce((SELECT max(created_at) FROM few), @high)::timestamptz AS next;

-- name: MayHaveLeftovers :one
-- Whether attempts of a tenant can be left without a delivery: it had deliveries on days that were dropped, or some are
-- missing.
SELECT (EXISTS (SELECT FROM books b WHERE b.tenant_id = @tenant_id AND b.day < @oldest::date AND b.accepted > 0)
	OR EXISTS (SELECT FROM book_differences d WHERE d.tenant_id = @tenant_id))::boolean AS may;

-- name: EraseLeftovers :one
SELECT s.n::bigint AS n, coalesce(s.next_page, -1)::bigint AS next_page FROM posthorn.erase_strays(@tenant_id, @day, @from_page, @pages) AS s;

-- name: EraseEvents :one
WITH few AS MATERIALIZED (
	SELECT e.created_at, e.id FROM events e
	WHERE e.tenant_id = @tenant_id AND e.created_at >= @low AND e.created_at < @high
	ORDER BY e.created_at, e.id LIMIT sqlc.arg('limit')::int
), gone AS (
	DELETE FROM events e USING few
	WHERE e.tenant_id = @tenant_id AND e.created_at = few.created_at AND e.id = few.id AND e.created_at >= @low AND e.created_at < @high RETURNING 1
)
SELECT (SELECT count(*) FROM gone)::bigint AS events, coalesce((SELECT max(created_at) FROM few), @high)::timestamptz AS next;

-- name: EraseIdempotencyKeys :execrows
DELETE FROM idempotency_keys k
USING (SELECT i.tenant_id, i.key FROM idempotency_keys i WHERE i.tenant_id = @tenant_id LIMIT sqlc.arg('limit')::int) few
WHERE k.tenant_id = few.tenant_id AND k.key = few.key;

-- name: EraseRest :one
-- Some rows of each of the other tables.
SELECT posthorn.erase_rest(@tenant_id, sqlc.arg('limit')::int)::bigint AS n;

-- name: HasLanes :one
-- Whether the worker still has to end waiting deliveries, or to release a lane.
SELECT (EXISTS (SELECT FROM lanes l WHERE l.tenant_id = @tenant_id) OR EXISTS (SELECT FROM queue q WHERE q.tenant_id = @tenant_id))::boolean AS waits;

-- name: EndErasure :exec
UPDATE tenants SET erased_at = now() WHERE id = @tenant_id;
