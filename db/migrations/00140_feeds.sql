-- Feeds: endpoints whose consumers read the tenant's events by a cursor (docs/adr/0026-feeds.md).
-- functions: 19b33d7637e3f869

-- +goose Up

-- A tenant whose events are logged. position = base + the number of the transaction, in the database system in which
-- the base was set.
CREATE TABLE feed_logs (
	tenant_id     uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
	base          bigint NOT NULL,
	system        bigint NOT NULL,            -- pg_control_system().system_identifier
	since_version bigint NOT NULL,            -- events of this version of the tenant's routes and later are logged
	settled       bigint,                     -- once the watermark is here, no older event can appear; null: not known yet
	dropped       bigint NOT NULL DEFAULT -1, -- up to this position retention has deleted rows
	began_at      timestamptz NOT NULL DEFAULT now()
);
SELECT posthorn.guard('feed_logs');
GRANT SELECT, INSERT, UPDATE ON feed_logs TO posthorn_tenant;
GRANT SELECT, UPDATE ON feed_logs TO posthorn_ingest;
GRANT SELECT, UPDATE ON feed_logs TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON feed_logs TO posthorn_console;

-- The events of one transaction, in their order.
CREATE TABLE event_log (
	tenant_id uuid NOT NULL,
	position  bigint NOT NULL,
	at        timestamptz NOT NULL DEFAULT now(),
	events    uuid[] NOT NULL,
	PRIMARY KEY (tenant_id, position)
);
SELECT posthorn.guard('event_log');
GRANT SELECT ON event_log TO posthorn_tenant;
GRANT SELECT, INSERT ON event_log TO posthorn_ingest;
GRANT SELECT, DELETE ON event_log TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON event_log TO posthorn_console;

-- Who reads a feed, and how far it has acknowledged.
CREATE TABLE feed_consumers (
	tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	endpoint_id uuid NOT NULL,
	name        text NOT NULL,
	key_id      uuid,                       -- its token; null: it reads with a key of the tenant
	cursor      text NOT NULL,              -- acknowledged up to here
	acked_at    timestamptz NOT NULL DEFAULT now(),
	read_at     timestamptz,
	late_since  timestamptz,                -- since when the oldest event that it has not acknowledged waits, if that is long; null: it is not late
	created_at  timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant_id, endpoint_id, name)
);
SELECT posthorn.guard('feed_consumers');
GRANT SELECT, INSERT, UPDATE, DELETE ON feed_consumers TO posthorn_tenant;
GRANT SELECT, UPDATE, DELETE ON feed_consumers TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON feed_consumers TO posthorn_console;

-- +goose Down

DROP TABLE feed_consumers;
DROP TABLE event_log;
DROP TABLE feed_logs;
