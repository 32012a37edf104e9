package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/db"
	"posthorn/db/embedded"
	"posthorn/domain/fault"
)

// How long a start waits for a database to respond, and for a private one, which may have to be installed and to replay
// its log first.
const (
	databasePatience = 30 * time.Second
	embeddedPatience = 15 * time.Minute
)

// store is where the data lives: a server of the operator's, or a private one.
type store struct {
	url       string // of the application role; may hold a password
	listenURL string // of a direct connection
	cluster   *embedded.Cluster
	log       *slog.Logger
}

// pooled reports whether a pooler is in front of the server: the configuration then also has a direct connection.
func (s *store) pooled() bool { return s.listenURL != s.url }

// openStore finds the database of a configuration, starts a private one, and waits until it responds. A long-running
// process (stay) takes a private server over when its owner ends; a short command does not.
func openStore(ctx context.Context, cfg *Config, log *slog.Logger, stay bool) (*store, error) {
	if cfg.embedded() {
		return openEmbedded(ctx, cfg, log, stay)
	}
	s := &store{url: cfg.DatabaseURL.Reveal(), listenURL: cfg.DatabaseListenURL.Reveal(), log: log}
	if s.listenURL == "" {
		s.listenURL = s.url
	}
	if err := waitForDatabase(ctx, s.listenURL, false, log, databasePatience); err != nil {
		return nil, err
	}
	if s.pooled() {
		if err := waitForDatabase(ctx, s.url, true, log, databasePatience); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func openEmbedded(ctx context.Context, cfg *Config, log *slog.Logger, stay bool) (*store, error) {
	ctx, cancel := context.WithTimeout(ctx, embeddedPatience)
	defer cancel()
	start := embedded.Attach
	if stay {
		start = embedded.Start
	}
	cluster, err := start(ctx, embedded.Config{
		DataDir:       cfg.DataDir,
		Archive:       cfg.PostgresArchive,
		ArchiveSHA256: cfg.PostgresSHA256,
		Log:           log,
	})
	if err != nil {
		return nil, err
	}
	return &store{url: cluster.URL(), listenURL: cluster.URL(), cluster: cluster, log: log}, nil
}

// migrate brings the schema up to date, under a lock of the session, which no pooler keeps.
func (s *store) migrate(ctx context.Context) error {
	if err := db.MigrateUp(ctx, s.listenURL, s.log); err != nil {
		return explainDatabase(err)
	}
	return nil
}

// open makes a pool of connections. name identifies it in pg_stat_activity.
func (s *store) open(ctx context.Context, name string, connections int32) (*db.DB, error) {
	d, err := db.Open(ctx, s.url, db.Options{Name: name, MaxConns: connections, Pooled: s.pooled()})
	if err != nil {
		return nil, explainDatabase(err)
	}
	return d, nil
}

// Close stops a private server that this process owns. It may be called on nil.
func (s *store) Close(ctx context.Context) error {
	if s == nil || s.cluster == nil {
		return nil
	}
	return s.cluster.Close(ctx)
}

// waitForDatabase returns once a server takes connections. What waiting can't heal (a wrong password, no such database)
// fails at once; the rest is tried again until the patience is at its end.
func waitForDatabase(ctx context.Context, url string, pooled bool, log *slog.Logger, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for try := 0; ; try++ {
		err := tryDatabase(ctx, url, pooled)
		if err == nil {
			return nil
		}
		explained := explainDatabase(err)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !db.IsUnavailable(explained) || time.Now().After(deadline) {
			return explained
		}
		if try%5 == 0 {
			log.Warn("waiting for the database", "detail", failed(explained).Detail, "error", oneLine(err), "up_to", time.Until(deadline).Round(time.Second))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// tryDatabase connects once and looks whether the server is one that Posthorn can use.
func tryDatabase(ctx context.Context, url string, pooled bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := db.Connect(ctx, url, db.Options{Name: "start", Pooled: pooled})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var version int
	var replica bool
	var encoding, database, user string
	err = conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('server_encoding'), current_database(), current_user").
		Scan(&version, &replica, &encoding, &database, &user)
	switch {
	case err != nil:
		return err
	case version < embedded.MinMajor*10000:
		return fault.New(fault.Invalid, "database_too_old", fmt.Sprintf(
			"The server of POSTHORN_DATABASE_URL is PostgreSQL %d. Posthorn needs %d or newer.", version/10000, embedded.MinMajor))
	case replica:
		return errReplica
	}
	return db.EncodingFault(encoding, database, user)
}

// errReplica can also occur on a primary, at the moment of its promotion: it is worth waiting.
var errReplica = fault.New(
	fault.Unavailable,
	"database_read_only",
	"The server of POSTHORN_DATABASE_URL is a replica, which can't be written. Name the primary, or all servers, separated by commas: Posthorn finds the one that can be.",
)

// explainDatabase turns what a driver says about a database that can't be used into what to do about it. The fault is
// of kind Unavailable where waiting may help. No part of the URL is quoted but user and database as the server names
// them.
func explainDatabase(err error) error {
	var server *pgconn.PgError
	var dns *net.DNSError
	var connect *pgconn.ConnectError
	invalid := func(code, detail string) error {
		return &fault.Error{Kind: fault.Invalid, Code: code, Detail: detail, Cause: err}
	}
	switch known := fault.As(err); {
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return errReplica
	case errors.As(err, &server):
		switch {
		case strings.Contains(server.Message, "unsupported startup parameter"):
			return invalid("database_pooled", "POSTHORN_DATABASE_URL is the address of a pooler. Set POSTHORN_DATABASE_LISTEN_URL to the server itself as well: some connections must be direct.")
		case strings.HasPrefix(server.Code, "28"):
			return invalid("database_refused", "The database rejected the user or password of POSTHORN_DATABASE_URL. Correct them, or let the server's pg_hba.conf accept this host.")
		case server.Code == "3D000":
			return invalid("database_missing", "The database that POSTHORN_DATABASE_URL names does not exist. Create it with `createdb`, owned by the user of the URL.")
		case known != nil:
			return err
		case server.Code == "42501":
			return invalid("database_role_too_weak", "The user of POSTHORN_DATABASE_URL lacks permissions. Grant it CREATE on the database and CREATEROLE, or let an administrator run `posthorn migrate roles` and `posthorn migrate up`.")
		case db.Lasting(server) != nil:
			return db.Lasting(server)
		default:
			return &fault.Error{Kind: fault.Unavailable, Code: "database_unavailable", Cause: err, Detail: "The database is unavailable. Check its log."}
		}
	case errors.As(err, &dns):
		return &fault.Error{
			Kind:   fault.Unavailable,
			Code:   "database_unavailable",
			Cause:  err,
			Detail: "The host of POSTHORN_DATABASE_URL can't be found. Check its name.",
		}
	case known == nil && (errors.As(err, &connect) || errors.Is(err, context.DeadlineExceeded)):
		return &fault.Error{
			Kind:   fault.Unavailable,
			Code:   "database_unavailable",
			Cause:  err,
			Detail: "No database responds at the address of POSTHORN_DATABASE_URL. Start it, or correct the host and port.",
		}
	}
	return err
}
