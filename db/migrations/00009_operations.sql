-- What operators' commands need beyond the tables of 00001.

-- +goose Up

GRANT SELECT, UPDATE ON mailbox TO posthorn_console;

-- +goose Down

REVOKE SELECT, UPDATE ON mailbox FROM posthorn_console;
