-- The reconciliation counts events too, on days without entries of older processes.

-- +goose Up

ALTER TABLE platform ADD COLUMN events_from date; -- the first day all of whose events are in the books
UPDATE platform SET events_from = (now() AT TIME ZONE 'UTC')::date + 1;

-- +goose Down

ALTER TABLE platform DROP COLUMN events_from;
