-- Days that are shown for longer than the retention move with their tenant.

-- +goose Up
GRANT INSERT ON late_days TO posthorn_console;

-- +goose Down
REVOKE INSERT ON late_days FROM posthorn_console;
