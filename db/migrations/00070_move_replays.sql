-- Who moves a tenant to another home writes its replays there.

-- +goose Up

GRANT INSERT ON replays TO posthorn_console;

-- +goose Down

REVOKE INSERT ON replays FROM posthorn_console;
