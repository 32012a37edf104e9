-- Operators' views of tenants' dashboards, as the console role. A view that is over does not count.

-- name: LockView :one
-- The session's look, over or not, for who begins another or ends it.
SELECT v.*, (v.expires_at > now())::boolean AS live FROM operator_views v WHERE v.session_id = @session_id FOR UPDATE;

-- name: SetView :one
INSERT INTO operator_views (session_id, tenant_id, operator_id, reason, expires_at)
VALUES (@session_id, @tenant_id, @operator_id, @reason, now() + make_interval(mins => @minutes::int))
ON CONFLICT (session_id) DO UPDATE SET tenant_id = excluded.tenant_id, operator_id = excluded.operator_id, reason = excluded.reason,
	acting = false, began_at = now(), expires_at = excluded.expires_at
RETURNING *;

-- name: FindView :one
-- The row is locked until the page is entered in the audit log: a view can't end in between.
SELECT sqlc.embed(v), t.name AS tenant_name, t.state AS tenant_state
FROM operator_views v JOIN tenants t ON t.id = v.tenant_id
WHERE v.session_id = @session_id AND v.tenant_id = @tenant_id AND v.expires_at > now()
FOR SHARE OF v;

-- name: ActInView :execrows
UPDATE operator_views SET acting = true, reason = @reason WHERE session_id = @session_id AND tenant_id = @tenant_id AND expires_at > now() AND NOT acting;

-- name: DeleteView :exec
DELETE FROM operator_views WHERE session_id = @session_id;

-- name: SeenLately :one
-- Whether the same operator's view of this page was entered within the hour.
SELECT EXISTS (
	SELECT FROM audit_log a
	WHERE a.tenant_id = @tenant_id AND a.id > posthorn.first_id(now() - interval '1 hour')
		AND a.actor_kind = 'operator' AND a.actor_id = @actor_id AND a.action = @action AND a.object_id = @object_id
)::boolean AS seen;
