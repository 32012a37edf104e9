-- The outbox of mails.

-- name: InsertMail :execrows
-- No row: a mail for this purpose is there already.
INSERT INTO mails (id, tenant_id, key, recipient, kind, data, sealed, created_at)
VALUES (@id, sqlc.narg('tenant_id'), @key, @recipient, @kind, @data, sqlc.narg('sealed')::bytea, @created_at)
ON CONFLICT (key) DO NOTHING;
