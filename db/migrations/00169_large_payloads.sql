-- Events whose data is in object storage (docs/delivery.md, "Large payloads"; docs/adr/0031-links.md).

-- +goose Up

ALTER TABLE endpoints ADD COLUMN large_payloads text NOT NULL DEFAULT 'reject' CHECK (large_payloads IN ('reject', 'link'));

-- A row for each object, written before it and deleted after it.
CREATE TABLE large_payloads (
	tenant_id  uuid NOT NULL,
	event_id   uuid NOT NULL,
	created_at timestamptz NOT NULL, -- of the event
	check_at   timestamptz NOT NULL, -- when a job looks whether the event still needs it
	PRIMARY KEY (tenant_id, event_id)
);
CREATE INDEX large_payloads_check ON large_payloads (check_at);
SELECT posthorn.guard('large_payloads');
GRANT INSERT ON large_payloads TO posthorn_ingest;
GRANT SELECT, UPDATE (check_at) ON large_payloads TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON large_payloads TO posthorn_console;

-- +goose Down

DROP TABLE large_payloads;
ALTER TABLE endpoints DROP COLUMN large_payloads;
