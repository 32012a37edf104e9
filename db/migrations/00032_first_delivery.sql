-- A replay keeps the id by which receivers of the raw format deduplicate: the id of the event's first delivery to the
-- endpoint. Both columns are null for a delivery of an emission.

-- +goose Up

ALTER TABLE deliveries ADD COLUMN first_id uuid;
ALTER TABLE queue ADD COLUMN first_id uuid;

-- +goose Down

ALTER TABLE queue DROP COLUMN first_id;
ALTER TABLE deliveries DROP COLUMN first_id;
