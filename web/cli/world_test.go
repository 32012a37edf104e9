package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"posthorn/client"
	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/emit"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/mcp"
	"posthorn/handlers/api"
	mcpserver "posthorn/handlers/mcp"
	"posthorn/handlers/openid"
	"posthorn/handlers/readers"
	"posthorn/tools/dbtest"
	"posthorn/tools/webtest"
	"posthorn/worker"
	"posthorn/worker/send"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// patience bounds what a test waits for on a busy machine. Nothing takes that long.
const patience = time.Minute

// publicURL is what the server believes to be its address.
const publicURL = "https://posthorn.example.com"

// world is a Posthorn with its worker and its own database, reached over HTTP.
type world struct {
	*webtest.World
	t      *testing.T
	db     *db.DB
	url    string
	engine http.Handler
	tester *send.Tester
	before func(http.ResponseWriter, *http.Request) bool // responds in the server's place where it returns true
}

func newWorld(t *testing.T) *world {
	t.Helper()
	shared := webtest.New(t)
	w := &world{World: shared, t: t, db: shared.DB, tester: send.NewTester(shared.Egress)}
	delivering := worker.New(worker.Config{
		DB:        w.db,
		ListenURL: w.URL,
		Log:       w.Logger,
		Egress:    w.Egress,
		Keys:      w.Ring,
		Name:      t.Name(),
	})
	w.Run(delivering.Run)
	committer := emit.New(emit.Config{
		DB:           w.db,
		Log:          w.Logger,
		OnCommit:     delivering.Committed,
		BeforeCommit: delivering.BeforeCommit,
	})
	w.Run(committer.Run)
	config := w.Config(time.Now, "")
	config.BaseURL = publicURL
	providers := openid.New(send.NewClient(w.Egress), time.Now)
	config.Authenticator.Tokens = &mcpserver.SignIns{DB: w.db, OpenID: providers, BaseURL: publicURL, Now: time.Now}
	own := webtest.Serve(config, api.Routes(api.Deps{
		DB:      w.db,
		OpenID:  providers,
		BaseURL: publicURL,
		Emitter: committer,
		Egress:  w.Egress,
		Tester:  w.tester,
		Keys:    w.Ring,
		Log:     w.Logger,
		Now:     time.Now,
	}, readers.Routes))
	protocol := webtest.Serve(config, mcpserver.Routes(mcpserver.Deps{
		API:     own,
		DB:      w.db,
		Keys:    w.Ring,
		Egress:  w.Egress,
		Poster:  w.tester,
		BaseURL: publicURL,
		Version: "test",
		Now:     time.Now,
	}))
	w.engine = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, mcp.Root) || strings.HasPrefix(r.URL.Path, mcp.ResourceRoot) {
			protocol.ServeHTTP(rw, r)
			return
		}
		own.ServeHTTP(rw, r)
	})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.before == nil || !w.before(rw, r) {
			w.engine.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// tenant makes a tenant and a client with its key.
func (w *world) tenant(options ...client.Option) (*client.Client, string) {
	w.t.Helper()
	tenant, key := w.Tenant("Acme")
	return w.client(key, options...), id.Tenant.Format(tenant)
}

func (w *world) platform() *client.Client {
	w.t.Helper()
	return w.client(w.MakeKey(accounts.NewKey{Name: "platform", Scopes: access.PlatformScopes()}))
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

// eventually is dbtest.Eventually within a time that nothing takes.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	dbtest.Eventually(t, patience, what, yes)
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
