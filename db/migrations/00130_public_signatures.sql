-- Signatures that receivers verify with a public key: the keys of a tenant, and those of the platform.

-- +goose Up

ALTER TABLE endpoints ADD COLUMN public_signature text NOT NULL DEFAULT 'none' CHECK (public_signature IN ('none', 'rfc9421', 'v1a', 'both'));

-- The keys of the platform have the tenant 00000000-0000-0000-0000-000000000000, so no foreign key leads to tenants.
CREATE TABLE signing_keys (
	tenant_id  uuid NOT NULL,
	id         uuid NOT NULL,
	sealed     bytea NOT NULL,       -- the 32 bytes of the private key
	public_key bytea NOT NULL,
	created_at timestamptz NOT NULL, -- since when it is published
	starts_at  timestamptz NOT NULL, -- when it begins to sign
	expires_at timestamptz,          -- when it is no longer published; null: it has no successor
	PRIMARY KEY (tenant_id, id)
);
SELECT posthorn.guard('signing_keys');
GRANT SELECT, INSERT, UPDATE, DELETE ON signing_keys TO posthorn_tenant, posthorn_console;
GRANT SELECT ON signing_keys TO posthorn_worker;

-- +goose Down

DROP TABLE signing_keys;
ALTER TABLE endpoints DROP COLUMN public_signature;
