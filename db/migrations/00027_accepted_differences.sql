-- An operator can accept a discrepancy that can't be fixed: it stays on record and alerts nobody, until it changes.

-- +goose Up

ALTER TABLE book_differences
	ADD COLUMN gap text NOT NULL DEFAULT '', -- by how much each number differs, in words
	ADD COLUMN accepted_gap text,            -- the gap that somebody has accepted; null: none
	ADD COLUMN accepted_at timestamptz,
	ADD COLUMN accepted_by text,             -- the operator's id as people see it
	ADD COLUMN accepted_reason text,
	ADD COLUMN open boolean NOT NULL GENERATED ALWAYS AS (ended_at IS NULL AND accepted_gap IS DISTINCT FROM gap) STORED;

-- +goose Down

ALTER TABLE book_differences DROP COLUMN open;
ALTER TABLE book_differences DROP COLUMN gap, DROP COLUMN accepted_gap, DROP COLUMN accepted_at, DROP COLUMN accepted_by, DROP COLUMN accepted_reason;
