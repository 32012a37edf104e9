-- Events that are emitted in SQL can expire (docs/outbox.md).

-- +goose Up

ALTER TABLE outbox ADD COLUMN expires_in int, ADD COLUMN expires_at timestamptz;
ALTER TABLE outbox_rejected ADD COLUMN expires_in int, ADD COLUMN expires_at timestamptz;


-- +goose Down

DROP FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz, text, int, timestamptz);
DROP FUNCTION posthorn.emitted_before(uuid, text, text, bytea, text, text[], text, timestamptz, timestamptz, text, int, timestamptz);
ALTER TABLE outbox_rejected DROP COLUMN expires_in, DROP COLUMN expires_at;
ALTER TABLE outbox DROP COLUMN expires_in, DROP COLUMN expires_at;
