-- With what an endpoint's connections and requests prove who sends, beside the signature. An older process leaves the
-- columns as they are and sends without.

-- +goose Up

ALTER TABLE endpoints
	ADD COLUMN credentials bytea,                -- sealed; null: none
	ADD COLUMN certificate_ends_at timestamptz;  -- when the client certificate among them expires; null: there is none
CREATE INDEX endpoints_certificates ON endpoints (certificate_ends_at) WHERE certificate_ends_at IS NOT NULL AND deleted_at IS NULL;

-- +goose Down

ALTER TABLE endpoints DROP COLUMN credentials, DROP COLUMN certificate_ends_at;
