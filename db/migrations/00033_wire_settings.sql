-- Settings that receivers of other systems need. A null or empty value is the default.

-- +goose Up

ALTER TABLE endpoints
	ADD COLUMN retry_jitter double precision CHECK (retry_jitter BETWEEN 0 AND 1), -- of a custom schedule; null: 0.1
	ADD COLUMN rotation_signatures text NOT NULL DEFAULT '' CHECK (rotation_signatures IN ('', 'one', 'all')), -- empty: the format's default
	ADD COLUMN type_field text NOT NULL DEFAULT 'type' CHECK (type_field IN ('type', 'event', 'both'));        -- of x-webhook bodies

-- The format x-webhook signed with every live secret until now. A rotation that is under way ends as it began: its receivers can
-- have switched to the new secret already.
UPDATE endpoints e SET rotation_signatures = 'all'
WHERE e.format = 'x-webhook' AND EXISTS (SELECT 1 FROM endpoint_secrets s WHERE s.endpoint_id = e.id AND s.expires_at > now());

-- +goose Down

ALTER TABLE endpoints DROP COLUMN type_field, DROP COLUMN rotation_signatures, DROP COLUMN retry_jitter;
