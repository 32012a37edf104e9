-- A replay keeps the id by which receivers of the raw format recognize what they have handled: that of the first delivery of the
-- event to the endpoint. Both columns are null for a delivery that an emission made.

-- +goose Up

ALTER TABLE deliveries ADD COLUMN first_id uuid;
ALTER TABLE queue ADD COLUMN first_id uuid;

-- +goose Down

ALTER TABLE queue DROP COLUMN first_id;
ALTER TABLE deliveries DROP COLUMN first_id;
