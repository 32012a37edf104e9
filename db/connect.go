package db

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/domain/fault"
)

// A network that is cut sends no error. Without bounds of its own, a connection waits for a quarter of an hour, and the
// server keeps the locks of the other end for two hours. Both ends give up after 15 s, well before a silent worker is
// declared dead (worker/membership.go): by then the server has released the share lock on the worker's row.
const (
	connectWithin  = 5 * time.Second
	keepAliveEvery = 5 * time.Second
	keepAliveTries = 2
	deafAfter      = keepAliveEvery * (1 + keepAliveTries)
)

// What a direct connection asks the server to do at its own end, in the server's units.
var serverKeepAlive = map[string]string{
	"tcp_keepalives_idle":     "5",
	"tcp_keepalives_interval": "5",
	"tcp_keepalives_count":    "2",
	"tcp_user_timeout":        "15000",
}

var dialer = &net.Dialer{
	KeepAliveConfig: net.KeepAliveConfig{
		Enable:   true,
		Idle:     keepAliveEvery,
		Interval: keepAliveEvery,
		Count:    keepAliveTries,
	},
	Control: boundSilence,
}

// parseURL reads a database URL and prepares its connections. The error quotes no part of the URL.
func parseURL(url string, o Options) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errURL
	}
	prepareConfig(cfg, url, o)
	return cfg, nil
}

// The driver's message can quote the URL and with it the password.
var errURL = fault.New(
	fault.Invalid,
	"database_url_invalid",
	"The database URL is not a PostgreSQL URL. Write postgres://user:password@host:5432/database.",
)

// prepareConfig names the connection, puts the schema on its path, and bounds how long it waits for a dead network.
func prepareConfig(cfg *pgx.ConnConfig, url string, o Options) {
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = strings.TrimSpace("posthorn " + o.Name)
	}
	cfg.ConnectTimeout = connectWithin
	if cfg.Tracer == nil {
		cfg.Tracer = statements{}
	}
	cfg.DialFunc = dialer.DialContext
	closeOnFatal := cfg.OnPgError
	cfg.OnPgError = func(c *pgconn.PgConn, e *pgconn.PgError) bool {
		// A read-only server was the primary before and is a replica now. The next connection can find the new primary.
		return e.Code != codeReadOnly && closeOnFatal(c, e)
	}
	if cfg.ValidateConnect == nil && severalHosts(cfg) {
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	asked := cfg.ValidateConnect
	cfg.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		if asked != nil {
			if err := asked(ctx, c); err != nil {
				return err
			}
		}
		return validateTimeline(ctx, c)
	}
	if o.Pooled {
		// A pooler keeps neither settings nor prepared statements: the next transaction can run on another server
		// connection.
		if !strings.Contains(url, "default_query_exec_mode") {
			cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		}
		return
	}
	if cfg.RuntimeParams["search_path"] == "" {
		cfg.RuntimeParams["search_path"] = Schema
	}
	for name, value := range serverKeepAlive {
		if cfg.RuntimeParams[name] == "" {
			cfg.RuntimeParams[name] = value
		}
	}
}

// codeReadOnly is a replica's error code for a change.
const codeReadOnly = "25006"

// severalHosts reports whether a URL names more than one server. A single server has several entries too, one for each
// mode of TLS.
func severalHosts(cfg *pgx.ConnConfig) bool {
	for _, f := range cfg.Fallbacks {
		if f.Host != cfg.Host || f.Port != cfg.Port {
			return true
		}
	}
	return false
}

// Connect opens one connection with the settings of the pool's connections.
func Connect(ctx context.Context, url string, o Options) (*pgx.Conn, error) {
	cfg, err := parseURL(url, o)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, cfg)
}
