-- +goose Up
-- A person with a passkey can require it after the password. An authenticator app is required while it is set up.
ALTER TABLE people ADD COLUMN passkey_required_at timestamptz; -- null: a password alone signs in where there is no app
GRANT SELECT (passkey_required_at) ON people TO posthorn_tenant, posthorn_worker;

-- +goose Down
ALTER TABLE people DROP COLUMN passkey_required_at;
