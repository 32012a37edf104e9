-- The trace that an event belongs to, as W3C Trace Context writes it; null for events without one, so that adding the
-- column rewrites nothing. Endpoints get it where they ask for it.

-- +goose Up

ALTER TABLE events ADD COLUMN traceparent text;
ALTER TABLE endpoints ADD COLUMN send_traceparent boolean NOT NULL DEFAULT false;

-- +goose Down

ALTER TABLE endpoints DROP COLUMN send_traceparent;
ALTER TABLE events DROP COLUMN traceparent;
