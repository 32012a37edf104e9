-- Several events in one request (docs/batches.md, docs/adr/0029-batches.md). A delivery can be put back behind another
-- of its key.

-- +goose Up

ALTER TABLE endpoints ADD COLUMN batch_max_events int;  -- null: each event has its own request
ALTER TABLE endpoints ADD COLUMN batch_max_wait_ms int; -- null: the default
ALTER TABLE endpoints ADD COLUMN batch_max_bytes int;   -- null: the default

-- +goose Down

ALTER TABLE endpoints DROP COLUMN batch_max_bytes;
ALTER TABLE endpoints DROP COLUMN batch_max_wait_ms;
ALTER TABLE endpoints DROP COLUMN batch_max_events;
