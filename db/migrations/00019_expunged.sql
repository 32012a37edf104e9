-- The reason why an event's data was expunged.

-- +goose Up

-- An event's page reads its expunge. Few events ever have one.
CREATE INDEX audit_log_expunged ON audit_log (tenant_id, object_id) WHERE action = 'event.expunge';

-- +goose Down

DROP INDEX audit_log_expunged;
