-- Passkeys of people and operators. A row has the public half: reading it allows no sign-in.

-- +goose Up

CREATE TABLE passkeys (
	id            uuid PRIMARY KEY,
	person_id     uuid REFERENCES people ON DELETE CASCADE,
	operator_id   uuid REFERENCES operators ON DELETE CASCADE,
	credential_id bytea NOT NULL UNIQUE, -- the authenticator's own
	credential    jsonb NOT NULL,        -- public key, counter, and flags
	name          text NOT NULL,
	created_at    timestamptz NOT NULL,
	used_at       timestamptz,
	CHECK (num_nonnulls(person_id, operator_id) = 1)
);
CREATE INDEX ON passkeys (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX ON passkeys (operator_id) WHERE operator_id IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON passkeys TO posthorn_account, posthorn_console;

-- +goose Down

DROP TABLE passkeys;
