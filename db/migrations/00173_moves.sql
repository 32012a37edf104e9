-- Moves of tenants use logical replication, and a home knows which tenants have moved away
-- (docs/adr/0034-moves-by-replication.md).
-- functions: 4fd0e553eb76fa6f

-- +goose Up

-- What a move recorded and copied without replication.
DROP TABLE tenant_move_parts, tenant_move_changes;
DROP FUNCTION IF EXISTS posthorn.has_token(bytea);

ALTER TABLE tenant_moves DROP CONSTRAINT tenant_moves_state_check;
ALTER TABLE tenant_moves ADD CONSTRAINT tenant_moves_state_check CHECK (state IN ('copying', 'closed', 'copied', 'done'));
-- The key under which the two homes sign the tenant's links to unsubscribe, sealed: those of before the move still work.
ALTER TABLE tenant_moves ADD COLUMN link_key bytea;

-- An expunge waits until the move is over.
GRANT SELECT (tenant_id, direction, state) ON tenant_moves TO posthorn_tenant;

-- A mark of a move. It is replicated: once it is in the other home, everything that was committed before it is there.
CREATE TABLE tenant_move_marks (
	tenant_id uuid PRIMARY KEY,
	n         bigint NOT NULL
);
SELECT posthorn.guard('tenant_move_marks');
GRANT SELECT, INSERT, UPDATE, DELETE ON tenant_move_marks TO posthorn_console;

-- Tenants that have moved to another home, which gets the requests for them that still come here.
CREATE TABLE moved_tenants (
	tenant_id   uuid PRIMARY KEY,
	home        text NOT NULL,
	external_id text,
	hashes      bytea[] NOT NULL, -- SHA-256 of keys and tokens that existed when it moved
	moved_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
SELECT posthorn.guard('moved_tenants');
GRANT SELECT ON moved_tenants TO posthorn_ingest, posthorn_account;
GRANT SELECT, INSERT, UPDATE, DELETE ON moved_tenants TO posthorn_console;

-- The keys of tenants that moved before are not known here. A second `posthorn tenant move` adds them.
INSERT INTO moved_tenants (tenant_id, home, hashes) SELECT tenant_id, home, '{}' FROM tenant_moves WHERE direction = 'out' AND state = 'done';

-- +goose Down

DROP TABLE moved_tenants, tenant_move_marks;
REVOKE SELECT (tenant_id, direction, state) ON tenant_moves FROM posthorn_tenant;
UPDATE tenant_moves SET state = 'copying' WHERE state = 'copied';
ALTER TABLE tenant_moves DROP COLUMN link_key;
ALTER TABLE tenant_moves DROP CONSTRAINT tenant_moves_state_check;
ALTER TABLE tenant_moves ADD CONSTRAINT tenant_moves_state_check CHECK (state IN ('copying', 'closed', 'done'));
CREATE TABLE tenant_move_parts (
	tenant_id uuid NOT NULL,
	part      text NOT NULL,
	n         bigint NOT NULL,
	PRIMARY KEY (tenant_id, part)
);
SELECT posthorn.guard('tenant_move_parts');
GRANT SELECT, INSERT, UPDATE, DELETE ON tenant_move_parts TO posthorn_console;
CREATE TABLE tenant_move_changes (
	n         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	tenant_id uuid NOT NULL,
	tbl       text NOT NULL,
	at        timestamptz,
	k1        uuid,
	k2        text
);
SELECT posthorn.guard('tenant_move_changes');
GRANT INSERT ON tenant_move_changes TO posthorn_lookup;
GRANT SELECT, INSERT, DELETE ON tenant_move_changes TO posthorn_console;
