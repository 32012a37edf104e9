-- What an event says of its own request: a payload that is text of another type than JSON, and an own id that serves for
-- finding the event alone. Null for events without them, so that adding the columns rewrites nothing.

-- +goose Up

ALTER TABLE events ADD COLUMN content_type text;
ALTER TABLE events ADD COLUMN external_id_unsent boolean;

-- +goose Down

ALTER TABLE events DROP COLUMN external_id_unsent;
ALTER TABLE events DROP COLUMN content_type;
