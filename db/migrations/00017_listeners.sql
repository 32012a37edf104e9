-- Listeners: endpoints whose deliveries a developer's own program receives over a stream (docs/adr/0007-listen.md).
-- And rejected emissions of the outbox, readable by their tenant.

-- +goose Up

CREATE INDEX endpoints_listen ON endpoints (tenant_id, id) WHERE kind = 'listen';

CREATE TABLE listeners (
	tenant_id   uuid NOT NULL,
	endpoint_id uuid PRIMARY KEY,
	contact_at  timestamptz NOT NULL DEFAULT now(), -- when something was last heard of its client, to the minute
	stream      bigint NOT NULL DEFAULT 0,          -- the number of the stream that is served; one with an older number ends
	sent        bigint NOT NULL DEFAULT 0,          -- the number under which a delivery was last handed out
	FOREIGN KEY (tenant_id, endpoint_id) REFERENCES endpoints (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX listeners_contact ON listeners (contact_at);
SELECT posthorn.guard('listeners');

-- Deliveries that a client has and has not reported. gen is the queue row's at that time: a row that changed since is
-- leased again.
CREATE TABLE handed_out (
	tenant_id   uuid NOT NULL,
	endpoint_id uuid NOT NULL REFERENCES listeners ON DELETE CASCADE,
	delivery_id uuid NOT NULL,
	number      bigint NOT NULL,
	gen         int NOT NULL,
	attempts    smallint NOT NULL, -- made, this one included
	attempt_id  uuid NOT NULL,     -- its time is the one that was signed
	signature   text NOT NULL,
	handed_at   timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant_id, delivery_id)
);
CREATE INDEX handed_out_number ON handed_out (endpoint_id, number);
SELECT posthorn.guard('handed_out');

GRANT SELECT, INSERT, UPDATE, DELETE ON listeners, handed_out TO posthorn_tenant, posthorn_worker, posthorn_console;

GRANT SELECT, DELETE ON outbox_rejected TO posthorn_tenant;
GRANT INSERT ON outbox TO posthorn_tenant;
CREATE INDEX outbox_rejected_tenant ON outbox_rejected (tenant_id, id);

-- +goose Down

DROP INDEX outbox_rejected_tenant;
REVOKE ALL ON outbox_rejected, outbox FROM posthorn_tenant;
DROP TABLE handed_out, listeners;
-- Deliveries of a listener are not posted to its address: its lane stays held.
DROP INDEX endpoints_listen;
