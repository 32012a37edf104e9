-- The check of the books counts events too, on the days that hold none of a version that did not enter them.

-- +goose Up

ALTER TABLE platform ADD COLUMN events_from date; -- the first day all of whose events are in the books
UPDATE platform SET events_from = (now() AT TIME ZONE 'UTC')::date + 1;

-- +goose Down

ALTER TABLE platform DROP COLUMN events_from;
