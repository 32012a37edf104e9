-- Whether a receiver accepts a delivery that one secret alone signs. Null: it was never checked.

-- +goose Up

ALTER TABLE endpoint_secrets
	ADD COLUMN check_state text CHECK (check_state IN ('pending', 'accepted', 'rejected')),
	ADD COLUMN checked_at timestamptz,                 -- when it was asked for, then when it ended
	ADD COLUMN check_due_at timestamptz,               -- when a worker may take it
	ADD COLUMN check_status int,                       -- of the response; null: none
	ADD COLUMN check_detail text NOT NULL DEFAULT '';  -- in plain words, for the tenant
CREATE INDEX ON endpoint_secrets (check_due_at) WHERE check_state = 'pending';
GRANT UPDATE (check_state, checked_at, check_due_at, check_status, check_detail) ON endpoint_secrets TO posthorn_worker;

-- +goose Down

REVOKE UPDATE (check_state, checked_at, check_due_at, check_status, check_detail) ON endpoint_secrets FROM posthorn_worker;
ALTER TABLE endpoint_secrets DROP COLUMN check_state, DROP COLUMN checked_at, DROP COLUMN check_due_at, DROP COLUMN check_status,
	DROP COLUMN check_detail;
