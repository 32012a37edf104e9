-- Notices, the mails that carry them, and who wants which.

-- +goose Up

-- Notices to a tenant, in order. A notice is inserted in the transaction of its cause; key makes it unique if a job is
-- run again.
CREATE TABLE notices (
	tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	id          uuid NOT NULL,
	kind        text NOT NULL,          -- domain/notice
	key         text NOT NULL,
	endpoint_id uuid,
	details     jsonb NOT NULL DEFAULT '{}',
	created_at  timestamptz NOT NULL,
	mailed_at   timestamptz,            -- its mails are in the outbox
	relayed_at  timestamptz,            -- it is an event of the platform's own tenant, or is none that becomes one
	PRIMARY KEY (tenant_id, id),
	UNIQUE (tenant_id, key)
);
CREATE INDEX notices_unmailed ON notices (id) WHERE mailed_at IS NULL;
CREATE INDEX notices_unrelayed ON notices (id) WHERE relayed_at IS NULL;
SELECT posthorn.guard('notices');

-- The outbox: written in the transaction of a mail's cause, emptied by any worker. key is the mail's purpose, and the
-- provider's idempotency key: one mail per purpose.
CREATE TABLE mails (
	id          uuid PRIMARY KEY,
	tenant_id   uuid REFERENCES tenants ON DELETE CASCADE, -- null: concerns a person or the platform, not a tenant
	key         text NOT NULL UNIQUE,
	recipient   text NOT NULL,
	kind        text NOT NULL,                 -- domain/mail
	data        jsonb NOT NULL DEFAULT '{}',   -- what the template shows
	sealed      bytea,                         -- in data's place where it holds a link that is as good as a password
	state       text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'failed', 'dropped')),
	tries       int NOT NULL DEFAULT 0,
	due_at      timestamptz NOT NULL DEFAULT now(),
	provider_id text NOT NULL DEFAULT '',      -- what the provider calls it
	last_error  text NOT NULL DEFAULT '',      -- in words for the operator; no secret
	created_at  timestamptz NOT NULL,
	done_at     timestamptz
) WITH (fillfactor = 70);
CREATE INDEX mails_due ON mails (due_at) WHERE state = 'waiting';
CREATE INDEX mails_failed ON mails (id) WHERE state = 'failed';
SELECT posthorn.guard('mails');

-- Who gets which notices by mail. Without a row the kind's default applies. recipient is a person's id, or an address
-- in lower case without a person.
CREATE TABLE notice_preferences (
	tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	recipient  text NOT NULL,
	kind       text NOT NULL,
	wanted     boolean NOT NULL,
	changed_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant_id, recipient, kind)
);
SELECT posthorn.guard('notice_preferences');

-- One digest a tenant and UTC day: the row is written in the transaction that posts it.
CREATE TABLE digests (
	tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	day        date NOT NULL,
	notice_id  uuid NOT NULL,
	created_at timestamptz NOT NULL,
	PRIMARY KEY (tenant_id, day)
);
SELECT posthorn.guard('digests');

-- The mails of the console driver, for /dev/mail in development. Sealed, since they have links.
CREATE TABLE mailbox (
	id         uuid PRIMARY KEY,
	sealed     bytea NOT NULL
);

GRANT SELECT, INSERT ON notices TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON notices TO posthorn_worker, posthorn_console;
GRANT INSERT, SELECT (id, tenant_id, key) ON mails TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON mails TO posthorn_worker, posthorn_console;
GRANT SELECT, INSERT, UPDATE, DELETE ON notice_preferences TO posthorn_tenant, posthorn_console;
GRANT SELECT ON notice_preferences TO posthorn_worker;
GRANT SELECT ON digests TO posthorn_tenant;
GRANT SELECT, INSERT, DELETE ON digests TO posthorn_worker, posthorn_console;
GRANT SELECT, INSERT, DELETE ON mailbox TO posthorn_worker;
GRANT SELECT ON mailbox TO posthorn_console;
-- Operators get alerts.
GRANT SELECT ON operators TO posthorn_worker;

-- +goose Down

REVOKE SELECT ON operators FROM posthorn_worker;
DROP TABLE mailbox, digests, notice_preferences, mails, notices;
