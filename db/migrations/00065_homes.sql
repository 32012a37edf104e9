-- Tenants have homes (docs/adr/0021-homes.md): each database has the name of its home, and other homes ask it for its
-- tenants. A tenant that moves between two databases is copied while it works; its triggers exist only during its
-- move.

-- +goose Up

-- Which home this database is. No row: the installation has no homes.
CREATE TABLE home (
	id   boolean PRIMARY KEY DEFAULT true CHECK (id),
	name text NOT NULL
);
GRANT SELECT ON home TO posthorn_tenant, posthorn_ingest, posthorn_worker, posthorn_account, posthorn_lookup;
GRANT SELECT, INSERT, UPDATE ON home TO posthorn_console;

-- The last step of a tenant's move: nothing of it changes here until it is elsewhere.
ALTER TABLE tenants ADD COLUMN moving boolean NOT NULL DEFAULT false;

-- Moves of tenants, as this home knows them. The row of a tenant that has left stays: it has the destination.
CREATE TABLE tenant_moves (
	tenant_id  uuid PRIMARY KEY,
	direction  text NOT NULL CHECK (direction IN ('out', 'in')),
	home       text NOT NULL,                       -- the other one
	state      text NOT NULL CHECK (state IN ('copying', 'closed', 'done')),
	open_lanes uuid[] NOT NULL DEFAULT '{}',        -- that were not held before the move
	keep       boolean NOT NULL DEFAULT false,      -- what has left is not erased here
	started_at timestamptz NOT NULL DEFAULT now(),
	closed_at  timestamptz,
	done_at    timestamptz
);
SELECT posthorn.guard('tenant_moves');
GRANT SELECT ON tenant_moves TO posthorn_ingest, posthorn_worker, posthorn_lookup;
GRANT SELECT, INSERT, UPDATE, DELETE ON tenant_moves TO posthorn_console;

-- Parts of a tenant that have arrived in this home: a table, or a day of one.
CREATE TABLE tenant_move_parts (
	tenant_id uuid NOT NULL,
	part      text NOT NULL,
	n         bigint NOT NULL,
	PRIMARY KEY (tenant_id, part)
);
SELECT posthorn.guard('tenant_move_parts');
GRANT SELECT, INSERT, UPDATE, DELETE ON tenant_move_parts TO posthorn_console;

-- Rows of a moving tenant that changed since its move began, by the columns that find them again.
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

GRANT SELECT (hash) ON portal_links, invitations, one_time_links TO posthorn_lookup;
GRANT SELECT ON tenants TO posthorn_lookup;

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.find_key(key_hash bytea)
RETURNS TABLE (id uuid, tenant_id uuid, scopes text[], expires_at timestamptz, revoked boolean, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT k.id, coalesce(k.tenant_id, '00000000-0000-0000-0000-000000000000'), k.scopes,
		coalesce(k.expires_at, '9999-12-31Z'), k.revoked_at IS NOT NULL, CASE WHEN t.moving THEN 'moving' ELSE coalesce(t.state, '') END
	FROM api_keys k LEFT JOIN tenants t ON t.id = k.tenant_id
	WHERE k.hash = key_hash
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.tenant_state(tenant uuid) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT CASE WHEN moving THEN 'moving' ELSE state END FROM tenants WHERE id = tenant AND state <> 'deleted'
$$;
-- +goose StatementEnd
-- Whether a token opens something here: a portal link, an invitation, an inbox, or a link in a mail.
-- +goose StatementBegin
CREATE FUNCTION posthorn.has_token(token_hash bytea) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT EXISTS (SELECT FROM portal_links p WHERE p.hash = token_hash) OR EXISTS (SELECT FROM invitations i WHERE i.hash = token_hash)
		OR EXISTS (SELECT FROM inboxes b WHERE b.hash = token_hash) OR EXISTS (SELECT FROM one_time_links l WHERE l.hash = token_hash)
$$;
-- +goose StatementEnd
-- The trigger of a tenant that moves. Its arguments are the tenant, the table and a mode: 'track' notes the row, 'fence'
-- rejects changes while the move is in its last step, 'both' does both. The lock is shared with everything that
-- changes the tenant; the mover takes it alone before it begins the last step, and so waits for what is under way.
-- Workers' deletions pass: they are what retention removes, which the next home removes too.
-- +goose StatementBegin
CREATE FUNCTION posthorn.on_move() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
DECLARE
	r record;
BEGIN
	IF current_setting('posthorn.mover', true) = 'on' THEN
		RETURN NULL;
	END IF;
	PERFORM pg_advisory_xact_lock_shared(hashtextextended(TG_ARGV[0], 18));
	IF TG_ARGV[2] <> 'track' AND NOT (TG_OP = 'DELETE' AND current_setting('role', true) = 'posthorn_worker')
		AND EXISTS (SELECT FROM tenants t WHERE t.id = TG_ARGV[0]::uuid AND t.moving) THEN
		RAISE EXCEPTION 'tenant % moves to another home', TG_ARGV[0] USING ERRCODE = 'PH001';
	END IF;
	IF TG_ARGV[2] = 'fence' THEN
		RETURN NULL;
	END IF;
	IF TG_OP = 'DELETE' THEN r := OLD; ELSE r := NEW; END IF;
	CASE TG_ARGV[1]
	WHEN 'events', 'deliveries' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, at, k1) VALUES (r.tenant_id, TG_ARGV[1], r.created_at, r.id);
	WHEN 'attempts' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, at, k1) VALUES (r.tenant_id, TG_ARGV[1], r.created_at, r.delivery_id);
	WHEN 'dead_letters', 'cancellations' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, k1) VALUES (r.tenant_id, TG_ARGV[1], r.delivery_id);
	WHEN 'replays' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, k1) VALUES (r.tenant_id, TG_ARGV[1], r.replay_of);
	WHEN 'audit_log' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, k1) VALUES (r.tenant_id, TG_ARGV[1], r.id);
	WHEN 'idempotency_keys' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, k2) VALUES (r.tenant_id, TG_ARGV[1], r.key);
	WHEN 'endpoint_stats', 'endpoint_failures' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, at, k1) VALUES (r.tenant_id, TG_ARGV[1], r.bucket, r.endpoint_id);
	END CASE;
	RETURN NULL;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.has_token(bytea), posthorn.on_move() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.has_token(bytea) TO posthorn_ingest;
RESET ROLE;
-- Who migrates runs Posthorn, and makes the triggers of a move.
-- +goose StatementBegin
DO $$
DECLARE
	owner text := current_user;
BEGIN
	SET LOCAL ROLE posthorn_lookup;
	EXECUTE format('GRANT EXECUTE ON FUNCTION posthorn.on_move() TO %I', owner);
	RESET ROLE;
END $$;
-- +goose StatementEnd
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
DROP FUNCTION posthorn.on_move();
DROP FUNCTION IF EXISTS posthorn.has_token(bytea); -- 00164 drops it
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.find_key(key_hash bytea)
RETURNS TABLE (id uuid, tenant_id uuid, scopes text[], expires_at timestamptz, revoked boolean, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT k.id, coalesce(k.tenant_id, '00000000-0000-0000-0000-000000000000'), k.scopes,
		coalesce(k.expires_at, '9999-12-31Z'), k.revoked_at IS NOT NULL, coalesce(t.state, '')
	FROM api_keys k LEFT JOIN tenants t ON t.id = k.tenant_id
	WHERE k.hash = key_hash
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.tenant_state(tenant uuid) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT state FROM tenants WHERE id = tenant AND state <> 'deleted'
$$;
-- +goose StatementEnd
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;
REVOKE SELECT (hash) ON portal_links, invitations, one_time_links FROM posthorn_lookup;
DROP TABLE tenant_move_changes, tenant_move_parts, tenant_moves;
ALTER TABLE tenants DROP COLUMN moving;
DROP TABLE home;
