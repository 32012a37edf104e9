-- Single sign-on (docs/adr/0019-single-sign-on.md): a tenant's OpenID provider, the email domains that the tenant has
-- verified, which person each of the provider's accounts is, and which sessions the provider started.

-- +goose Up

CREATE TABLE sso_connections (
	tenant_id       uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
	issuer          text NOT NULL,
	client_id       text NOT NULL,
	client_secret   bytea,                            -- sealed; null: a public client
	role_claim      text NOT NULL DEFAULT '',         -- empty: roles are set in Posthorn alone
	role_map        jsonb NOT NULL DEFAULT '{}',      -- a value of the claim -> a role
	default_role    text NOT NULL DEFAULT '' CHECK (default_role IN ('', 'admin', 'developer', 'viewer')), -- empty: nobody without a mapped value
	join_members    boolean NOT NULL DEFAULT true,    -- people of a verified domain become members at their first sign-in
	trust_email     boolean NOT NULL DEFAULT false,   -- take addresses from a provider that does not send email_verified
	sso_only        boolean NOT NULL DEFAULT false,
	break_glass     uuid REFERENCES memberships (id) ON DELETE SET NULL, -- the owner who enters without the provider all the same
	session_seconds int NOT NULL CHECK (session_seconds BETWEEN 900 AND 1209600),
	created_at      timestamptz NOT NULL,
	updated_at      timestamptz NOT NULL
);
SELECT posthorn.guard('sso_connections');

CREATE TABLE sso_domains (
	tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	domain      text NOT NULL,     -- in lower case
	proof       text NOT NULL,     -- the text of the TXT record
	created_at  timestamptz NOT NULL,
	verified_at timestamptz,
	PRIMARY KEY (tenant_id, domain)
);
CREATE UNIQUE INDEX sso_domains_verified ON sso_domains (domain) WHERE verified_at IS NOT NULL; -- one tenant speaks for a domain
SELECT posthorn.guard('sso_domains');

CREATE TABLE sso_identities (
	tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	subject    text NOT NULL,      -- the account's id at the tenant's provider
	person_id  uuid NOT NULL REFERENCES people ON DELETE CASCADE,
	created_at timestamptz NOT NULL,
	seen_at    timestamptz NOT NULL,
	PRIMARY KEY (tenant_id, subject),
	UNIQUE (tenant_id, person_id)
);
CREATE INDEX ON sso_identities (person_id);
SELECT posthorn.guard('sso_identities');

GRANT SELECT, INSERT, UPDATE, DELETE ON sso_connections, sso_domains, sso_identities TO posthorn_tenant, posthorn_console;
GRANT SELECT ON sso_connections, sso_domains TO posthorn_lookup;

-- A session from a tenant's provider opens only this tenant. An operator's has the subject and no tenant.
ALTER TABLE sessions
	ADD COLUMN sso_tenant  uuid REFERENCES tenants ON DELETE CASCADE,
	ADD COLUMN sso_subject text,
	ADD COLUMN sso_sid     text; -- the provider's own id of its session, where it has one
CREATE INDEX sessions_sso ON sessions (sso_subject) WHERE sso_subject IS NOT NULL;

ALTER TABLE operators ADD COLUMN sso_issuer text, ADD COLUMN sso_subject text;
CREATE UNIQUE INDEX operators_sso ON operators (sso_issuer, sso_subject) WHERE sso_subject IS NOT NULL;

ALTER TABLE one_time_links DROP CONSTRAINT one_time_links_purpose_check;
ALTER TABLE one_time_links ADD CONSTRAINT one_time_links_purpose_check
	CHECK (purpose IN ('sign_up', 'reset_password', 'change_email', 'sign_in', 'operator', 'sso', 'passkey'));

GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup;
SET LOCAL ROLE posthorn_lookup;
-- Does this member's tenant want them to come by its provider?
-- +goose StatementBegin
CREATE FUNCTION posthorn.sso_required(tenant uuid, member uuid) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT EXISTS (SELECT FROM sso_connections c WHERE c.tenant_id = tenant AND c.sso_only AND c.break_glass IS DISTINCT FROM member)
$$;
-- +goose StatementEnd
-- Which tenant's provider knows the people of a domain?
-- +goose StatementBegin
CREATE FUNCTION posthorn.sso_of_domain(of_domain text) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	SELECT d.tenant_id FROM sso_domains d JOIN sso_connections c USING (tenant_id) JOIN tenants t ON t.id = d.tenant_id
	WHERE d.domain = of_domain AND d.verified_at IS NOT NULL AND t.state <> 'deleted'
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.sso_required(uuid, uuid), posthorn.sso_of_domain(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.sso_required(uuid, uuid), posthorn.sso_of_domain(text) TO posthorn_account, posthorn_console;
RESET ROLE;
REVOKE CREATE ON SCHEMA posthorn FROM posthorn_lookup;

-- +goose Down

DROP FUNCTION posthorn.sso_required(uuid, uuid), posthorn.sso_of_domain(text);
DELETE FROM one_time_links WHERE purpose IN ('sso', 'passkey');
ALTER TABLE one_time_links DROP CONSTRAINT one_time_links_purpose_check;
ALTER TABLE one_time_links ADD CONSTRAINT one_time_links_purpose_check
	CHECK (purpose IN ('sign_up', 'reset_password', 'change_email', 'sign_in', 'operator'));
DROP INDEX operators_sso;
ALTER TABLE operators DROP COLUMN sso_issuer, DROP COLUMN sso_subject;
DELETE FROM sessions WHERE sso_subject IS NOT NULL;
ALTER TABLE sessions DROP COLUMN sso_tenant, DROP COLUMN sso_subject, DROP COLUMN sso_sid;
DROP TABLE sso_identities, sso_domains, sso_connections;
