-- Proxies through which requests to endpoints leave the network: the platform's, under the tenant of zeros, and those of
-- tenants that differ. An older process sends directly.

-- +goose Up

CREATE TABLE egress_proxies (
	tenant_id     uuid PRIMARY KEY,     -- 00000000-0000-0000-0000-000000000000: all tenants without their own
	type          text NOT NULL CHECK (type IN ('http', 'socks5', 'direct')),
	address       text NOT NULL,        -- host:port; empty for direct
	username      text NOT NULL,        -- empty: the proxy asks for none
	sealed        bytea,                -- the password; null: none
	resolve_names boolean NOT NULL,     -- the proxy gets names and resolves them itself
	published     text[] NOT NULL,      -- the addresses from which it sends
	changed_at    timestamptz NOT NULL,
	failed_at     timestamptz,          -- when it was last seen to fail
	failure       text NOT NULL DEFAULT ''
);
SELECT posthorn.guard('egress_proxies');
GRANT SELECT, INSERT, UPDATE, DELETE ON egress_proxies TO posthorn_console;
GRANT SELECT, UPDATE (failed_at, failure) ON egress_proxies TO posthorn_worker;

-- +goose Down

DROP TABLE egress_proxies;
