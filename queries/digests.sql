-- The daily digest and the operators' alerts: reads of sweeps over all tenants. They run as the worker role.

-- name: SweptTenants :many
-- The tenants that have endpoints, a page at a time.
SELECT t.id, t.name FROM tenants t
WHERE t.id > @after AND t.state = 'active' AND EXISTS (SELECT 1 FROM endpoints e WHERE e.tenant_id = t.id)
ORDER BY t.id LIMIT sqlc.arg('limit');

-- name: LastDigest :one
-- The day of a tenant's last digest, and when it was created. No row: the tenant had none.
SELECT day, created_at FROM digests WHERE tenant_id = @tenant_id ORDER BY day DESC LIMIT 1;

-- name: InsertDigest :execrows
-- No row: the tenant has its digest of this day.
INSERT INTO digests (tenant_id, day, notice_id, created_at) VALUES (@tenant_id, @day, @notice_id, @created_at)
ON CONFLICT (tenant_id, day) DO NOTHING;

-- name: DropOldDigests :execrows
-- The last digest of a tenant stays: it is compared with a clock that was set back.
DELETE FROM digests d WHERE d.day < @before::date
AND EXISTS (SELECT 1 FROM digests l WHERE l.tenant_id = d.tenant_id AND l.day > d.day);

-- name: MakePeriodicDue :execrows
-- A request from outside makes the sweep due now.
UPDATE chores SET done_at = '-infinity' WHERE name = ANY(@names::text[]);

-- name: ClaimSweep :one
-- As ClaimPeriodic, in a transaction of its own before a sweep of many tenants. If the worker dies, the next sweep
-- does the rest, and nothing twice, since every step has a row.
UPDATE chores SET done_at = now()
WHERE name = (SELECT c.name FROM chores c
	WHERE c.name = @name AND c.done_at <= now() - make_interval(secs => @seconds)
	FOR UPDATE SKIP LOCKED)
RETURNING name;
