-- A job can send one delivery first and wait for a decision on the rest.

-- +goose Up

-- The delivery that was sent first. The job is 'sampled' until it is continued or canceled; due_at is then when it is
-- canceled. An older process takes no such job.
ALTER TABLE bulk_jobs ADD COLUMN sample_id uuid;
ALTER TABLE bulk_jobs DROP CONSTRAINT bulk_jobs_state_check;
ALTER TABLE bulk_jobs ADD CONSTRAINT bulk_jobs_state_check CHECK (state IN ('queued', 'running', 'sampled', 'done', 'canceled', 'failed'));
CREATE INDEX bulk_jobs_sampled ON bulk_jobs (due_at) WHERE state = 'sampled';

-- +goose Down

UPDATE bulk_jobs SET state = 'canceled', ended_at = now() WHERE state = 'sampled';
DROP INDEX bulk_jobs_sampled;
ALTER TABLE bulk_jobs DROP CONSTRAINT bulk_jobs_state_check;
ALTER TABLE bulk_jobs ADD CONSTRAINT bulk_jobs_state_check CHECK (state IN ('queued', 'running', 'done', 'canceled', 'failed'));
ALTER TABLE bulk_jobs DROP COLUMN sample_id;
