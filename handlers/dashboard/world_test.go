package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/api"
	"posthorn/handlers/dashboard"
	"posthorn/tools/dbtest"
	"posthorn/tools/pagetest"
	"posthorn/tools/webtest"
	"posthorn/worker/send"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

const base = webtest.Base

// world is the dashboard with its own database. No worker runs: tests write by hand what one does to a delivery.
type world struct {
	*webtest.World
	t      *testing.T
	url    string
	db     *db.DB
	ring   *seal.Ring
	commit *emit.Committer
	engine http.Handler
	routes []handlers.Route
	log    *webtest.Log
}

func newWorld(t *testing.T) *world {
	t.Helper()
	shared := webtest.New(t)
	w := &world{World: shared, t: t, url: shared.URL, db: shared.DB, ring: shared.Ring, log: shared.Log, commit: shared.Committer()}
	closing := make(chan struct{})
	close(closing) // a stream ends after its beginning: requests of these tests have no end of their own
	w.routes = dashboard.Routes(dashboard.Deps{
		Closing: closing,
		DB:      w.db,
		Keys:    w.ring,
		BaseURL: base,
		Log:     w.Logger,
		Now:     time.Now,
		Emitter: w.commit,
		Tester:  send.NewTester(w.Egress),
		Export:  api.NewExporter(api.Deps{DB: w.db, Keys: w.ring, Now: time.Now}),
	})
	w.engine = webtest.Serve(w.Config(time.Now, base), w.routes)
	w.Worker()
	return w
}

// tenant is one tenant with a member of each role.
type tenant struct {
	id   id.UUID
	path string
	of   map[access.Role]*browser
}

func (w *world) tenant(name string) tenant {
	w.t.Helper()
	uuid, _ := w.Tenant(name)
	tn := tenant{id: uuid, path: "/t/" + id.Tenant.Format(uuid), of: map[access.Role]*browser{}}
	for _, role := range access.Roles() {
		tn.of[role] = w.member(tn, role)
	}
	return tn
}

// member is a signed-in member of a tenant.
func (w *world) member(tn tenant, role access.Role) *browser {
	w.t.Helper()
	var person id.UUID
	err := w.db.Console(w.t.Context(), func(q *db.Tx) (err error) {
		email := fmt.Sprintf("%s-%x@example.com", role, tn.id[:])
		if person, err = accounts.AddPerson(w.t.Context(), q, email, "A "+string(role), "none"); err != nil {
			return err
		}
		_, err = accounts.AddMember(w.t.Context(), q, tn.id, person, role)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.signedIn(accounts.NewSession{Person: &person, Life: time.Hour})
}

func (w *world) signedIn(s accounts.NewSession) *browser {
	w.t.Helper()
	var token string
	err := w.db.Account(w.t.Context(), func(q *db.Tx) (err error) {
		token, err = accounts.StartSession(w.t.Context(), q, s)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return &browser{
		w: w,
		cookie: &http.Cookie{
			Name:  handlers.NewSessions(w.db, base).Cookie(account.Person),
			Value: token,
		},
	}
}

// browser is a member's browser; without a cookie, nobody's.
type browser struct {
	w      *world
	cookie *http.Cookie
}

// page is what a browser received.
type page struct {
	t        *testing.T
	what     string
	Status   int
	Header   http.Header
	Body     string
	Location string
}

func (b *browser) get(path string, header ...string) *page {
	return b.send("GET", path, nil, header...)
}

func (b *browser) post(path string, form url.Values, header ...string) *page {
	return b.send("POST", path, form, header...)
}

func (b *browser) send(method, path string, form url.Values, header ...string) *page {
	b.w.t.Helper()
	r := httptest.NewRequestWithContext(b.w.t.Context(), method, base+path, strings.NewReader(form.Encode()))
	r.Header.Set("Accept", "text/html")
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	recorder := httptest.NewRecorder()
	b.w.engine.ServeHTTP(recorder, r)
	p := &page{
		t:        b.w.t,
		what:     method + " " + path,
		Status:   recorder.Code,
		Header:   recorder.Header(),
		Body:     recorder.Body.String(),
		Location: recorder.Header().Get("Location"),
	}
	if p.Status == http.StatusInternalServerError {
		b.w.t.Errorf("%s answered 500\n%s", p.what, b.w.log)
	}
	if method == "POST" && p.Status/100 == 2 && r.Header.Get("HX-Request") == "" && !triesOnly(path) {
		b.w.t.Errorf("%s answered %d with a page: reloading it would send the form again", p.what, p.Status)
	}
	if strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
		faults := pagetest.Faults
		if !strings.Contains(p.Body, "<html") {
			faults = pagetest.FragmentFaults
		}
		for _, fault := range faults(p.Body) {
			if !strings.Contains(p.Body, "<html") && (fault == "2 h1, want one" && strings.Contains(p.Body, "<h1") || strings.Contains(fault, "leads to no element")) {
				continue // a part can contain the page's head, and link to what is beside it
			}
			b.w.t.Errorf("%s: %s", p.what, fault)
		}
		if len(p.Body) > 100<<10 && p.Status != http.StatusRequestEntityTooLarge {
			b.w.t.Errorf("%s has %d bytes", p.what, len(p.Body))
		}
	}
	return p
}

func (p *page) want(status int, parts ...string) *page {
	p.t.Helper()
	if p.Status != status {
		p.t.Fatalf("%s answered %d, want %d: %s", p.what, p.Status, status, p.Body)
	}
	for _, part := range parts {
		if !strings.Contains(p.Body, part) {
			p.t.Errorf("%s does not hold %q: %s", p.what, part, p.Body)
		}
	}
	return p
}

func (p *page) lacks(parts ...string) *page {
	p.t.Helper()
	for _, part := range parts {
		if strings.Contains(p.Body, part) {
			p.t.Errorf("%s holds %q", p.what, part)
		}
	}
	return p
}

// to checks that a form redirects to another page, and returns its path.
func (p *page) to(prefix string) string {
	p.t.Helper()
	if p.Status != http.StatusSeeOther || !strings.HasPrefix(p.Location, prefix) {
		p.t.Fatalf("%s answered %d to %q, want 303 to %s...: %s", p.what, p.Status, p.Location, prefix, p.Body)
	}
	return p.Location
}

// next follows a form to the page that it redirects to.
func (b *browser) next(path string, form url.Values) *page {
	b.w.t.Helper()
	return b.get(b.post(path, form).to("/"))
}

func one[T any](w *world, query string, args ...any) T {
	w.t.Helper()
	return webtest.One[T](w.World, query, args...)
}

func (w *world) audited(tn tenant, action string) int {
	w.t.Helper()
	return w.Audited(tn.id, action)
}

// endpoint creates an active endpoint.
func (w *world) endpoint(tn tenant, u string, change ...func(*endpoint.Settings)) (ep id.UUID) {
	w.t.Helper()
	s := endpoint.ReadDefaults(50, nil, nil).Settings
	s.URL = u
	for _, c := range change {
		c(&s)
	}
	secret, err := endpoint.NewSecret(s.Format, "hmac", [32]byte{1})
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.db.Tenant(w.t.Context(), tn.id, func(q *db.Tx) error {
		e, err := endpoints.Create(w.t.Context(), q, w.ring, tn.id, endpoints.New{
			Settings: s,
			Secret:   secret,
			Limit:    50,
		})
		ep = e.ID
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.SetStatus(ep.String(), "active")
	return ep
}

// emit stores an event and returns its id.
func (w *world) emit(tn tenant, kind, data string) id.UUID {
	w.t.Helper()
	r := w.commit.Emit(w.t.Context(), tn.id, []emit.Item{{Emission: event.Emission{Type: kind, Data: []byte(data)}}})[0]
	if r.Err != nil {
		w.t.Fatal(r.Err)
	}
	return r.ID
}

// delivery is the newest delivery of an event.
func (w *world) delivery(ev id.UUID) (uuid id.UUID) {
	w.t.Helper()
	w.Connection(func(c *pgx.Conn) error {
		return c.QueryRow(w.t.Context(), "SELECT id FROM deliveries WHERE event_id = $1 ORDER BY id DESC LIMIT 1", ev.String()).Scan((*[16]byte)(&uuid))
	})
	return uuid
}

// tried is an attempt as the recorder stores it.
type tried struct {
	status   int
	failure  int
	answer   string
	headers  string
	error    string
	terminal int // the delivery's state after it: 2 delivered, 3 failed; 0: it is retried in an hour
	reason   int
}

// attempt stores an attempt at a delivery, and its result.
func (w *world) attempt(dlv id.UUID, a tried) {
	w.t.Helper()
	uuid := db.NewID()
	w.SQL(`INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us, tls_us, wait_us,
		read_us, total_us, url, format, signature, response_headers, response_excerpt, error)
		SELECT tenant_id, $2, $3, id, endpoint_id, attempts + 1, $4, $5, 1200, 8000, 21000, 40000, 300, 70500,
			'https://hooks.example.com/in?key=***', 'standard', 'v1,c2lnbmVk', nullif($6, ''), nullif($7, '')::bytea, nullif($8, '')
		FROM deliveries WHERE id = $1`, dlv.String(), uuid.Time(), uuid.String(), a.status, a.failure, a.headers, a.answer, a.error)
	w.SQL(`UPDATE deliveries SET attempts = attempts + 1, last_status = $2, last_failure = $3, status = CASE WHEN $4 = 0 THEN 1 ELSE $4 END, reason = $5,
		settled_at = CASE WHEN $4 = 0 THEN NULL ELSE now() END WHERE id = $1`, dlv.String(), a.status, a.failure, a.terminal, a.reason)
	if a.terminal == 0 {
		w.SQL("UPDATE queue SET state = 1, due_at = now() + interval '1 hour', attempts = attempts + 1 WHERE delivery_id = $1", dlv.String())
		return
	}
	w.SQL("DELETE FROM queue WHERE delivery_id = $1", dlv.String())
	if a.terminal == 3 {
		w.SQL(`INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason)
			SELECT tenant_id, id, endpoint_id, event_type, reason FROM deliveries WHERE id = $1`, dlv.String())
	}
}

// setting changes one of a tenant's settings.
func (w *world) setting(tn tenant, name string, value any) {
	w.t.Helper()
	text, err := json.Marshal(map[string]any{name: value})
	if err != nil {
		w.t.Fatal(err)
	}
	w.SQL("UPDATE tenants SET settings = settings || $2::jsonb WHERE id = $1", tn.id.String(), string(text))
}
