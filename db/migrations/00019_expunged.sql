-- Why the data of an event is gone.

-- +goose Up

-- An event's page looks its expunge up. Few events ever have one.
CREATE INDEX audit_log_expunged ON audit_log (tenant_id, object_id) WHERE action = 'event.expunge';

-- +goose Down

DROP INDEX audit_log_expunged;
