package cli_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"posthorn/client"
	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/emit"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/api"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
	"posthorn/worker"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// patience bounds what a test waits for on a busy machine. Nothing takes that long.
const patience = time.Minute

// world is a Posthorn with its worker and its own database, reached over HTTP.
type world struct {
	t      *testing.T
	db     *db.DB
	url    string
	engine http.Handler
	before func(http.ResponseWriter, *http.Request) bool // responds in the server's place where it returns true
}

func newWorld(t *testing.T) *world {
	t.Helper()
	url := schematest.Clone(t)
	d, err := db.Open(t.Context(), url, db.Options{MaxConns: 8, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	ring, err := seal.NewRing(seal.Generate([32]byte{7}))
	if err != nil {
		t.Fatal(err)
	}
	allow, err := egress.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	w := &world{t: t, db: d}
	delivering := worker.New(worker.Config{
		DB:        d,
		ListenURL: url,
		Log:       quiet,
		Egress:    allow,
		Keys:      ring,
		Name:      t.Name(),
	})
	w.run(delivering.Run)
	committer := emit.New(emit.Config{
		DB:           d,
		Log:          quiet,
		OnCommit:     delivering.Committed,
		BeforeCommit: delivering.BeforeCommit,
	})
	w.run(committer.Run)
	kit := handlers.New(handlers.Config{
		DB:            d,
		Authenticator: handlers.NewAuthenticator(accounts.Keys{DB: d}, quiet, time.Now),
		Log:           quiet,
		Now:           time.Now,
	})
	engine := kit.NewEngine()
	kit.Mount(engine, api.Routes(api.Deps{
		DB:      d,
		Emitter: committer,
		Egress:  allow,
		Keys:    ring,
		Log:     quiet,
		Now:     time.Now,
	}))
	w.engine = engine
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.before == nil || !w.before(rw, r) {
			engine.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) run(part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = part(ctx)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// tenant makes a tenant and a client with its key.
func (w *world) tenant(options ...client.Option) (*client.Client, string) {
	w.t.Helper()
	row, key, err := accounts.CreateTenant(w.t.Context(), w.db, accounts.NewTenant{Name: "Acme"}, db.Author{Kind: "command"})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.client(key, options...), id.Tenant.Format(row.ID)
}

func (w *world) platform() *client.Client {
	w.t.Helper()
	var key string
	err := w.db.Console(w.t.Context(), func(q *sql.Queries) (err error) {
		_, key, err = accounts.MakeKey(w.t.Context(), q, accounts.NewKey{Name: "platform", Scopes: access.PlatformScopes()})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.client(key)
}

func (w *world) client(key string, options ...client.Option) *client.Client {
	w.t.Helper()
	c, err := client.New(w.url, key, options...)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// must fails the test on an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// eventually polls until the result is true.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !yes(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came to be that %s", what)
		}
	}
}

// receiver verifies requests and sends them on.
func receiver(t *testing.T, v func() client.Verifier, got chan<- client.Webhook) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w, err := v().Read(r)
		if err != nil {
			t.Errorf("not verified: %v", err)
			http.Error(rw, "refused", http.StatusUnauthorized)
			return
		}
		if challenge := w.Challenge(); challenge != "" {
			_, _ = io.WriteString(rw, challenge)
			return
		}
		got <- w
	}))
	t.Cleanup(s.Close)
	return s
}

// newServer replaces Posthorn where a test needs responses that it rarely gives.
func newServer(t *testing.T, serve http.HandlerFunc) string {
	s := httptest.NewServer(serve)
	t.Cleanup(s.Close)
	return s.URL
}
