-- The data of large events in object storage.

-- name: InsertLargePayload :exec
-- Before the object is written. An event that is not there after an hour was not stored.
INSERT INTO large_payloads (tenant_id, event_id, created_at, check_at) VALUES (@tenant_id, @event_id, @created_at, now() + interval '1 hour')
ON CONFLICT DO NOTHING;

-- name: CheckLargePayloads :many
-- Whether the events of the next payloads are kept with their data, in the tables or in storage. What is not is checked
-- again soon, in case its object can't be deleted now.
WITH due AS (
	SELECT p.tenant_id, p.event_id, p.created_at FROM large_payloads p WHERE p.check_at <= now() ORDER BY p.check_at LIMIT sqlc.arg('limit')
), looked AS (
	SELECT d.tenant_id, d.event_id, (CASE WHEN e.id IS NULL THEN h.day IS NOT NULL
			AND NOT EXISTS (SELECT FROM history_expunges x WHERE x.tenant_id = d.tenant_id AND x.event_id = d.event_id AND x.day = h.day)
		ELSE e.data IS NOT NULL END)::boolean AS kept
	FROM due d
	LEFT JOIN events e ON e.tenant_id = d.tenant_id AND e.created_at = d.created_at AND e.id = d.event_id
	LEFT JOIN history_days h ON h.tenant_id = d.tenant_id AND h.day = (d.created_at AT TIME ZONE 'UTC')::date AND h.state <> 'back'
), later AS (
	UPDATE large_payloads p SET check_at = now() + CASE WHEN l.kept THEN interval '1 day' ELSE interval '1 minute' END
	FROM looked l WHERE p.tenant_id = l.tenant_id AND p.event_id = l.event_id
)
SELECT tenant_id, event_id, kept FROM looked;

-- name: LargePayloadsOf :many
SELECT event_id FROM large_payloads WHERE tenant_id = @tenant_id LIMIT sqlc.arg('limit');

-- name: ForgetLargePayloads :exec
DELETE FROM large_payloads p USING ROWS FROM (unnest(@tenants::uuid[]), unnest(@events::uuid[])) AS u(tenant_id, event_id)
WHERE p.tenant_id = u.tenant_id AND p.event_id = u.event_id;

-- name: CheckLargePayloadsNow :exec
-- Their events were expunged.
UPDATE large_payloads SET check_at = now() WHERE tenant_id = @tenant_id AND event_id = ANY(@events::uuid[]);
