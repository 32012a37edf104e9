-- +goose Up
-- Waits of a custom retry schedule can be drawn from nothing up to the whole delay, as those of exponential are.
ALTER TABLE endpoints ADD COLUMN retry_full boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE endpoints DROP COLUMN retry_full;
