-- Alerts about an endpoint can be muted, and a pause can end by itself.

-- +goose Up

ALTER TABLE endpoints
	ADD COLUMN muted_at timestamptz,    -- since when its alerts are muted; null: they are not
	ADD COLUMN muted_until timestamptz, -- null: until it recovers
	ADD COLUMN resume_at timestamptz;   -- when a paused endpoint is resumed; null: when somebody resumes it
CREATE INDEX ON endpoints (resume_at) WHERE resume_at IS NOT NULL;
CREATE INDEX ON endpoints (id) WHERE muted_at IS NOT NULL AND muted_until IS NULL;

-- +goose Down

ALTER TABLE endpoints DROP COLUMN muted_at, DROP COLUMN muted_until, DROP COLUMN resume_at;
