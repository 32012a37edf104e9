-- Endpoints of several kinds.

-- +goose Up

-- The list of kinds is in domain/endpoint, so that another needs no migration. The connection settings of a kind have
-- credentials and are sealed.
ALTER TABLE endpoints ADD COLUMN kind text NOT NULL DEFAULT 'http';
ALTER TABLE endpoints ADD COLUMN connection bytea; -- sealed JSON, its shape the kind's own; null where the kind needs none

-- +goose Down

ALTER TABLE endpoints DROP COLUMN connection;
ALTER TABLE endpoints DROP COLUMN kind;
