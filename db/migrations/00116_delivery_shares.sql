-- Read-only links to one delivery, for the developer of its receiver.

-- +goose Up

CREATE TABLE delivery_shares (
	tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	id          uuid NOT NULL,
	hash        bytea NOT NULL,       -- of the token in its URL, which is not stored
	delivery_id uuid NOT NULL,
	brand       text NOT NULL DEFAULT '',
	accent      text NOT NULL DEFAULT '',
	created_at  timestamptz NOT NULL,
	expires_at  timestamptz NOT NULL,
	opened_at   timestamptz,          -- the first time
	revoked_at  timestamptz,
	PRIMARY KEY (tenant_id, id),
	UNIQUE (tenant_id, hash)
);
CREATE INDEX delivery_shares_delivery ON delivery_shares (tenant_id, delivery_id);
SELECT posthorn.guard('delivery_shares');
GRANT SELECT, INSERT, UPDATE ON delivery_shares TO posthorn_tenant;
GRANT SELECT, DELETE ON delivery_shares TO posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON delivery_shares TO posthorn_console;

-- +goose Down

DROP TABLE delivery_shares;
