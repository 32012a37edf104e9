-- Alerts of the platform's operators. The jobs that open and end them run as the worker, the page as the console.

-- name: RaiseAlert :one
-- The id of the open alert about a cause: the given one if this opened it.
INSERT INTO platform_alerts AS a (id, kind, key, title, message, page, about_tenant, about_endpoint, opened_at, seen_at)
VALUES (@id, @kind, @key, @title, @message, @page, sqlc.narg('about_tenant'), sqlc.narg('about_endpoint'), @at, @at)
ON CONFLICT (kind, key) WHERE ended_at IS NULL
DO UPDATE SET title = excluded.title, message = excluded.message, seen_at = greatest(a.seen_at, excluded.seen_at)
RETURNING a.id;

-- name: SeeDisabled :exec
-- The endpoints of open alerts of a kind are still disabled.
UPDATE platform_alerts a SET seen_at = @at
WHERE a.kind = @kind AND a.ended_at IS NULL AND a.seen_at < @at AND EXISTS (
	SELECT FROM endpoints e WHERE e.tenant_id = a.about_tenant AND e.id = a.about_endpoint AND e.deleted_at IS NULL AND e.status = 'disabled'
);

-- name: OpenAlerts :many
-- Locked, so that two workers don't end one alert twice.
SELECT * FROM platform_alerts WHERE ended_at IS NULL ORDER BY id FOR UPDATE SKIP LOCKED;

-- name: EndAlert :exec
UPDATE platform_alerts SET ended_at = @at::timestamptz WHERE id = @id AND ended_at IS NULL;

-- name: MarkAlertSent :exec
UPDATE platform_alerts SET sent = true WHERE id = @id;

-- name: ListPlatformAlerts :many
-- The open ones first, then the newest.
SELECT * FROM platform_alerts ORDER BY ended_at IS NOT NULL, id DESC LIMIT sqlc.arg('limit');

-- name: DropOldAlerts :exec
DELETE FROM platform_alerts WHERE ended_at < @before::timestamptz;
