package auth_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/auth"
	"posthorn/handlers/credential"
	"posthorn/handlers/dashboard"
	"posthorn/tools/dbtest"
	"posthorn/tools/webtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// clock is a time that a test moves. The database's own clock does not move: tests move rows instead.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// world is the pages of Posthorn with their own database.
type world struct {
	*webtest.World
	t      *testing.T
	url    string
	db     *db.DB
	ring   *seal.Ring
	clock  *clock
	engine http.Handler
	log    *webtest.Log
}

const base = webtest.Base

func newWorld(t *testing.T, change ...func(*handlers.Config, *auth.Deps)) *world {
	t.Helper()
	shared := webtest.New(t)
	w := &world{World: shared, t: t, url: shared.URL, db: shared.DB, ring: shared.Ring, log: shared.Log, clock: &clock{}}
	config := w.Config(w.clock.now, base)
	deps := auth.Deps{DB: w.db, Keys: w.ring, BaseURL: base, Signup: true, Log: w.Logger, Now: w.clock.now}
	for _, c := range change {
		c(&config, &deps)
	}
	config.Sessions = handlers.NewSessions(w.db, config.BaseURL)
	w.engine = webtest.Serve(config, auth.Routes(deps), auth.ConsoleRoutes(deps, auth.Console{}), dashboard.Routes(dashboard.Deps{
		DB:      w.db,
		Keys:    w.ring,
		BaseURL: config.BaseURL,
		Log:     w.Logger,
		Now:     w.clock.now,
	}))
	return w
}

// browser keeps cookies, as a person's does.
type browser struct {
	w       *world
	cookies map[string]*http.Cookie
	address string
}

func (w *world) browser() *browser {
	return &browser{w: w, cookies: map[string]*http.Cookie{}, address: "192.0.2.1:1234"}
}

// page is what a browser received.
type page struct {
	t        *testing.T
	what     string
	Status   int
	Header   http.Header
	Body     string
	Location string
	Cookies  []*http.Cookie
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
	r.RemoteAddr = b.address
	r.Header.Set("Accept", "text/html")
	r.Header.Set("User-Agent", "test")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	recorder := httptest.NewRecorder()
	b.w.engine.ServeHTTP(recorder, r)
	got := recorder.Result()
	for _, c := range got.Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c
		}
	}
	if got.StatusCode == http.StatusInternalServerError {
		b.w.t.Errorf("%s %s answered 500\n%s", method, path, b.w.log)
	}
	return &page{
		t:        b.w.t,
		what:     method + " " + path,
		Status:   got.StatusCode,
		Header:   got.Header,
		Body:     recorder.Body.String(),
		Location: got.Header.Get("Location"),
		Cookies:  got.Cookies(),
	}
}

func (p *page) want(status int, parts ...string) *page {
	p.t.Helper()
	if p.Status != status {
		p.t.Fatalf("%s answered %d, want %d: %s", p.what, p.Status, status, p.Body)
	}
	for _, part := range parts {
		if !strings.Contains(p.Body, part) {
			p.t.Fatalf("%s does not hold %q: %s", p.what, part, p.Body)
		}
	}
	return p
}

// to checks that the page redirects to another, and returns its path.
func (p *page) to(prefix string) string {
	p.t.Helper()
	if p.Status != http.StatusSeeOther || !strings.HasPrefix(p.Location, prefix) {
		p.t.Fatalf("%s answered %d to %q, want 303 to %s...: %s", p.what, p.Status, p.Location, prefix, p.Body)
	}
	return p.Location
}

func one[T any](w *world, query string, args ...any) T {
	w.t.Helper()
	return webtest.One[T](w.World, query, args...)
}

// letter is a mail as its template gets it.
type letter struct{ Kind, Link, Token, Data string }

// mails are the mails to an address, oldest first.
func (w *world) mails(to string) (found []letter) {
	w.t.Helper()
	w.Connection(func(c *pgx.Conn) error {
		rows, err := c.Query(w.t.Context(), "SELECT id, tenant_id, kind, sealed, data FROM mails WHERE recipient = $1 ORDER BY id", to)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var u [16]byte
			var tenant *[16]byte
			var kind string
			var sealed []byte
			var data json.RawMessage
			if err := rows.Scan(&u, &tenant, &kind, &sealed, &data); err != nil {
				return err
			}
			if sealed != nil {
				var of id.UUID
				if tenant != nil {
					of = *tenant
				}
				if data, err = w.ring.Open(sealed, of, u); err != nil {
					return err
				}
			}
			var in struct{ Link string }
			if err := json.Unmarshal(data, &in); err != nil {
				return err
			}
			parsed, err := url.Parse(in.Link)
			if err != nil {
				return err
			}
			found = append(found, letter{Kind: kind, Link: in.Link, Token: parsed.Query().Get("token"), Data: string(data)})
		}
		return rows.Err()
	})
	return found
}

// lastMail is the newest mail to an address.
func (w *world) lastMail(to, kind string) letter {
	w.t.Helper()
	all := w.mails(to)
	if len(all) == 0 || all[len(all)-1].Kind != kind {
		w.t.Fatalf("the mails to %s are %+v; the last one should be %s", to, all, kind)
	}
	return all[len(all)-1]
}

const goodPassword = "correct horse battery staple"

var hashOnce = sync.OnceValue(func() string {
	hash, err := credential.NewPasswords().Hash(context.Background(), goodPassword)
	if err != nil {
		panic(err)
	}
	return hash
})

// person creates a person whose password is goodPassword.
func (w *world) person(email string) (person id.UUID) {
	w.t.Helper()
	err := w.db.Console(w.t.Context(), func(q *db.Tx) (err error) {
		person, err = accounts.AddPerson(w.t.Context(), q, email, "Name of "+email, hashOnce())
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return person
}

// tenant creates a tenant with an owner.
func (w *world) tenant(name string, owner id.UUID) (tenant id.UUID, path string) {
	w.t.Helper()
	tenant, _ = w.Tenant(name)
	w.join(tenant, owner, access.Owner)
	return tenant, "/t/" + id.Tenant.Format(tenant)
}

func (w *world) join(tenant, person id.UUID, role access.Role) (member id.UUID) {
	w.t.Helper()
	err := w.db.Console(w.t.Context(), func(q *db.Tx) (err error) {
		member, err = accounts.AddMember(w.t.Context(), q, tenant, person, role)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return member
}

// signedIn is a browser in which a person has just signed in.
func (w *world) signedIn(email string) *browser {
	w.t.Helper()
	b := w.browser()
	b.post("/sign-in", url.Values{"email": {email}, "password": {goodPassword}}).to("/")
	return b
}
