-- What handlers tell the owner of a lane. The owner looks at rev once a second; the notification is for haste.

-- name: InsertLane :exec
INSERT INTO lanes (endpoint_id, tenant_id, held) VALUES (@endpoint_id, @tenant_id, @held);

-- name: BumpLane :exec
-- Something about the lane or its rows changed: its owner forgets what it read ahead and looks again.
UPDATE lanes SET rev = rev + 1 WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: HoldLane :exec
-- Holding and releasing write this one row, whatever the backlog.
UPDATE lanes SET rev = rev + 1, held = @held WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: DeleteLane :exec
-- The owner fails what is queued, then the lane goes.
UPDATE lanes SET rev = rev + 1, held = false, deleted = true WHERE tenant_id = @tenant_id AND endpoint_id = @endpoint_id;

-- name: NotifyWake :exec
-- Endpoint ids in hexadecimal, comma between; 'all' when they would not fit.
SELECT pg_notify('posthorn_wake', @endpoints::text);

-- name: NotifyJobs :exec
SELECT pg_notify('posthorn_jobs', '');
