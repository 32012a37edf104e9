-- +goose Up

-- Failed deliveries that need no action: of a test event, of a test inbox, and of a developer's listener. They are
-- listed, and are no dead letters. Null in rows that an older process wrote, or that were restored from an object
-- store.
ALTER TABLE dead_letters ADD COLUMN trial boolean;
UPDATE dead_letters x SET trial = true
WHERE x.event_type = 'endpoint.test'
	OR EXISTS (SELECT FROM endpoints e WHERE e.tenant_id = x.tenant_id AND e.id = x.endpoint_id AND e.kind IN ('listen', 'inbox'));

-- +goose Down

ALTER TABLE dead_letters DROP COLUMN trial;
