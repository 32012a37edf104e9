package admin_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/handlers"
	"posthorn/handlers/admin"
	"posthorn/handlers/api"
	"posthorn/handlers/auth"
	"posthorn/tools/pagetest"
	"posthorn/tools/schematest"
)

const consoleBase = "http://127.0.0.1:8080"

// console is the console with its own database and a signed-in operator.
type console struct {
	t      *testing.T
	db     *db.DB
	sql    *pgxpool.Pool // as the console role
	engine http.Handler
	cookie *http.Cookie
	op     id.UUID
	routes []handlers.Route
}

func newConsole(t *testing.T) *console {
	t.Helper()
	w := &console{t: t, op: db.NewID()}
	dsn := schematest.Clone(t)
	var err error
	if w.db, err = db.Open(t.Context(), dsn, db.Options{MaxConns: 4}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.db.Close)
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	cfg.ConnConfig.RuntimeParams["search_path"] = "posthorn"
	if w.sql, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.sql.Close)
	w.exec("SET ROLE posthorn_console")
	ring, err := seal.NewRing(seal.Generate([32]byte{7}))
	if err != nil {
		t.Fatal(err)
	}
	sessions := handlers.NewSessions(w.db, consoleBase)
	kit := handlers.New(handlers.Config{
		DB:            w.db,
		Authenticator: handlers.NewAuthenticator(accounts.Keys{DB: w.db}, slog.New(slog.DiscardHandler), time.Now),
		Log:           slog.New(slog.DiscardHandler),
		Now:           time.Now,
		Sessions:      sessions,
		BaseURL:       consoleBase,
		Keys:          ring,
	})
	engine := kit.NewEngine()
	w.routes = admin.Routes(admin.Deps{
		DB:      w.db,
		Keys:    ring,
		Console: auth.Console{Development: true},
		Log:     slog.New(slog.DiscardHandler),
		Now:     time.Now,
		Export:  api.NewExporter(api.Deps{DB: w.db, Keys: ring, Now: time.Now}),
	})
	kit.Mount(engine, w.routes)
	w.engine = engine

	w.cookie = w.signedIn(w.op, "op@example.com")
	return w
}

// signedIn creates an operator with a session.
func (w *console) signedIn(op id.UUID, email string) *http.Cookie {
	w.t.Helper()
	w.exec("INSERT INTO operators (id, email, name, created_at) VALUES ($1, $2, 'Olga', now())", op, email)
	var token string
	if err := w.db.Account(w.t.Context(), func(q *db.Tx) (err error) {
		token, err = accounts.StartSession(w.t.Context(), q, accounts.NewSession{Operator: &op, Life: time.Hour})
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	return &http.Cookie{Name: handlers.NewSessions(w.db, consoleBase).Cookie("operator"), Value: token}
}

func (w *console) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.sql.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *console) ask(sql string, args ...any) (n int) {
	w.t.Helper()
	if err := w.sql.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (w *console) send(method, path string, form url.Values, cookie *http.Cookie) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, consoleBase+path, strings.NewReader(form.Encode()))
	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if cookie != nil {
		r.AddCookie(cookie)
	}
	res := httptest.NewRecorder()
	w.engine.ServeHTTP(res, r)
	return res
}

// page reads a page that must exist and have no faults.
func (w *console) page(path string) string {
	w.t.Helper()
	res := w.send("GET", path, nil, w.cookie)
	if res.Code != http.StatusOK {
		w.t.Fatalf("%s: %d %s", path, res.Code, res.Body)
	}
	for _, fault := range pagetest.Faults(res.Body.String()) {
		w.t.Errorf("%s: %s", path, fault)
	}
	return res.Body.String()
}

func (w *console) tenant(name string) id.UUID {
	w.t.Helper()
	row, _, err := accounts.CreateTenant(w.t.Context(), w.db, accounts.NewTenant{Name: name}, db.Author{Kind: "command"})
	if err != nil {
		w.t.Fatal(err)
	}
	return row.ID
}

// endpoint creates an endpoint with a lane, and with its health if it fails.
func (w *console) endpoint(tenant id.UUID, address, status string, failures int) id.UUID {
	w.t.Helper()
	uuid := db.NewID()
	w.exec("INSERT INTO endpoints (tenant_id, id, url, event_types, status, status_at, created_at) VALUES ($1, $2, $3, '{*}', $4, now() - interval '1 day', now())", tenant, uuid, address, status)
	w.exec("INSERT INTO lanes (endpoint_id, tenant_id, held) VALUES ($1, $2, $3)", uuid, tenant, status != "active")
	if failures > 0 {
		w.exec(`INSERT INTO endpoint_health (endpoint_id, tenant_id, consecutive_failures, breaker_state, opened_at, next_probe_at, last_failure_at)
			VALUES ($1, $2, $3, CASE WHEN $3 >= 10 THEN 1 ELSE 0 END, now(), now() + interval '1 minute', now())`, uuid, tenant, failures)
	}
	return uuid
}

// queued creates waiting deliveries and enters them in the ledger.
func (w *console) queued(tenant, endpoint id.UUID, n int, entered int) {
	w.t.Helper()
	for range n {
		w.exec("INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id) VALUES ($1, $2, $3, $4)", tenant, db.NewID(), db.NewID(), endpoint)
	}
	w.exec("INSERT INTO ledger (book_tenant, book_day, accepted, delivered, failed, canceled, expunged) VALUES (ARRAY[$1::uuid], ARRAY[(now() AT TIME ZONE 'UTC')::date], ARRAY[$2::int], '{0}', '{0}', '{0}', '{0}')", tenant, entered)
}

var paths = []string{"", "/tenants", "/deliveries", "/events", "/settings", "/egress", "/keys", "/health", "/health/endpoints", "/queue", "/alerts", "/pauses", "/outbox", "/jobs", "/mail", "/books", "/audit"}

func TestTheConsoleIsForOperatorsAlone(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	tenant := w.tenant("Acme")
	all := append([]string{"/tenants/" + id.Tenant.Format(tenant)}, paths...)
	person := db.NewID()
	w.exec("INSERT INTO people (id, email, name, password, created_at) VALUES ($1, 'a@example.com', 'A', '', now())", person)
	var token string
	if err := w.db.Account(t.Context(), func(q *db.Tx) (err error) {
		token, err = accounts.StartSession(t.Context(), q, accounts.NewSession{Person: &person, Life: time.Hour})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, cookie := range []*http.Cookie{nil, {Name: "posthorn", Value: token}, {Name: w.cookie.Name, Value: token}} {
		for _, path := range all {
			res := w.send("GET", "/console"+path, nil, cookie)
			if res.Code != http.StatusSeeOther || !strings.HasPrefix(res.Header().Get("Location"), "/console/sign-in") {
				t.Errorf("%s with %v: %d to %s", path, cookie, res.Code, res.Header().Get("Location"))
			}
		}
		res := w.send("POST", "/console/tenants/"+id.Tenant.Format(tenant)+"/suspend", url.Values{"reason": {"x"}}, cookie)
		if res.Code != http.StatusUnauthorized || w.ask("SELECT count(*) FROM tenants WHERE state = 'suspended'") != 0 {
			t.Errorf("a stranger suspended a tenant: %d", res.Code)
		}
	}
	// The session of a disabled operator opens nothing.
	w.exec("UPDATE operators SET disabled_at = now()")
	if res := w.send("GET", "/console", nil, w.cookie); res.Code != http.StatusSeeOther {
		t.Errorf("an operator who was switched off sees %d", res.Code)
	}
}

func TestPagesOfTheConsoleAreSoundEmptyAndFull(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	for _, path := range paths {
		w.page("/console" + path)
	}
	acme, umbrella := w.tenant("Acme & <Söhne>"), w.tenant("Umbrella")
	down := w.endpoint(acme, "https://down.example.com/hooks?token=s3cr3t", "active", 12)
	w.endpoint(umbrella, "https://down.example.com:8443/x", "disabled", 0)
	well := w.endpoint(umbrella, "https://well.example.com/x", "active", 0)
	w.queued(acme, down, 5, 5)
	w.queued(umbrella, well, 3, 3)
	w.exec("INSERT INTO workers (id, name) VALUES ($1, 'worker-1')", db.NewID())
	for ep, n := range map[id.UUID]int{down: 30, well: 10} {
		w.exec(`INSERT INTO endpoint_stats (tenant_id, endpoint_id, width, bucket, event_type, kind, n, us)
			SELECT tenant_id, id, 60, date_trunc('minute', now()), 'a', 0, $2::int, $2::int * 1000000 FROM endpoints WHERE id = $1`, ep, n)
	}
	for _, path := range append([]string{"/tenants/" + id.Tenant.Format(acme)}, paths...) {
		page := w.page("/console" + path)
		if strings.Contains(page, "s3cr3t") || strings.Contains(page, "<Söhne>") {
			t.Errorf("%s shows what it must not", path)
		}
	}
	for path, words := range map[string][]string{
		"":                      {"Umbrella", "1 "},
		"/tenants":              {"Acme &amp; &lt;Söhne&gt;", "Umbrella"},
		"/tenants?q=umb":        {"Umbrella"},
		"/health":               {"down.example.com", "down.example.com:8443", "well.example.com"},
		"/queue":                {"75.0%", "25.0%", "worker-1", ">failing<", "https://down.example.com/hooks"},
		"/books":                {"is accounted for"},
		"/audit":                {"tenant.created"},
		"/audit?actor=operator": {"No entries match these filters"},
	} {
		page := w.page("/console" + path)
		for _, word := range words {
			if !strings.Contains(page, word) {
				t.Errorf("%s does not show %q", path, word)
			}
		}
	}
	// What an open breaker keeps is waiting, and not ready to be sent.
	for endpoint, ready := range map[string]string{"down.example.com/hooks": "0", "well.example.com/x": "3"} {
		_, row, _ := strings.Cut(w.page("/console/queue"), `title="https://`+endpoint)
		row, _, _ = strings.Cut(row, "</tr>")
		if !regexp.MustCompile(`data-label="Ready">\s*` + ready + `\s*<`).MatchString(row) {
			t.Errorf("%s does not have %s ready: %s", endpoint, ready, row)
		}
	}
	if strings.Contains(w.page("/console/tenants?q=umb"), "Söhne") {
		t.Error("the filter shows every tenant")
	}
}

// An endpoint whose deliveries are paused makes no delivery late.
func TestOnlyDueDeliveriesAreLate(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	held, open, late := w.tenant("Held"), w.tenant("Open"), w.tenant("Late")
	w.queued(held, w.endpoint(held, "https://a.example.com/", "paused", 0), 1, 1)
	w.queued(open, w.endpoint(open, "https://b.example.com/", "active", 10), 1, 1)
	w.queued(late, w.endpoint(late, "https://c.example.com/", "active", 0), 1, 1)
	page := w.page("/console")
	if strings.Contains(page, "Held</a>") || strings.Contains(page, "Open</a>") || !strings.Contains(page, "/console/tenants/"+id.Tenant.Format(late)) {
		t.Errorf("late: %s", page)
	}
}

func TestTotalsThatDoNotAddUpComeFirst(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	good, bad := w.tenant("Good"), w.tenant("Bad")
	w.queued(good, w.endpoint(good, "https://a.example.com/", "active", 0), 3, 3)
	w.queued(bad, w.endpoint(bad, "https://b.example.com/", "active", 0), 3, 5)
	page, all := w.page("/console/books"), w.page("/console/books?show=all")
	for _, words := range []string{"The books don&#39;t balance", "1 line differs", "1 of 2 lines balanced"} {
		if !strings.Contains(page, words) || !strings.Contains(all, words) {
			t.Errorf("the books don't say %q", words)
		}
	}
	if !strings.Contains(page, ">Bad<") || strings.Contains(page, ">Good<") {
		t.Errorf("only what doesn't balance is shown at first: %s", page)
	}
	if strings.Index(all, ">Bad<") > strings.Index(all, ">Good<") {
		t.Errorf("all of the books: %s", all)
	}
	if page := w.page("/console/tenants/" + id.Tenant.Format(good)); strings.Contains(page, "Bad") {
		t.Error("a tenant's page shows another's books")
	}
}

func TestATenantIsMadeAndItsKeyShownOnce(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	res := w.send("POST", "/console/tenants", url.Values{"name": {"Acme"}}, w.cookie)
	if res.Code != http.StatusSeeOther || res.Header().Get("Location") != "/console/tenants" {
		t.Fatalf("%d to %s", res.Code, res.Header().Get("Location"))
	}
	if page := w.page("/console/tenants"); !strings.Contains(page, "phk_") || len(pagetest.Faults(page)) > 0 {
		t.Fatalf("the key is not shown: %v", pagetest.Faults(page))
	}
	if strings.Contains(w.page("/console/tenants"), "phk_") {
		t.Error("the key is shown again")
	}
	if res := w.send("POST", "/console/tenants", url.Values{"name": {" "}}, w.cookie); res.Code != http.StatusBadRequest &&
		res.Code != http.StatusUnprocessableEntity || !strings.Contains(res.Body.String(), "aria-invalid") {
		t.Errorf("an empty name: %d", res.Code)
	}
	for _, action := range []string{"tenant.created", "key.created"} {
		if n := w.ask("SELECT count(*) FROM audit_log WHERE action = $1 AND actor_kind = 'operator' AND actor_id = $2", action, id.Operator.Format(w.op)); n != 1 {
			t.Errorf("%d entries %s in the audit log", n, action)
		}
	}
}

func TestSuspendingNeedsAReasonAndIsDoneOnce(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	tenant := w.tenant("Acme")
	at := "/console/tenants/" + id.Tenant.Format(tenant)
	if res := w.send("POST", at+"/suspend", url.Values{"reason": {"  "}}, w.cookie); res.Code/100 != 4 || !strings.Contains(res.Body.String(), "Enter a reason") ||
		len(pagetest.Faults(res.Body.String())) > 0 {
		t.Errorf("without a reason: %d", res.Code)
	}
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			if res := w.send("POST", at+"/suspend", url.Values{"reason": {fmt.Sprintf("spam %d", i)}}, w.cookie); res.Code != http.StatusSeeOther ||
				res.Header().Get("Location") != at {
				t.Errorf("%d to %s", res.Code, res.Header().Get("Location"))
			}
		})
	}
	both.Wait()
	if n := w.ask("SELECT count(*) FROM audit_log WHERE action = 'tenant.suspended' AND tenant_id = $1 AND reason LIKE 'spam _'", tenant); n != 1 {
		t.Errorf("%d suspensions of one tenant", n)
	}
	if page := w.page(at); !strings.Contains(page, "Resume tenant") || !strings.Contains(page, "Acme is suspended.") {
		t.Error("the page does not say so")
	}
	if res := w.send("POST", at+"/resume", url.Values{"reason": {"fixed"}}, w.cookie); res.Code != http.StatusSeeOther || w.ask("SELECT count(*) FROM tenants WHERE state = 'active'") != 1 {
		t.Errorf("resumed: %d", res.Code)
	}
	for _, gone := range []string{id.Tenant.Format(db.NewID()), "ten_x"} {
		if res := w.send("POST", "/console/tenants/"+gone+"/suspend", url.Values{"reason": {"x"}}, w.cookie); res.Code != http.StatusNotFound {
			t.Errorf("a tenant that is gone: %d", res.Code)
		}
	}
}

func TestAFailedMailIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	mailID := db.NewID()
	w.exec("INSERT INTO mails (id, key, recipient, kind, state, tries, last_error, created_at) VALUES ($1, 'k', 'somebody@example.com', $2, 'failed', 9, 'refused', now())", mailID, string(mail.VerifyAddress))
	page := w.page("/console/mail?state=failed")
	if !strings.Contains(page, "failed") || strings.Contains(page, "somebody@example.com") {
		t.Errorf("the log of mails: %s", page)
	}
	again := "/console/mail/" + id.Mail.Format(mailID) + "/again"
	if res := w.send("POST", again, url.Values{}, w.cookie); res.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", res.Code, res.Body)
	}
	if n := w.ask("SELECT count(*) FROM mails WHERE state = 'waiting' AND tries = 0 AND key = 'k'"); n != 1 {
		t.Error("it does not wait")
	}
	if res := w.send("POST", again, url.Values{}, w.cookie); res.Code != http.StatusConflict {
		t.Errorf("twice: %d", res.Code)
	}
}

func TestListsOfTheConsoleShowEachRowOnce(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	const n = 120
	for i := range n {
		w.exec("INSERT INTO tenants (id, name, created_at) VALUES ($1, $2, now())", db.NewID(), fmt.Sprintf("tenant-%03d", i))
	}
	seen := map[string]int{}
	for path, pages := "/console/tenants?state=active", 0; path != ""; pages++ {
		page := w.page(path)
		for i := range n {
			seen[fmt.Sprintf("tenant-%03d", i)] += strings.Count(page, fmt.Sprintf(">tenant-%03d<", i))
		}
		_, rest, found := strings.Cut(page, `rel="next" href="`)
		path = ""
		if found {
			path, _, _ = strings.Cut(rest, `"`)
			path = strings.ReplaceAll(path, "&amp;", "&")
		}
		if pages > 3 {
			t.Fatal("the list does not end")
		}
	}
	for i := range n {
		if name := fmt.Sprintf("tenant-%03d", i); seen[name] != 1 {
			t.Errorf("%s is shown %d times", name, seen[name])
		}
	}
}

func TestAVisitToATenantStartsWithAReasonAndADuration(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	tenant := w.tenant("Acme")
	at := "/console/tenants/" + id.Tenant.Format(tenant)
	for _, wrong := range []url.Values{{"reason": {" "}, "minutes": {"30"}}, {"reason": {"ticket"}, "minutes": {"61"}}, {"reason": {"ticket"}}} {
		res := w.send("POST", at+"/view-as", wrong, w.cookie)
		if res.Code != http.StatusBadRequest || !strings.Contains(res.Body.String(), "aria-invalid") ||
			len(pagetest.Faults(res.Body.String())) > 0 {
			t.Errorf("%v: %d %v", wrong, res.Code, pagetest.Faults(res.Body.String()))
		}
	}
	if w.ask("SELECT count(*) FROM operator_views") != 0 {
		t.Error("a look began without a reason")
	}
	res := w.send("POST", at+"/view-as", url.Values{"reason": {"ticket 1"}, "minutes": {"60"}}, w.cookie)
	if res.Code != http.StatusSeeOther || res.Header().Get("Location") != "/t/"+id.Tenant.Format(tenant)+"/" {
		t.Fatalf("%d to %s", res.Code, res.Header().Get("Location"))
	}
	act := url.Values{"tenant": {id.Tenant.Format(tenant)}, "reason": {"they asked"}}
	for range 2 {
		if res := w.send("POST", "/console/view-as/act", act, w.cookie); res.Code != http.StatusSeeOther {
			t.Errorf("acting: %d", res.Code)
		}
	}
	act["reason"] = []string{strings.Repeat("x", 501)}
	if res := w.send("POST", "/console/view-as/act", act, w.cookie); res.Code != http.StatusBadRequest || !strings.Contains(res.Body.String(),
		act.Get("reason")) || !strings.Contains(res.Body.String(), "aria-invalid") || len(pagetest.Faults(res.Body.String())) > 0 {
		t.Errorf("acting with too long a reason: %d %v", res.Code, pagetest.Faults(res.Body.String()))
	}
	act["reason"] = []string{"they asked"}
	for _, to := range []string{at, "/console/tenants"} { // the second time there is nothing to end
		if res := w.send("POST", "/console/view-as/end", url.Values{}, w.cookie); res.Code != http.StatusSeeOther || res.Header().Get("Location") != to {
			t.Errorf("ended: %d to %s, want %s", res.Code, res.Header().Get("Location"), to)
		}
	}
	if res := w.send("POST", "/console/view-as/act", act, w.cookie); res.Header().Get("Location") != at || w.ask("SELECT count(*) FROM operator_views") != 0 {
		t.Errorf("acting in a look that is over: %d to %s", res.Code, res.Header().Get("Location"))
	}
	for action, reason := range map[string]string{"view_as.began": "ticket 1", "view_as.acting": "they asked", "view_as.ended": ""} {
		if n := w.ask("SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action = $2 AND actor_kind = 'operator' AND reason = $3", tenant, action, reason); n != 1 {
			t.Errorf("%s is entered %d times", action, n)
		}
	}
	for _, gone := range []string{id.Tenant.Format(db.NewID()), "ten_x"} {
		if res := w.send("POST", "/console/tenants/"+gone+"/view-as", url.Values{"reason": {"x"}, "minutes": {"15"}}, w.cookie); res.Code != http.StatusNotFound {
			t.Errorf("a tenant that is gone: %d", res.Code)
		}
	}
}

func TestConcurrentVisitsOfTwoOperatorsAreSeparate(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	tenant := w.tenant("Acme")
	at := "/console/tenants/" + id.Tenant.Format(tenant)
	cookies := []*http.Cookie{w.cookie, w.signedIn(db.NewID(), "second@example.com")}
	var all sync.WaitGroup
	for i := range 6 { // each of them in three tabs
		all.Go(func() {
			if res := w.send("POST", at+"/view-as", url.Values{"reason": {"ticket"}, "minutes": {"30"}}, cookies[i%2]); res.Code != http.StatusSeeOther {
				t.Errorf("%d %s", res.Code, res.Body)
			}
		})
	}
	all.Wait()
	if n := w.ask("SELECT count(*) FROM operator_views WHERE tenant_id = $1", tenant); n != 2 {
		t.Errorf("two operators have %d looks", n)
	}
	if n := w.ask("SELECT count(DISTINCT actor_id) FROM audit_log WHERE action = 'view_as.began' AND tenant_id = $1", tenant); n != 2 {
		t.Errorf("the tenant sees %d operators", n)
	}
	for i, left := range []int{1, 0} {
		if res := w.send("POST", "/console/view-as/end", url.Values{}, cookies[i]); res.Code != http.StatusSeeOther || w.ask("SELECT count(*) FROM operator_views") != left {
			t.Errorf("the end of one look: %d", res.Code)
		}
	}
}

func TestATenantsPageShowsItsUsageAndExportsItsData(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	tenant := w.tenant("Acme")
	at := "/console/tenants/" + id.Tenant.Format(tenant)
	w.exec(`UPDATE tenants SET settings = '{"limits":{"events_per_month":4000}}' WHERE id = $1`, tenant)
	w.exec("INSERT INTO books (tenant_id, day, events) VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 1234)", tenant)
	if page := w.page(at); !strings.Contains(page, "1,234 of 4,000") || !strings.Contains(page, "0 of 50") {
		t.Error("the page does not show what the tenant uses")
	}
	if res := w.send("POST", at+"/export", url.Values{"reason": {" "}}, w.cookie); res.Code != http.StatusBadRequest ||
		!strings.Contains(res.Body.String(), "Enter a reason") || len(pagetest.Faults(res.Body.String())) > 0 {
		t.Errorf("without a reason: %d", res.Code)
	}
	res := w.send("POST", at+"/export", url.Values{"reason": {"they move out"}}, w.cookie)
	if res.Code != http.StatusOK || res.Header().Get("Content-Type") != "application/zip" || !strings.HasPrefix(res.Body.String(), "PK") {
		t.Errorf("%d %v", res.Code, res.Header())
	}
	if n := w.ask("SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action = 'tenant.exported' AND actor_kind = 'operator' AND reason = 'they move out'", tenant); n != 1 {
		t.Errorf("the tenant's audit log tells of it %d times", n)
	}
	if res := w.send("POST", "/console/tenants/"+id.Tenant.Format(db.NewID())+"/export", url.Values{"reason": {"x"}}, w.cookie); res.Code != http.StatusNotFound {
		t.Errorf("a tenant that is gone: %d", res.Code)
	}
}

func TestATenantIsDeletedAfterItsDataWasExported(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	tenant := w.tenant("Acme & Co")
	w.endpoint(tenant, "https://a.example.com/", "active", 0)
	at := "/console/tenants/" + id.Tenant.Format(tenant)
	right := url.Values{"name": {"Acme & Co"}, "reason": {"they have moved out"}}
	if page := w.page(at); !strings.Contains(page, "Export it first") || strings.Contains(page, "Delete tenant") {
		t.Error("a tenant may be deleted whose data nobody has taken along")
	}
	refused := func(form url.Values, says string) {
		t.Helper()
		res := w.send("POST", at+"/delete", form, w.cookie)
		if res.Code != http.StatusBadRequest || !strings.Contains(res.Body.String(), says) ||
			len(pagetest.Faults(res.Body.String())) > 0 {
			t.Errorf("%v: %d", form, res.Code)
		}
		if w.ask("SELECT count(*) FROM tenants WHERE state = 'active'") != 1 {
			t.Fatalf("%v deletes it", form)
		}
	}
	refused(right, "Export it first")
	if res := w.send("POST", at+"/export", url.Values{"reason": {"they move out"}}, w.cookie); res.Code != http.StatusOK {
		t.Fatalf("%d", res.Code)
	}
	if page := w.page(at); !strings.Contains(page, "Delete tenant") {
		t.Error("after an export there is no form")
	}
	refused(url.Values{"name": {"Acme"}, "reason": {"x"}}, "This isn&#39;t the tenant&#39;s name")
	refused(url.Values{"name": {"Acme & Co"}, "reason": {" "}}, "Enter a reason")
	var both sync.WaitGroup
	codes, cookies := make([]int, 2), []*http.Cookie{w.cookie, w.signedIn(db.NewID(), "second@example.com")}
	for i := range codes {
		both.Go(func() { codes[i] = w.send("POST", at+"/delete", right, cookies[i]).Code })
	}
	both.Wait()
	if codes[0]+codes[1] != http.StatusSeeOther+http.StatusNotFound {
		t.Errorf("two operators at once are answered %v", codes)
	}
	if codes[1] == http.StatusSeeOther {
		w.cookie = cookies[1]
	}
	if page := w.page("/console/tenants"); !strings.Contains(page, "is deleted. Its data is erased") {
		t.Error("nobody says so")
	}
	if n := w.ask("SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action = 'tenant.deleted' AND actor_kind = 'operator' AND reason = 'they have moved out'", tenant); n != 1 {
		t.Errorf("the audit log tells of it %d times", n)
	}
	if res := w.send("GET", at, nil, w.cookie); res.Code != http.StatusNotFound {
		t.Errorf("its page: %d", res.Code)
	}
}
