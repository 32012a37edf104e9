-- The audit log. Entries are inserted in the transaction of the change that they describe, and are never changed.

-- name: InsertAudit :exec
INSERT INTO audit_log (id, tenant_id, actor_kind, actor_id, action, object_kind, object_id, address, reason, details, actor_name)
VALUES (@id, sqlc.narg('tenant_id'), @actor_kind, @actor_id, @action, @object_kind, @object_id, @address, @reason, @details, @actor_name);

-- name: ScanAuditDown :many
-- As ScanEventsDown: at most @scan rows are looked at, and the last of them is returned, matching or not.
SELECT * FROM (
	SELECT a.*, row_number() OVER (ORDER BY a.id DESC) AS place, (@action::text = '' OR a.action = @action)::boolean AS matches
	FROM audit_log a
	WHERE a.tenant_id = @tenant_id AND a.id > @low AND a.id < @high
	ORDER BY a.id DESC
	LIMIT @scan::int
) looked
WHERE matches OR place = @scan::int
ORDER BY id DESC
LIMIT @most::int;

-- name: ScanAuditUp :many
SELECT * FROM (
	SELECT a.*, row_number() OVER (ORDER BY a.id) AS place, (@action::text = '' OR a.action = @action)::boolean AS matches
	FROM audit_log a
	WHERE a.tenant_id = @tenant_id AND a.id > @low AND a.id < @high
	ORDER BY a.id
	LIMIT @scan::int
) looked
WHERE matches OR place = @scan::int
ORDER BY id
LIMIT @most::int;

-- name: ExpungeSaid :one
-- Why the data of one event was expunged.
SELECT at, actor_kind, actor_id, reason FROM audit_log
WHERE tenant_id = @tenant_id AND action = 'event.expunge' AND object_id = @object
ORDER BY id DESC LIMIT 1;

-- name: CreatedEndpoint :one
-- Whether a person or key created this endpoint. The entry is written in the transaction that creates it.
SELECT count(*) FROM audit_log
WHERE tenant_id = @tenant_id AND id > posthorn.first_id(@since) AND id < posthorn.first_id(@until)
	AND action = 'endpoint.create' AND actor_kind = @actor_kind AND actor_id = @actor_id AND object_id = @object;
