-- Sources: queues of a tenant's own whose messages become events (docs/adr/0032-sources.md).

-- +goose Up

CREATE TABLE sources (
	tenant_id     uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	id            uuid NOT NULL,
	name          text NOT NULL,
	kind          text NOT NULL,
	url           text NOT NULL,              -- the connection as people see it
	connection    bytea NOT NULL,             -- sealed
	start         text NOT NULL,              -- of kafka: where the first read begins; else empty
	mapping       text NOT NULL,              -- an expression that makes an event of a message
	paused_at     timestamptz,                -- null: it is active
	revision      int NOT NULL DEFAULT 1,     -- of what its reader has to know
	created_at    timestamptz NOT NULL DEFAULT now(),
	updated_at    timestamptz NOT NULL DEFAULT now(),
	-- What its reader found.
	owner         uuid,                       -- the worker that reads it
	failing_since timestamptz,                -- null: it is read
	reason        text NOT NULL DEFAULT '',   -- why it is not
	waiting       bigint,                     -- messages in the broker; null: not known
	behind_since  timestamptz,                -- since when more wait than one batch; null: fewer
	last_read_at  timestamptz,                -- when the newest message was taken
	last_sent_at  timestamptz,                -- the time that the broker says of it
	missed        bigint NOT NULL DEFAULT 0,  -- records that a topic deleted before they were read
	PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX sources_name ON sources (tenant_id, name);
SELECT posthorn.guard('sources');
GRANT SELECT, INSERT, UPDATE, DELETE ON sources TO posthorn_tenant;
GRANT SELECT, UPDATE ON sources TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON sources TO posthorn_console;

-- The next record of each partition of a topic.
CREATE TABLE source_positions (
	tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	source_id uuid NOT NULL,
	partition int NOT NULL,
	next      bigint NOT NULL,
	PRIMARY KEY (tenant_id, source_id, partition)
);
SELECT posthorn.guard('source_positions');
GRANT SELECT, DELETE ON source_positions TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE ON source_positions TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON source_positions TO posthorn_console;

-- Messages of RabbitMQ and SQS that were taken, for longer than a broker can deliver one again.
CREATE TABLE source_messages (
	tenant_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	source_id uuid NOT NULL,
	digest    bytea NOT NULL,
	taken_at  timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant_id, source_id, digest)
);
CREATE INDEX source_messages_age ON source_messages USING brin (taken_at);
SELECT posthorn.guard('source_messages');
GRANT SELECT, DELETE ON source_messages TO posthorn_tenant;
GRANT SELECT, INSERT, DELETE ON source_messages TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON source_messages TO posthorn_console;

-- A message waits in the outbox with its bytes, and the relay maps it.
ALTER TABLE outbox ADD COLUMN source_id uuid;
ALTER TABLE outbox_rejected ADD COLUMN source_id uuid;
CREATE INDEX outbox_source ON outbox (source_id) WHERE source_id IS NOT NULL;
CREATE INDEX outbox_rejected_source ON outbox_rejected (source_id, id) WHERE source_id IS NOT NULL;
GRANT INSERT ON outbox TO posthorn_worker;

-- +goose Down

DELETE FROM outbox WHERE source_id IS NOT NULL;
DELETE FROM outbox_rejected WHERE source_id IS NOT NULL;
ALTER TABLE outbox_rejected DROP COLUMN source_id;
ALTER TABLE outbox DROP COLUMN source_id;
REVOKE INSERT ON outbox FROM posthorn_worker;
DROP TABLE source_messages, source_positions, sources;
