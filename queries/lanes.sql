-- Messages from handlers to the owner of a lane. The owner reads rev once a second; the notification makes it faster.

-- name: InsertLane :exec
INSERT INTO lanes (endpoint_id, tenant_id, held) VALUES (@endpoint_id, @tenant_id, @held);

-- name: BumpLane :exec
-- The lane or its rows changed: its owner drops what it read ahead and reads again.
UPDATE lanes SET rev = rev + 1 WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: EndWait :execrows
-- A person ends the wait that the endpoint asked for with Retry-After. The epoch voids what the lane's owner knew.
UPDATE lanes SET rev = rev + 1, wait_epoch = wait_epoch + 1, not_before = now(), look_at = NULL
WHERE tenant_id = @tenant_id AND endpoint_id = ANY(@endpoints::uuid[]) AND not_before > now()
	AND (asked_at IS NULL OR asked_at <= coalesce(sqlc.narg('before')::timestamptz, now()));

-- name: EndWaitsPausedBy :exec
-- The same for the endpoints of an operator's pause that ends: of one endpoint, or of a host.
UPDATE lanes l SET rev = l.rev + 1, wait_epoch = l.wait_epoch + 1, not_before = now(), look_at = NULL
FROM endpoints e
WHERE e.tenant_id = l.tenant_id AND e.id = l.endpoint_id AND l.not_before > now()
	AND (e.id = sqlc.narg('endpoint_id')::uuid OR @host::text <> ''
		AND @host IN (posthorn.url_host(e.url), regexp_replace(posthorn.url_host(e.url), ':[0-9]+$', '')));

-- name: WaitsOf :many
-- The waits that endpoints of a tenant asked for and that are not over.
SELECT endpoint_id, asked_at, not_before::timestamptz AS not_before, look_at FROM lanes
WHERE tenant_id = @tenant_id AND endpoint_id = ANY(@endpoints::uuid[]) AND not_before > now();

-- name: HoldLane :exec
-- Holding and releasing write only this row, whatever the backlog.
UPDATE lanes SET rev = rev + 1, held = @held WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: DeleteLane :exec
-- The owner fails the queued deliveries, then deletes the lane.
UPDATE lanes SET rev = rev + 1, held = false, deleted = true WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: NotifyWake :exec
-- Endpoint ids in hexadecimal, comma between; 'all' when they would not fit.
SELECT pg_notify('posthorn_wake', @endpoints::text);

-- name: NotifyJobs :exec
SELECT pg_notify('posthorn_jobs', '');
