-- The columns of accounts that the worker's jobs read: recipients of alerts, and expiry. No password, seed or address
-- of others.

-- +goose Up

REVOKE SELECT ON operators, sessions, one_time_links, account_limits FROM posthorn_worker;
GRANT SELECT (id, email, name, created_at, disabled_at) ON operators TO posthorn_worker;
GRANT SELECT (id, expires_at) ON sessions TO posthorn_worker;
GRANT SELECT (hash, expires_at) ON one_time_links TO posthorn_worker;
GRANT SELECT (key, until) ON account_limits TO posthorn_worker;

-- +goose Down

REVOKE SELECT (id, email, name, created_at, disabled_at) ON operators FROM posthorn_worker;
REVOKE SELECT (id, expires_at) ON sessions FROM posthorn_worker;
REVOKE SELECT (hash, expires_at) ON one_time_links FROM posthorn_worker;
REVOKE SELECT (key, until) ON account_limits FROM posthorn_worker;
GRANT SELECT ON operators, sessions, one_time_links, account_limits TO posthorn_worker;
