-- Tables and rights for operators' commands.

-- +goose Up

GRANT SELECT, UPDATE ON mailbox TO posthorn_console;

-- +goose Down

REVOKE SELECT, UPDATE ON mailbox FROM posthorn_console;
