-- An event that is worth nothing after a time (docs/delivery.md, "Expiry").

-- +goose Up

ALTER TABLE events ADD COLUMN expires_at timestamptz; -- null: never
ALTER TABLE endpoints ADD COLUMN expires_after_seconds int; -- of events without a time of their own; null: never

-- After which the delivery is not sent. null: never.
ALTER TABLE queue ADD COLUMN expires_at timestamptz;
CREATE INDEX queue_expires ON queue (expires_at) WHERE expires_at IS NOT NULL;

-- +goose Down

DROP INDEX queue_expires;
ALTER TABLE queue DROP COLUMN expires_at;
ALTER TABLE endpoints DROP COLUMN expires_after_seconds;
ALTER TABLE events DROP COLUMN expires_at;
