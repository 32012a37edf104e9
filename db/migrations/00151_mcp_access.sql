-- How people of a tenant's product reach its server of the Model Context Protocol themselves (docs/mcp.md), and which
-- subscriptions must be told that events were not delivered to them.

-- +goose Up

CREATE TABLE mcp_access (
	tenant_id        uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
	issuer           text NOT NULL,   -- of the product's access tokens; empty: API keys alone
	audience         text NOT NULL,   -- empty: the address of the tenant's server
	claim            text NOT NULL,   -- that tokens must have; empty: none
	claim_value      text NOT NULL,
	message_id_hosts text[] NOT NULL, -- hosts that want the message's id as webhook-id
	changed_at       timestamptz NOT NULL DEFAULT now()
);
SELECT posthorn.guard('mcp_access');
GRANT SELECT, INSERT, UPDATE, DELETE ON mcp_access TO posthorn_tenant, posthorn_console;

-- A failed delivery of a subscription is told once.
ALTER TABLE subscriptions
	ADD COLUMN told_until timestamptz NOT NULL DEFAULT now(), -- failures until then were told
	ADD COLUMN missed     boolean NOT NULL DEFAULT false;     -- the next refresh says truncated

-- +goose Down

ALTER TABLE subscriptions DROP COLUMN told_until, DROP COLUMN missed;
DROP TABLE mcp_access;
