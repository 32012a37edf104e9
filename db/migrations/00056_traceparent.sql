-- An event's trace in the notation of W3C Trace Context; null for events without one, so that adding the column
-- rewrites nothing. Endpoints receive it if they are set to.

-- +goose Up

ALTER TABLE events ADD COLUMN traceparent text;
ALTER TABLE endpoints ADD COLUMN send_traceparent boolean NOT NULL DEFAULT false;

-- +goose Down

ALTER TABLE endpoints DROP COLUMN send_traceparent;
ALTER TABLE events DROP COLUMN traceparent;
