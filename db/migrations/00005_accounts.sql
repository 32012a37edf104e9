-- People, their sessions and one-time links, members and invitations of tenants, and links into a tenant's dashboard.

-- +goose Up

-- posthorn_account is the role of what a person or an operator does before or beside a tenant: signing in, the account's
-- own pages. It reads no tenant's rows: which tenants a person belongs to is answered by functions.
-- +goose StatementBegin
DO $$
DECLARE
	modern boolean := current_setting('server_version_num')::int >= 160000;
BEGIN
	IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'posthorn_account') THEN
		BEGIN
			CREATE ROLE posthorn_account NOLOGIN NOINHERIT;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN
			NULL; -- another database of this server is being migrated at the same moment
		END;
	END IF;
	IF modern THEN
		EXECUTE 'GRANT posthorn_account TO CURRENT_USER WITH INHERIT FALSE, SET TRUE';
	ELSIF NOT pg_has_role(current_user, 'posthorn_account', 'MEMBER') THEN
		EXECUTE 'GRANT posthorn_account TO CURRENT_USER';
	END IF;
END $$;
-- +goose StatementEnd
GRANT USAGE ON SCHEMA posthorn TO posthorn_account;

CREATE TABLE people (
	id          uuid PRIMARY KEY,
	email       text NOT NULL UNIQUE,       -- in lower case; proven when the account was made
	name        text NOT NULL,
	password    text NOT NULL,              -- argon2id, as a PHC string
	password_at timestamptz NOT NULL DEFAULT now(),
	totp        bytea,                      -- sealed seed; associated data: the person
	totp_at     timestamptz,                -- null: the seed was shown and not confirmed yet
	totp_step   bigint NOT NULL DEFAULT 0,  -- the 30 s step of the last code that was taken: none is taken twice
	last_tenant uuid,                       -- where the person looked last
	created_at  timestamptz NOT NULL,
	disabled_at timestamptz
);

ALTER TABLE operators
	ADD COLUMN name        text NOT NULL DEFAULT '',
	ADD COLUMN password    text,
	ADD COLUMN password_at timestamptz,
	ADD COLUMN totp        bytea,
	ADD COLUMN totp_at     timestamptz,
	ADD COLUMN totp_step   bigint NOT NULL DEFAULT 0;

-- Codes for a lost authenticator, each once. Their 80 random bits need no slow hash.
CREATE TABLE recovery_codes (
	owner_id uuid NOT NULL, -- a person or an operator
	hash     bytea NOT NULL,
	PRIMARY KEY (owner_id, hash)
);

CREATE TABLE memberships (
	tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	person_id  uuid NOT NULL REFERENCES people ON DELETE CASCADE,
	id         uuid NOT NULL UNIQUE, -- the member's
	role       text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'viewer')),
	created_at timestamptz NOT NULL,
	PRIMARY KEY (tenant_id, person_id)
);
CREATE INDEX ON memberships (person_id);
SELECT posthorn.guard('memberships');

-- A tenant sees the people who are its members, and of them no password or seed (by grants on columns).
ALTER TABLE people ENABLE ROW LEVEL SECURITY;
ALTER TABLE people FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON people TO posthorn_tenant USING (EXISTS (
	SELECT FROM memberships m WHERE m.person_id = people.id AND m.tenant_id = (SELECT posthorn.tenant())));
CREATE POLICY account ON people TO posthorn_account USING (true) WITH CHECK (true);
CREATE POLICY worker ON people TO posthorn_worker USING (true) WITH CHECK (true);
CREATE POLICY console ON people TO posthorn_console USING (true) WITH CHECK (true);
CREATE POLICY lookup ON people TO posthorn_lookup USING (true) WITH CHECK (true);

CREATE TABLE invitations (
	tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	id         uuid NOT NULL,
	email      text NOT NULL,
	role       text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'viewer')),
	hash       bytea NOT NULL UNIQUE, -- SHA-256 of the link's token
	invited_by text NOT NULL,         -- who, as the audit log names them
	created_at timestamptz NOT NULL,
	expires_at timestamptz NOT NULL,
	PRIMARY KEY (tenant_id, id),
	UNIQUE (tenant_id, email)
);
SELECT posthorn.guard('invitations');

-- Links that sign a provider's customer into the dashboard of one tenant.
CREATE TABLE portal_links (
	tenant_id       uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	id              uuid NOT NULL UNIQUE,
	hash            bytea NOT NULL UNIQUE,
	role            text NOT NULL CHECK (role IN ('admin', 'developer', 'viewer')),
	brand           text NOT NULL DEFAULT '',
	accent          text NOT NULL DEFAULT '',
	return_url      text NOT NULL DEFAULT '',
	allow_secrets   boolean NOT NULL DEFAULT false,
	session_seconds int NOT NULL CHECK (session_seconds BETWEEN 3600 AND 604800),
	created_by      text NOT NULL,
	created_at      timestamptz NOT NULL,
	open_until      timestamptz NOT NULL,
	opened_at       timestamptz,
	revoked_at      timestamptz,
	PRIMARY KEY (tenant_id, id)
);
SELECT posthorn.guard('portal_links');

-- The token itself is only in the cookie. created_at is the time of the sign-in, fresh_at that of the last proof of
-- identity; pending: the password was right, and the second factor is missing.
CREATE TABLE sessions (
	id          uuid PRIMARY KEY,
	hash        bytea NOT NULL UNIQUE,
	kind        text NOT NULL CHECK (kind IN ('person', 'operator', 'portal')),
	person_id   uuid REFERENCES people ON DELETE CASCADE,
	operator_id uuid REFERENCES operators ON DELETE CASCADE,
	link_id     uuid REFERENCES portal_links (id) ON DELETE CASCADE,
	pending     boolean NOT NULL DEFAULT false,
	data        jsonb NOT NULL DEFAULT '{}',
	address     text NOT NULL DEFAULT '',
	agent       text NOT NULL DEFAULT '',
	created_at  timestamptz NOT NULL DEFAULT now(),
	fresh_at    timestamptz NOT NULL DEFAULT now(),
	seen_at     timestamptz NOT NULL DEFAULT now(),
	expires_at  timestamptz NOT NULL,
	CHECK (num_nonnulls(person_id, operator_id, link_id) = 1)
) WITH (fillfactor = 70);
CREATE INDEX ON sessions (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX ON sessions (operator_id) WHERE operator_id IS NOT NULL;
CREATE INDEX ON sessions (link_id) WHERE link_id IS NOT NULL;
CREATE INDEX ON sessions (expires_at);

-- Links in mails that are good once: to confirm an address, to set a password, to sign in.
CREATE TABLE one_time_links (
	hash        bytea PRIMARY KEY,
	purpose     text NOT NULL CHECK (purpose IN ('sign_up', 'reset_password', 'change_email', 'sign_in', 'operator')),
	person_id   uuid REFERENCES people ON DELETE CASCADE,
	operator_id uuid REFERENCES operators ON DELETE CASCADE,
	email       text NOT NULL DEFAULT '',
	data        jsonb NOT NULL DEFAULT '{}',
	created_at  timestamptz NOT NULL DEFAULT now(),
	expires_at  timestamptz NOT NULL
);
CREATE INDEX ON one_time_links (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX ON one_time_links (expires_at);

-- How often an action was tried recently, by a hash of the action and the account, whether the account exists or not.
CREATE TABLE account_limits (
	key   bytea PRIMARY KEY,
	n     int NOT NULL,
	until timestamptz NOT NULL
);
CREATE INDEX ON account_limits (until);

-- The tenants of a person, and what the person is in each: nothing else of either is told.
-- +goose StatementBegin
CREATE FUNCTION posthorn.tenants_of(person uuid)
RETURNS TABLE (tenant_id uuid, member_id uuid, role text, tenant_name text, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT m.tenant_id, m.id, m.role, t.name, t.state FROM memberships m JOIN tenants t ON t.id = m.tenant_id
	WHERE m.person_id = person
	ORDER BY lower(t.name), t.id
$$;
-- +goose StatementEnd

-- Which invitation is this? Answers only to who holds its link.
-- +goose StatementBegin
CREATE FUNCTION posthorn.find_invitation(token_hash bytea)
RETURNS TABLE (tenant_id uuid, id uuid, email text, role text, tenant_name text, expired boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT i.tenant_id, i.id, i.email, i.role, t.name, i.expires_at <= now()
	FROM invitations i JOIN tenants t ON t.id = i.tenant_id
	WHERE i.hash = token_hash
$$;
-- +goose StatementEnd

-- Opens a link into a dashboard, once, and only to who holds it. No row: there is none, or it was opened, revoked or too late.
-- +goose StatementBegin
CREATE FUNCTION posthorn.open_portal(token_hash bytea)
RETURNS TABLE (tenant_id uuid, id uuid, session_seconds int)
LANGUAGE sql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	UPDATE portal_links SET opened_at = now()
	WHERE hash = token_hash AND opened_at IS NULL AND revoked_at IS NULL AND open_until > now()
	RETURNING tenant_id, id, session_seconds
$$;
-- +goose StatementEnd

-- What a session that came by such a link may do.
-- +goose StatementBegin
CREATE FUNCTION posthorn.find_portal(link uuid)
RETURNS TABLE (tenant_id uuid, role text, brand text, accent text, return_url text, allow_secrets boolean, tenant_name text, tenant_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT l.tenant_id, l.role, l.brand, l.accent, l.return_url, l.allow_secrets, t.name, t.state
	FROM portal_links l JOIN tenants t ON t.id = l.tenant_id
	WHERE l.id = link AND l.revoked_at IS NULL
$$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION posthorn.tenants_of(uuid), posthorn.find_invitation(bytea),
	posthorn.open_portal(bytea), posthorn.find_portal(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.tenants_of(uuid), posthorn.find_invitation(bytea),
	posthorn.open_portal(bytea), posthorn.find_portal(uuid) TO posthorn_account;
GRANT EXECUTE ON FUNCTION posthorn.tenants_of(uuid) TO posthorn_console;

GRANT SELECT, INSERT, UPDATE, DELETE ON people, recovery_codes, sessions, one_time_links, account_limits TO posthorn_account, posthorn_console;
GRANT SELECT, UPDATE ON operators TO posthorn_account;
GRANT SELECT (id, email, name, totp_at, created_at, disabled_at) ON people TO posthorn_tenant, posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON memberships, invitations, portal_links TO posthorn_tenant, posthorn_console;
GRANT SELECT ON memberships TO posthorn_worker;
GRANT SELECT, DELETE ON sessions, one_time_links, account_limits TO posthorn_worker;
GRANT SELECT, DELETE ON invitations TO posthorn_worker;
GRANT SELECT ON people, memberships, invitations TO posthorn_lookup;
GRANT SELECT, UPDATE ON portal_links TO posthorn_lookup;

-- Mails to people concern no tenant.
GRANT INSERT, SELECT (id, tenant_id, key) ON mails TO posthorn_account;
CREATE POLICY account ON mails TO posthorn_account USING (tenant_id IS NULL) WITH CHECK (tenant_id IS NULL);

-- A sign-in is entered in the audit logs of the account's tenants.
GRANT INSERT ON audit_log TO posthorn_account;
CREATE POLICY account ON audit_log FOR INSERT TO posthorn_account WITH CHECK (true);

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
ALTER FUNCTION posthorn.tenants_of(uuid) OWNER TO posthorn_lookup;
ALTER FUNCTION posthorn.find_invitation(bytea) OWNER TO posthorn_lookup;
ALTER FUNCTION posthorn.open_portal(bytea) OWNER TO posthorn_lookup;
ALTER FUNCTION posthorn.find_portal(uuid) OWNER TO posthorn_lookup;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP POLICY account ON audit_log;
DROP POLICY account ON mails;
REVOKE ALL ON mails FROM posthorn_account;
REVOKE ALL ON audit_log FROM posthorn_account;
REVOKE ALL ON operators FROM posthorn_account;
DROP FUNCTION posthorn.tenants_of(uuid), posthorn.find_invitation(bytea),
	posthorn.open_portal(bytea), posthorn.find_portal(uuid);
DROP TABLE sessions, one_time_links, account_limits, recovery_codes, portal_links, invitations, memberships, people CASCADE;
ALTER TABLE operators
	DROP COLUMN name, DROP COLUMN password, DROP COLUMN password_at, DROP COLUMN totp, DROP COLUMN totp_at, DROP COLUMN totp_step;
