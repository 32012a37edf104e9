-- The deliveries of a lane that are in flight, for the reason why a delivery waits.

-- +goose Up

-- The ids of the deliveries whose requests have been in flight for a while, with their starts, as the lane's owner
-- noted. Older processes do not write it.
ALTER TABLE lanes ADD COLUMN in_flight jsonb NOT NULL DEFAULT '{}';

-- +goose Down

ALTER TABLE lanes DROP COLUMN in_flight;
