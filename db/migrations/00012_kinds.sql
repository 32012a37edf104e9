-- Endpoints of several kinds.

-- +goose Up

-- Which kinds there are is the program's to say (domain/endpoint), so that another needs no migration. What a kind needs beyond
-- the URL that people see has credentials in it and is sealed.
ALTER TABLE endpoints ADD COLUMN kind text NOT NULL DEFAULT 'http';
ALTER TABLE endpoints ADD COLUMN connection bytea; -- sealed JSON, its shape the kind's own; null where the kind needs none

-- +goose Down

ALTER TABLE endpoints DROP COLUMN connection;
ALTER TABLE endpoints DROP COLUMN kind;
