-- Which notices were sent to alert channels: the end of an alert that is open there is sent even when it is muted.

-- +goose Up

ALTER TABLE notices ADD COLUMN alerted_at timestamptz; -- its channels were sent it; null: none was
CREATE INDEX notices_alerted ON notices (tenant_id, endpoint_id, id) WHERE alerted_at IS NOT NULL;

-- +goose Down

ALTER TABLE notices DROP COLUMN alerted_at;
