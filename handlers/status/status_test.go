package status_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/ledger"
	"posthorn/domain/account"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/domain/settings"
	"posthorn/handlers"
	"posthorn/handlers/status"
	"posthorn/tools/dbtest"
	"posthorn/tools/pagetest"
	"posthorn/tools/schematest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

const base = "http://127.0.0.1:8080"

func server(t *testing.T, d *db.DB, published []netip.Prefix) http.Handler {
	t.Helper()
	kit := handlers.New(handlers.Config{
		Log:      slog.New(slog.DiscardHandler),
		Now:      time.Now,
		Sessions: handlers.NewSessions(d, base),
		BaseURL:  base,
	})
	engine := kit.NewEngine()
	kit.Mount(engine, status.Routes(status.Deps{DB: d, Egress: published, Now: time.Now}))
	return engine
}

func get(t *testing.T, h http.Handler, path string, cookie *http.Cookie) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
	r.Header.Set("Accept", "text/html")
	if cookie != nil {
		r.AddCookie(cookie)
	}
	res := httptest.NewRecorder()
	h.ServeHTTP(res, r)
	return res
}

func open(t *testing.T) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), schematest.Clone(t), db.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func set(t *testing.T, d *db.DB, word string) {
	t.Helper()
	if _, err := accounts.ChangePlatform(t.Context(), d,
		accounts.PlatformChange{Texts: map[string]string{settings.StatusPage: word}}, db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
}

func TestTheStatusPageIsVisibleAsConfigured(t *testing.T) {
	t.Parallel()
	d := open(t)
	h := server(t, d, nil)
	if res := get(t, h, "/status", nil); res.Code != http.StatusSeeOther || !strings.HasPrefix(res.Header().Get("Location"), "/sign-in") {
		t.Errorf("a stranger: %d", res.Code)
	}
	var token string
	err := d.Console(t.Context(), func(q *db.Tx) error {
		person, err := accounts.AddPerson(t.Context(), q, "a@example.com", "A", "none")
		if err != nil {
			return err
		}
		token, err = accounts.StartSession(t.Context(), q, accounts.NewSession{Person: &person, Life: time.Hour})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	cookie := &http.Cookie{Name: handlers.NewSessions(d, base).Cookie(account.Person), Value: token}
	if res := get(t, h, "/status", cookie); res.Code != http.StatusOK || !strings.Contains(res.Body.String(), "Nothing was sent") {
		t.Errorf("who is signed in: %d %s", res.Code, res.Body)
	}
	set(t, d, settings.Public)
	if res := get(t, h, "/status", nil); res.Code != http.StatusOK || len(pagetest.Faults(res.Body.String())) > 0 {
		t.Errorf("in public: %d %v", res.Code, pagetest.Faults(res.Body.String()))
	}
	set(t, d, settings.Off)
	if res := get(t, h, "/status", cookie); res.Code != http.StatusNotFound {
		t.Errorf("off: %d", res.Code)
	}
}

func TestTheAddressesOfRequestsArePublishedWhereThereAreAny(t *testing.T) {
	t.Parallel()
	d := open(t)
	if res := get(t, server(t, d, nil), "/.well-known/posthorn/egress.json", nil); res.Code != http.StatusNotFound {
		t.Errorf("none: %d", res.Code)
	}
	res := get(t, server(t, d, []netip.Prefix{netip.MustParsePrefix("203.0.113.7/32"), netip.MustParsePrefix("2001:db8::/48")}), "/.well-known/posthorn/egress.json", nil)
	var said struct{ Addresses []string }
	if err := json.Unmarshal(res.Body.Bytes(), &said); err != nil || strings.Join(said.Addresses, " ") != "203.0.113.7/32 2001:db8::/48" ||
		res.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", res.Code, res.Body)
	}
}

func TestEgressAddressesIncludeThoseOfProxies(t *testing.T) {
	t.Parallel()
	d := open(t)
	if err := d.Console(t.Context(), func(q *db.Tx) error {
		_, err := endpoints.Editor{By: db.Author{Kind: "command"}}.SetProxy(t.Context(), q, egress.Policy{}, egress.Proxy{
			Type:      egress.ProxyHTTP,
			Address:   "proxy.example.com:3128",
			Published: []string{"198.51.100.9", "2001:db8::/48"},
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for published, want := range map[*[]netip.Prefix]string{
		{}: "198.51.100.9/32 2001:db8::/48",
		{netip.MustParsePrefix("203.0.113.7/32")}: "203.0.113.7/32 198.51.100.9/32 2001:db8::/48",
	} {
		res := get(t, server(t, d, *published), "/.well-known/posthorn/egress.json", nil)
		var said struct{ Addresses []string }
		if err := json.Unmarshal(res.Body.Bytes(), &said); err != nil || strings.Join(said.Addresses, " ") != want {
			t.Errorf("%d %s", res.Code, res.Body)
		}
	}
}

// The numbers measure the time from acknowledgment to the first request, and only where nothing but the platform
// affected it.
func TestTheStatusPageMeasuresWhatIsPromised(t *testing.T) {
	t.Parallel()
	url := schematest.Clone(t)
	d, err := db.Open(t.Context(), url, db.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	tenant, _, err := accounts.CreateTenant(t.Context(), d, accounts.NewTenant{Name: "Acme"}, db.Author{Kind: "command"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("SET search_path = posthorn; SET ROLE posthorn_console")
	healthy, ordered := db.NewID(), db.NewID()
	for uuid, ordering := range map[id.UUID]string{healthy: "none", ordered: "strict"} {
		exec(`INSERT INTO endpoints (tenant_id, id, url, event_types, status, status_at, ordering, created_at)
			VALUES ($1, $2, 'https://a.example.com/', '{*}', 'active', now() - interval '1 hour', $3, now())`, tenant.ID.String(), uuid.String(), ordering)
	}
	deliver := func(endpoint id.UUID, took time.Duration, status int) {
		uuid, a := db.NewID(), db.NewID()
		exec("INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $2, $3, 'x', '{}', 1)", tenant.ID.String(), uuid.Time(), uuid.String())
		exec("INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status) VALUES ($1, $2, $3, $3, $4, 'x', 2)", tenant.ID.String(), uuid.Time(), uuid.String(), endpoint.String())
		exec(`INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us, tls_us, wait_us, read_us, total_us, url, format, signature)
			VALUES ($1, $2, $3, $4, $5, 1, $6, 0, 0, 0, 0, 0, 0, 0, '', '', '')`, tenant.ID.String(), uuid.Time().Add(took), a.String(), uuid.String(), endpoint.String(), status)
	}
	for i := range 11 {
		deliver(healthy, time.Duration(i*10)*time.Millisecond, 200)
	}
	deliver(healthy, time.Hour, 500)
	deliver(ordered, time.Hour, 200)
	hours, err := ledger.Status(t.Context(), d, time.Now().Add(-2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	var all ledger.StatusHour
	for _, h := range hours {
		all.Measured, all.Attempts, all.OK = all.Measured+h.Measured, all.Attempts+h.Attempts, all.OK+h.OK
		all.P50, all.P99 = max(all.P50, h.P50), max(all.P99, h.P99)
	}
	if all.Measured != 11 || all.Attempts != 13 || all.OK != 12 || all.P50 < 40*time.Millisecond ||
		all.P50 > 100*time.Millisecond || all.P99 < 90*time.Millisecond || all.P99 > 101*time.Millisecond {
		t.Errorf("%+v", all)
	}
}

// The status page can be public, so not every request can query a slow database.
func TestASlowDatabaseIsAskedForTheStatusByOneAtATime(t *testing.T) {
	t.Parallel()
	url := schematest.Clone(t)
	d, err := db.Open(t.Context(), url, db.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	set(t, d, settings.Public)
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	slow := func(h http.Handler) {
		t.Helper()
		if _, err := c.Exec(t.Context(), "BEGIN; LOCK TABLE posthorn.attempts"); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		began := time.Now()
		for range 10 {
			all.Go(func() {
				if res := get(t, h, "/status", nil); res.Code != http.StatusServiceUnavailable ||
					!strings.Contains(res.Body.String(), "</html>") {
					t.Errorf("%d %.200s", res.Code, res.Body)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("ten requests took %v", took)
		}
		if _, err := c.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
	slow(server(t, d, nil))

	now := time.Now()
	kit := handlers.New(handlers.Config{
		Log:      slog.New(slog.DiscardHandler),
		Now:      time.Now,
		Sessions: handlers.NewSessions(d, base),
		BaseURL:  base,
	})
	engine := kit.NewEngine()
	kit.Mount(engine, status.Routes(status.Deps{DB: d, Now: func() time.Time { return now }}))
	if res := get(t, engine, "/status", nil); res.Code != http.StatusOK {
		t.Fatalf("%d", res.Code)
	}
	if _, err := c.Exec(t.Context(), "BEGIN; LOCK TABLE posthorn.attempts"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(5 * time.Minute)
	if res := get(t, engine, "/status", nil); res.Code != http.StatusOK {
		t.Errorf("numbers of five minutes ago: %d", res.Code)
	}
	now = now.Add(time.Hour)
	if res := get(t, engine, "/status", nil); res.Code != http.StatusServiceUnavailable {
		t.Errorf("numbers of an hour ago: %d", res.Code)
	}
}
