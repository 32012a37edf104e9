-- +goose Up
-- Delays of a custom retry schedule can vary between zero and the whole delay, as those of exponential do.
ALTER TABLE endpoints ADD COLUMN retry_full boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE endpoints DROP COLUMN retry_full;
