-- Notices to a tenant.

-- name: InsertNotice :execrows
-- No row: one with this key is there already.
INSERT INTO notices (tenant_id, id, kind, key, endpoint_id, details, created_at)
VALUES (@tenant_id, @id, @kind, @key, sqlc.narg('endpoint_id'), @details, @created_at)
ON CONFLICT (tenant_id, key) DO NOTHING;

-- name: TakeUnmailed :many
-- Notices whose mails are not in the outbox yet, with their tenant. The same transaction inserts the mails and marks
-- the notices, and the mute of the alerts of their endpoint. A trial is a notice that a test event, a test inbox or a listener caused: it alerts no operator.
SELECT sqlc.embed(n), t.name AS tenant_name, t.settings AS tenant_settings, m.muted_at, m.muted_until,
	(EXISTS (SELECT FROM endpoints e WHERE e.tenant_id = n.tenant_id AND e.id = n.endpoint_id AND e.kind IN ('listen', 'inbox'))
		OR n.details ->> 'reason' = 'gone' AND coalesce((SELECT x.trial FROM dead_letters x
			WHERE x.tenant_id = n.tenant_id AND x.endpoint_id = n.endpoint_id ORDER BY x.delivery_id DESC LIMIT 1), false))::boolean AS trial
FROM notices n JOIN tenants t ON t.id = n.tenant_id
LEFT JOIN endpoints m ON m.tenant_id = n.tenant_id AND m.id = n.endpoint_id
WHERE n.mailed_at IS NULL
ORDER BY n.id LIMIT sqlc.arg('limit')
FOR UPDATE OF n SKIP LOCKED;

-- name: MarkMailed :exec
UPDATE notices SET mailed_at = now() WHERE tenant_id = @tenant_id AND id = @id;

-- name: NoticeMembers :many
-- The possible recipients, with their roles in the tenant.
SELECT m.person_id, m.role, p.email
FROM memberships m JOIN people p ON p.id = m.person_id
WHERE m.tenant_id = @tenant_id AND p.disabled_at IS NULL
ORDER BY m.person_id;

-- name: NoticePreferences :many
-- The recipients' choices, of all kinds.
SELECT recipient, kind, wanted FROM notice_preferences WHERE tenant_id = @tenant_id;

-- name: PreferencesOf :many
-- One recipient's choices.
SELECT kind, wanted FROM notice_preferences WHERE tenant_id = @tenant_id AND recipient = @recipient;

-- name: SetPreference :execrows
-- No row: it was so already.
INSERT INTO notice_preferences AS p (tenant_id, recipient, kind, wanted)
VALUES (@tenant_id, @recipient, @kind, @wanted)
ON CONFLICT (tenant_id, recipient, kind) DO UPDATE SET wanted = excluded.wanted, changed_at = now()
WHERE p.wanted <> excluded.wanted;

-- name: RecipientRole :one
-- A person's role in the tenant. No row: no longer a member.
SELECT m.role FROM memberships m WHERE m.tenant_id = @tenant_id AND m.person_id = @person_id;

-- name: AlertedOperators :many
-- The operators who get alerts.
SELECT id, email FROM operators WHERE disabled_at IS NULL ORDER BY id;

-- name: DropOldNotices :execrows
-- Old notices, without those that still need a mail.
DELETE FROM notices n USING (
	SELECT o.tenant_id, o.id FROM notices o
	WHERE o.id < @before AND o.mailed_at IS NOT NULL AND o.relayed_at IS NOT NULL ORDER BY o.id LIMIT sqlc.arg('limit')::int
) old
WHERE n.tenant_id = old.tenant_id AND n.id = old.id;

-- name: ListNotices :many
-- Of some kinds or of all, of one endpoint or of all.
SELECT * FROM notices
WHERE tenant_id = @tenant_id AND id > @low AND id < @high AND (coalesce(cardinality(@kinds::text[]), 0) = 0 OR kind = ANY(@kinds::text[]))
	AND (sqlc.narg('endpoint_id')::uuid IS NULL OR endpoint_id = sqlc.narg('endpoint_id'))
ORDER BY CASE WHEN @newest::boolean THEN id END DESC, id LIMIT sqlc.arg('limit');

-- name: NoticesSeen :one
-- Up to which notice a member has read them.
SELECT notices_seen FROM memberships WHERE tenant_id = @tenant_id AND id = @member_id;

-- name: CountUnread :one
-- Notices of some kinds that a member has not read, up to 100.
SELECT count(*) FROM (
	SELECT 1 FROM notices n
	WHERE n.tenant_id = @tenant_id AND n.kind = ANY(@kinds::text[])
		AND n.id > (SELECT m.notices_seen FROM memberships m WHERE m.tenant_id = @tenant_id AND m.id = @member_id)
	LIMIT 100
) unread;

-- name: SeeNotices :exec
-- Everything up to one is read.
UPDATE memberships SET notices_seen = @newest WHERE tenant_id = @tenant_id AND id = @member_id AND notices_seen < @newest;
