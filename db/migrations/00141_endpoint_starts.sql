-- An endpoint can begin in the past: its backlog is queued in the order of acceptance before live events
-- (docs/adr/0026-feeds.md).

-- +goose Up

-- An endpoint that catches up. No event is fanned out to it: a job reads the log for it, and deletes the row when the
-- endpoint has everything.
CREATE TABLE endpoint_starts (
	tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	endpoint_id uuid NOT NULL,
	cursor      text NOT NULL,  -- up to here its deliveries are created
	settled     bigint,         -- once the watermark is here, no event that was routed before the row can appear
	started_at  timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant_id, endpoint_id)
);
SELECT posthorn.guard('endpoint_starts');
GRANT SELECT, INSERT, UPDATE, DELETE ON endpoint_starts TO posthorn_tenant;
GRANT SELECT ON endpoint_starts TO posthorn_ingest;
GRANT SELECT, UPDATE, DELETE ON endpoint_starts TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON endpoint_starts TO posthorn_console;

-- +goose Down

DROP TABLE endpoint_starts;
