-- The audit log. Entries are inserted in the transaction of the change that they describe, and are never changed.

-- name: InsertAudit :exec
INSERT INTO audit_log (id, tenant_id, actor_kind, actor_id, action, object_kind, object_id, address, reason, details, actor_name)
VALUES (@id, sqlc.narg('tenant_id'), @actor_kind, @actor_id, @action, @object_kind, @object_id, @address, @reason, @details, @actor_name);

-- name: InsertMemberAudits :exec
-- What one person did, or somebody tried in their name, in the logs of their tenants. One statement for any number of
-- tenants, since its duration must not reveal the number.
INSERT INTO audit_log (id, tenant_id, actor_kind, actor_id, action, object_kind, object_id, address, reason, details, actor_name)
SELECT u.id, u.tenant_id, 'member', u.member, @action, 'member', u.member, @address, '', @details, ''
FROM ROWS FROM (unnest(@ids::uuid[]), unnest(@tenants::uuid[]), unnest(@members::text[])) AS u(id, tenant_id, member);

-- name: ScanAudit :many
-- At most @scan rows are examined, and the last of them is returned, matching or not.
WITH looked AS (
	(SELECT x.id, x.action FROM audit_log x WHERE @newest::boolean AND x.tenant_id = @tenant_id AND x.id > @low AND x.id < @high ORDER BY x.id DESC LIMIT @scan::int)
	UNION ALL
	(SELECT x.id, x.action FROM audit_log x WHERE NOT @newest::boolean AND x.tenant_id = @tenant_id AND x.id > @low AND x.id < @high ORDER BY x.id LIMIT @scan::int)
), placed AS (
	SELECT id, row_number() OVER (ORDER BY CASE WHEN @newest::boolean THEN id END DESC, id) AS place, (@action::text = '' OR action = @action)::boolean AS matches
	FROM looked
)
SELECT sqlc.embed(a), p.place, p.matches FROM placed p JOIN audit_log a ON a.tenant_id = @tenant_id AND a.id = p.id
WHERE p.matches OR p.place = @scan::int
ORDER BY p.place LIMIT sqlc.arg('limit')::int;

-- name: ExpungeSaid :one
-- Why the data of one event was expunged.
SELECT at, actor_kind, actor_id, reason FROM audit_log
WHERE tenant_id = @tenant_id AND action = 'event.expunge' AND object_id = @object
ORDER BY id DESC LIMIT 1;

-- name: PausedBy :one
-- Who paused an endpoint, or changed the end of its pause, last.
SELECT actor_kind, actor_id, actor_name FROM audit_log
WHERE tenant_id = @tenant_id AND id > posthorn.first_id(@since) AND action = 'endpoint.pause' AND object_id = @object
ORDER BY id DESC LIMIT 1;

-- name: CreatedEndpoint :one
-- Whether a person or key created this endpoint. The entry is written in the transaction that creates it.
SELECT count(*) FROM audit_log
WHERE tenant_id = @tenant_id AND id > posthorn.first_id(@since) AND id < posthorn.first_id(@until)
	AND action = 'endpoint.create' AND actor_kind = @actor_kind AND actor_id = @actor_id AND object_id = @object;

-- name: AuditNames :many
-- The names of objects and authors of audit log entries, also of deleted ones whose rows still exist. The n-th id
-- belongs to the n-th tenant. URLs of endpoints are marked, because they are shown masked.
WITH asked AS (
	SELECT u.tenant_id, u.id FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@ids::uuid[])) AS u(tenant_id, id)
)
SELECT a.id::uuid AS id, (CASE WHEN e.description = '' THEN e.url ELSE e.description END)::text AS name, (e.description = '')::boolean AS is_url
FROM asked a JOIN endpoints e ON e.tenant_id = a.tenant_id AND e.id = a.id
UNION ALL
SELECT a.id, k.name, false FROM asked a JOIN api_keys k ON k.tenant_id = a.tenant_id AND k.id = a.id
UNION ALL
SELECT a.id, p.name || ' (' || p.email || ')', false
FROM asked a JOIN memberships m ON m.tenant_id = a.tenant_id AND m.id = a.id JOIN people p ON p.id = m.person_id
UNION ALL
SELECT a.id, i.email, false FROM asked a JOIN invitations i ON i.tenant_id = a.tenant_id AND i.id = a.id
UNION ALL
SELECT a.id, l.brand, false FROM asked a JOIN portal_links l ON l.tenant_id = a.tenant_id AND l.id = a.id WHERE l.brand <> ''
UNION ALL
SELECT a.id, j.kind, false FROM asked a JOIN bulk_jobs j ON j.tenant_id = a.tenant_id AND j.id = a.id
UNION ALL
SELECT a.id, s.name, false FROM asked a JOIN sources s ON s.tenant_id = a.tenant_id AND s.id = a.id
UNION ALL
SELECT a.id, t.name, false FROM asked a JOIN tenants t ON t.id = a.tenant_id AND t.id = a.id;

-- name: AuditEventTypes :many
-- The types of events and of deliveries, by id. created_at comes from the ids, so that partitions prune.
WITH asked AS (
	SELECT u.tenant_id, u.id, u.created_at
	FROM ROWS FROM (unnest(@tenants::uuid[]), unnest(@ids::uuid[]), unnest(@created::timestamptz[])) AS u(tenant_id, id, created_at)
)
SELECT a.id::uuid AS id, e.type::text AS type
FROM asked a JOIN events e ON e.tenant_id = a.tenant_id AND e.created_at = a.created_at AND e.id = a.id
	AND e.created_at BETWEEN @first::timestamptz AND @last::timestamptz
UNION ALL
SELECT a.id, d.event_type
FROM asked a JOIN deliveries d ON d.tenant_id = a.tenant_id AND d.created_at = a.created_at AND d.id = a.id
	AND d.created_at BETWEEN @first::timestamptz AND @last::timestamptz;
