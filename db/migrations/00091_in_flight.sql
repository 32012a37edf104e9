-- Which deliveries of a lane are in flight, for those who ask why a delivery waits.

-- +goose Up

-- The ids of the deliveries whose requests have been in flight for a while, with the times at which they started, as the lane's owner noted.
-- Older processes leave it as it is.
ALTER TABLE lanes ADD COLUMN in_flight jsonb NOT NULL DEFAULT '{}';

-- +goose Down

ALTER TABLE lanes DROP COLUMN in_flight;
