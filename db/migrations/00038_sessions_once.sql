-- A form that makes a secret redirects to a page that shows it a single time. Until then the session keeps it, sealed.

-- +goose Up

ALTER TABLE sessions ADD COLUMN once bytea; -- sealed for the session; null: nothing waits to be shown

-- +goose Down

ALTER TABLE sessions DROP COLUMN once;
