-- Subscriptions of AI clients to events, over the Model Context Protocol (docs/mcp.md).

-- +goose Up

-- A subscription is an endpoint underneath, and ends with it.
CREATE TABLE subscriptions (
	tenant_id    uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	id           text NOT NULL,  -- made of the principal, the URL, the event type, and the arguments
	endpoint_id  uuid NOT NULL,
	principal    text NOT NULL,  -- who subscribed
	event_type   text NOT NULL,
	arguments    text NOT NULL,  -- canonical JSON
	cursor       text NOT NULL,  -- up to here every event was delivered or given up
	expires_at   timestamptz NOT NULL,
	refreshed_at timestamptz NOT NULL DEFAULT now(),
	created_at   timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX ON subscriptions (tenant_id, endpoint_id);
CREATE INDEX ON subscriptions (expires_at);
SELECT posthorn.guard('subscriptions');
GRANT SELECT, INSERT, UPDATE, DELETE ON subscriptions TO posthorn_tenant;
GRANT SELECT ON subscriptions TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON subscriptions TO posthorn_console;

-- +goose Down

DROP TABLE subscriptions;
