// Package webtest is the world that tests of pages and of the API share: a database of their own with tenants and
// keys, statements that do by hand what workers do, and the parts that surfaces are made of.
package webtest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/emit"
	"posthorn/db/seal"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/tools/schematest"
)

// Base is the public address of most worlds.
const Base = "http://127.0.0.1:8080"

// World is a database with what tests need to fill it.
type World struct {
	T      *testing.T
	URL    string // of the database
	DB     *db.DB
	Ring   *seal.Ring
	Log    *Log
	Logger *slog.Logger // writes Log
	Egress egress.Policy

	cleanup func(func())
}

// New starts a world with a new database.
func New(t *testing.T) *World {
	t.Helper()
	url := schematest.Clone(t)
	return Start(t, t.Cleanup, url, url)
}

// Start starts a world that reaches its database through another address, and ends it in cleanup.
func Start(t *testing.T, cleanup func(func()), url, through string) *World {
	t.Helper()
	w := &World{T: t, URL: url, Log: &Log{}, cleanup: cleanup}
	w.Logger = slog.New(slog.NewTextHandler(w.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if w.DB, err = db.Open(t.Context(), through, db.Options{MaxConns: 6, Name: "test"}); err != nil {
		t.Fatal(err)
	}
	cleanup(w.DB.Close)
	if w.Ring, err = seal.NewRing(seal.Generate([32]byte{7})); err != nil {
		t.Fatal(err)
	}
	if w.Egress, err = egress.ParseAllow("127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	return w
}

// On is the same world for a subtest.
func (w *World) On(t *testing.T) *World {
	sub := *w
	sub.T, sub.cleanup = t, t.Cleanup
	return &sub
}

// Run runs a part of the program until the test's end.
func (w *World) Run(part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = part(ctx)
	}()
	w.cleanup(func() {
		cancel()
		<-done
	})
}

// Committer starts what stores events.
func (w *World) Committer() *emit.Committer {
	c := emit.New(emit.Config{DB: w.DB, Log: w.Logger})
	w.Run(c.Run)
	return c
}

// Config is the configuration of a router's kit, for a clock and a public address.
func (w *World) Config(now func() time.Time, base string) handlers.Config {
	return handlers.Config{
		DB:            w.DB,
		Authenticator: handlers.NewAuthenticator(accounts.Keys{DB: w.DB}, w.Logger, now),
		Sessions:      handlers.NewSessions(w.DB, base),
		Keys:          w.Ring,
		BaseURL:       base,
		Log:           w.Logger,
		Now:           now,
	}
}

// Serve is a router of these routes.
func Serve(c handlers.Config, routes ...[]handlers.Route) http.Handler {
	kit := handlers.New(c)
	engine := kit.NewEngine()
	for _, r := range routes {
		kit.Mount(engine, r)
	}
	return engine
}

// Tenant creates a tenant with a key that has every scope.
func (w *World) Tenant(name string) (tenant id.UUID, key string) {
	w.T.Helper()
	row, key, err := accounts.CreateTenant(w.T.Context(), w.DB, accounts.NewTenant{Name: name}, db.Author{Kind: "command"})
	if err != nil {
		w.T.Fatal(err)
	}
	return row.ID, key
}

// Console runs a function as the role of the console.
func (w *World) Console(do func(context.Context, *db.Tx) error) {
	w.T.Helper()
	if err := w.DB.Console(w.T.Context(), func(q *db.Tx) error { return do(w.T.Context(), q) }); err != nil {
		w.T.Fatal(err)
	}
}

// MakeKey creates a key.
func (w *World) MakeKey(k accounts.NewKey) (text string) {
	w.T.Helper()
	w.Console(func(ctx context.Context, q *db.Tx) (err error) {
		_, text, err = accounts.MakeKey(ctx, q, k)
		return err
	})
	return text
}

// Connection runs a function on a connection with a role that sees all tenants.
func (w *World) Connection(do func(*pgx.Conn) error) {
	w.T.Helper()
	w.connection("SET search_path = posthorn; SET ROLE posthorn_console", do)
}

// Owner runs a statement as the role that owns the schema.
func (w *World) Owner(statement string, args ...any) {
	w.T.Helper()
	w.connection("SET search_path = posthorn", func(c *pgx.Conn) error {
		_, err := c.Exec(w.T.Context(), statement, args...)
		return err
	})
}

func (w *World) connection(first string, do func(*pgx.Conn) error) {
	w.T.Helper()
	c, err := pgx.Connect(w.T.Context(), w.URL)
	if err != nil {
		w.T.Fatal(err)
	}
	_, err = c.Exec(w.T.Context(), first)
	if err == nil {
		err = do(c)
	}
	if err = errors.Join(err, c.Close(context.Background())); err != nil {
		w.T.Fatal(err)
	}
}

// SQL runs a statement as a role that sees all tenants.
func (w *World) SQL(statement string, args ...any) {
	w.T.Helper()
	w.Connection(func(c *pgx.Conn) error {
		_, err := c.Exec(w.T.Context(), statement, args...)
		return err
	})
}

// One reads a single value as that role.
func One[T any](w *World, query string, args ...any) (v T) {
	w.T.Helper()
	w.Connection(func(c *pgx.Conn) error { return c.QueryRow(w.T.Context(), query, args...).Scan(&v) })
	return v
}

// Worker stores a live worker, if there is none.
func (w *World) Worker() {
	w.T.Helper()
	w.SQL("INSERT INTO workers (id, name) SELECT $1, 'a worker' WHERE NOT EXISTS (SELECT FROM workers)", db.NewID())
}

// SetStatus changes an endpoint's status as jobs and members do.
func (w *World) SetStatus(endpoint, status string) {
	w.T.Helper()
	w.SQL("UPDATE endpoints SET status = $2, verified_at = now() WHERE id = $1", endpoint, status)
	w.SQL("UPDATE lanes SET held = $2 <> 'active', rev = rev + 1 WHERE endpoint_id = $1", endpoint, status)
}

// Audited counts a tenant's entries of the audit log with an action.
func (w *World) Audited(tenant id.UUID, action string) int {
	w.T.Helper()
	return One[int](w, "SELECT count(*)::int FROM audit_log WHERE tenant_id = $1 AND action = $2", tenant.String(), action)
}

// Log collects what is logged.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String is what was logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
