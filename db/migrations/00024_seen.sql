-- Operators see since when a worker is silent and a lane is held, also where no other worker is left to notice.

-- +goose Up

ALTER TABLE workers ADD COLUMN beat_at timestamptz; -- of the last beat; null: none yet, or of a version that did not keep it
ALTER TABLE lanes ADD COLUMN leased_at timestamptz; -- when its owner took it; null as above

-- +goose Down

ALTER TABLE lanes DROP COLUMN leased_at;
ALTER TABLE workers DROP COLUMN beat_at;
