-- Expunging reaches history in storage (docs/adr/0036-expunging-stored-history.md), and the books say what a purge of a
-- tenant removed there.
-- functions: 4fd0e553eb76fa6f

-- +goose Up

-- A row for each event whose data is to leave a part in storage. Nobody reads the data once it is committed. The row
-- stays until no object has the data.
CREATE TABLE history_expunges (
	tenant_id uuid NOT NULL,
	day       date NOT NULL,
	low       timestamptz NOT NULL,           -- of the part
	event_id  uuid NOT NULL,
	asked_at  timestamptz NOT NULL DEFAULT now(),
	written   boolean NOT NULL DEFAULT false, -- the part's rows no longer have it; objects that do are being deleted
	PRIMARY KEY (tenant_id, day, low, event_id)
);
CREATE INDEX history_expunges_waiting ON history_expunges (day) WHERE NOT written;
CREATE INDEX history_expunges_event ON history_expunges (tenant_id, event_id);
SELECT posthorn.guard('history_expunges');
GRANT SELECT, INSERT ON history_expunges TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON history_expunges TO posthorn_console;

-- The day has objects of lines, or had some when their rows began to be written into files. A process that ends before
-- it has deleted them leaves it set.
ALTER TABLE history_days ADD COLUMN lines boolean NOT NULL DEFAULT false;
CREATE INDEX history_days_lines ON history_days (day) WHERE lines;

-- Deliveries in storage that the purge of their tenant removed, and when no object had them any more.
ALTER TABLE books ADD COLUMN purged bigint NOT NULL DEFAULT 0, ADD COLUMN purged_at timestamptz;

-- +goose Down

ALTER TABLE books DROP COLUMN purged, DROP COLUMN purged_at;
DROP INDEX history_days_lines;
ALTER TABLE history_days DROP COLUMN lines;
DROP TABLE history_expunges;
