-- Alerts of the platform's operators (docs/alerts.md): each cause from its start to its end, so that channels are told of
-- both once. An older process neither opens nor ends any.

-- +goose Up

CREATE TABLE platform_alerts (
	id             uuid PRIMARY KEY,
	kind           text NOT NULL,        -- incidents.Kind
	key            text NOT NULL,        -- tells causes of one kind apart
	title          text NOT NULL,
	message        text NOT NULL,
	page           text NOT NULL,        -- of the console; empty: the kind's
	about_tenant   uuid,
	about_endpoint uuid,
	opened_at      timestamptz NOT NULL,
	seen_at        timestamptz NOT NULL, -- when the cause was last there
	ended_at       timestamptz,
	sent           boolean NOT NULL DEFAULT false -- channels were told that it opened, and are told of its end
);
CREATE UNIQUE INDEX platform_alerts_open ON platform_alerts (kind, key) WHERE ended_at IS NULL;
CREATE INDEX platform_alerts_ended ON platform_alerts (ended_at) WHERE ended_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON platform_alerts TO posthorn_worker;
GRANT SELECT ON platform_alerts TO posthorn_console;

-- +goose Down

DROP TABLE platform_alerts;
