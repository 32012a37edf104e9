-- A move of a tenant that no command runs is told to operators: its replication slot keeps the log of the server
-- (docs/adr/0034-moves-by-replication.md).

-- +goose Up

-- Since when no command runs it, as far as workers have seen; NULL: one runs.
ALTER TABLE tenant_moves ADD COLUMN stopped_at timestamptz;
GRANT UPDATE (stopped_at) ON tenant_moves TO posthorn_worker;

-- +goose Down

REVOKE UPDATE (stopped_at) ON tenant_moves FROM posthorn_worker;
ALTER TABLE tenant_moves DROP COLUMN stopped_at;
