package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/api"
	"posthorn/handlers/openid"
	"posthorn/handlers/readers"
	"posthorn/tools/schematest"
	"posthorn/tools/webtest"
	"posthorn/worker/send"
)

// world is a Posthorn API with its own database.
type world struct {
	*webtest.World
	t        *testing.T
	url      string
	db       *db.DB
	ring     *seal.Ring
	auth     *handlers.Authenticator
	engine   http.Handler
	platform string // a platform key with every scope
	log      *webtest.Log
}

// localOnly reaches what tests start, and no other provider.
type localOnly struct{}

func (localOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() != "127.0.0.1" {
		return nil, errors.New("not of this test: " + r.URL.Host)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// newWorld starts a world. change can alter the API's dependencies.
func newWorld(t *testing.T, change ...func(*api.Deps)) *world {
	t.Helper()
	url := schematest.Clone(t)
	return startWorld(t, t.Cleanup, url, url, change...)
}

// startWorld starts a world that reaches the database through another address, and stops it in cleanup.
func startWorld(t *testing.T, cleanup func(func()), url, through string, change ...func(*api.Deps)) *world {
	t.Helper()
	base := webtest.Start(t, cleanup, url, through)
	w := &world{World: base, t: t, url: url, db: base.DB, ring: base.Ring, log: base.Log}
	local := &http.Client{Transport: localOnly{}}
	deps := api.Deps{
		OpenID:  openid.New(local, time.Now),
		Tester:  send.NewTester(w.Egress),
		DB:      w.db,
		Emitter: w.Committer(),
		Egress:  w.Egress,
		Keys:    w.ring,
		BaseURL: "https://hooks.example.com",
		Log:     w.Logger,
		Now:     time.Now,
	}
	for _, c := range change {
		c(&deps)
	}
	config := w.Config(deps.Now, "")
	config.DB, config.Sessions, config.Keys = deps.DB, nil, nil
	w.auth = config.Authenticator
	w.engine = webtest.Serve(config, api.Routes(deps, readers.Routes))
	if url == through {
		w.platform = w.MakeKey(accounts.NewKey{Name: "platform", Scopes: access.PlatformScopes()})
	}
	return w
}

// on is the same world for a subtest.
func (w *world) on(t *testing.T) *world {
	sub := *w
	sub.t, sub.World = t, w.On(t)
	return &sub
}

// onlyReader hides a reader's length.
type onlyReader struct{ io.Reader }

// backdate copies an event into the past, and returns the copy's id.
func (w *world) backdate(t tenant, event string, age time.Duration) string {
	w.t.Helper()
	eventID, err := id.Event.Parse(event)
	if err != nil {
		w.t.Fatal(err)
	}
	conn, err := pgx.Connect(w.t.Context(), w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	past := id.New(eventID.Time().Add(-age), [10]byte{})
	for _, statement := range []string{
		"SELECT posthorn.make_partitions(date '" + past.Time().Format(time.DateOnly) + "', date '" + past.Time().Format(time.DateOnly) + "')",
		"SET ROLE posthorn_ingest",
		"INSERT INTO posthorn.events (tenant_id, created_at, id, type, data, routing_version) SELECT tenant_id, posthorn.created_at('" +
			past.String() + "'), '" + past.String() + "', type, data, 1 FROM posthorn.events WHERE id = '" + eventID.String() + "'",
	} {
		if _, err := conn.Exec(w.t.Context(), statement); err != nil {
			w.t.Fatal(statement, err)
		}
	}
	return id.Event.Format(past)
}

// tenant is one tenant of a world with a key that has every scope.
type tenant struct {
	uuid id.UUID
	id   string
	key  string
}

func (w *world) tenant(name string) tenant {
	w.t.Helper()
	uuid, key := w.Tenant(name)
	return tenant{uuid: uuid, id: id.Tenant.Format(uuid), key: key}
}

// scoped creates a key of a tenant with some scopes.
func (w *world) scoped(t tenant, scopes ...access.Scope) string {
	return w.MakeKey(accounts.NewKey{Tenant: &t.uuid, Name: "scoped", Scopes: scopes})
}

// answer is a response.
type answer struct {
	t      *testing.T
	what   string
	Status int
	Header http.Header
	Body   []byte
}

// do sends a request and compares the response with the contract. body is text, or a value to send as JSON, or nil.
func (w *world) do(method, path, key string, body any, header ...string) *answer {
	w.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	case io.Reader:
		reader = b
	default:
		text, err := json.Marshal(b)
		if err != nil {
			w.t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, reader)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, recorder := w.serve(r)
	holdToContract(w.t, r, recorder)
	if a.Status == http.StatusInternalServerError {
		w.t.Errorf("%s answered 500\n%s", a.what, w.log)
	}
	return a
}

// serve passes a request to the router.
func (w *world) serve(r *http.Request) (*answer, *httptest.ResponseRecorder) {
	recorder := httptest.NewRecorder()
	w.engine.ServeHTTP(recorder, r)
	return &answer{
		t:      w.t,
		what:   r.Method + " " + r.URL.Path,
		Status: recorder.Code,
		Header: recorder.Header(),
		Body:   recorder.Body.Bytes(),
	}, recorder
}

// want checks the status.
func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.Status != status {
		a.t.Fatalf("%s answered %d, want %d: %s", a.what, a.Status, status, a.Body)
	}
	return a
}

// problem checks the status and code of an error, and the fields it names, if any are given.
func (a *answer) problem(status int, code string, fields ...string) *answer {
	a.t.Helper()
	a.want(status)
	var p api.Problem
	a.into(&p)
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		a.t.Errorf("%s: content type %q", a.what, got)
	}
	if p.Code != code || p.Status != status || p.Detail == "" || p.Title == "" || p.Type != "/docs/errors/"+code ||
		p.RequestID != a.Header.Get("X-Request-Id") {
		a.t.Errorf("%s: want code %s, got %s", a.what, code, a.Body)
	}
	var named []string
	if p.Errors != nil {
		for _, e := range *p.Errors {
			named = append(named, e.Field)
		}
	}
	if strings.Join(named, " ") != strings.Join(fields, " ") {
		a.t.Errorf("%s: want the fields %q, got %q", a.what, fields, named)
	}
	return a
}

// into decodes the body.
func (a *answer) into(v any) {
	a.t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		a.t.Fatalf("%s: %v: %s", a.what, err, a.Body)
	}
}

// get is a field of the body, by its dotted path.
func (a *answer) get(path string) any {
	a.t.Helper()
	var v any
	a.into(&v)
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			a.t.Fatalf("%s has no %s: %s", a.what, path, a.Body)
		}
		v = object[name]
	}
	return v
}

func (a *answer) text(path string) string {
	a.t.Helper()
	s, ok := a.get(path).(string)
	if !ok {
		a.t.Fatalf("%s: %s is no text: %s", a.what, path, a.Body)
	}
	return s
}
