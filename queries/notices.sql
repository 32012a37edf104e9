-- Notices: what Posthorn tells a tenant.

-- name: InsertNotice :execrows
-- No row: one with this key is there already.
INSERT INTO notices (tenant_id, id, kind, key, endpoint_id, details, created_at)
VALUES (@tenant_id, @id, @kind, @key, sqlc.narg('endpoint_id'), @details, @created_at)
ON CONFLICT (tenant_id, key) DO NOTHING;
