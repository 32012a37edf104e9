package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/domain/fault"
	"posthorn/domain/mcp"
	"posthorn/handlers/auth"
	"posthorn/handlers/dashboard"
	"posthorn/handlers/docs"
	"posthorn/handlers/mailbox"
)

// program is a Posthorn in the test's process, closed with the test.
func program(t *testing.T, environ []string, parts Parts) *Program {
	t.Helper()
	cfg, err := loadConfig(append(slices.Clone(anyPorts), environ...))
	if err != nil {
		t.Fatal(err)
	}
	p := &Program{Config: cfg, Parts: parts, Log: silent}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case err := <-p.Failed():
			t.Errorf("a part failed: %v", err)
		default:
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestNothingIsReachableAnonymouslyButHealthStylesAndSignIn(t *testing.T) {
	t.Parallel()
	open := map[string]bool{"/healthz": true, "/readyz": true}
	for _, path := range []string{
		"/", "/sign-in", "/sign-in/code", "/sign-in/link", "/sign-in/lost-device", "/sign-out", "/sign-up", "/sign-up/sent", "/verify-email", "/reset", "/reset/sent", "/reset/new", "/change-email", "/invitations/accept", "/portal/open",
		"/sign-in/sso", "/sso/:sso_tenant", "/sso/:sso_tenant/again", "/sso/:sso_tenant/callback", "/sso/:sso_tenant/logout",
		"/sign-in/passkey", "/sign-in/passkey/options", "/console/sign-in/passkey", "/console/sign-in/passkey/options",
		"/console/sso", "/console/sso/callback", "/console/sso/logout",
		"/console/sign-in", "/console/sign-in/code", "/console/sign-out", "/console/setup", "/console/setup/totp",
		"/unsubscribe/:token", "/internal/sweep", "/dev/mail", "/dev/mail/:mail_id", "/dev/mail/:mail_id/html", "/inbox/:token",
		"/status", "/shared/:tenant_id", "/links/:token", "/.well-known/posthorn/egress.json",
		"/.well-known/posthorn/tenants/:tenant_id/jwks.json", "/.well-known/http-message-signatures-directory",
		"/.well-known/oauth-protected-resource/mcp/:tenant_id",
	} {
		open[path] = true
	}
	for _, r := range lookRoutes() {
		open[r.Path] = true
	}
	for _, r := range docs.Routes(docs.Deps{}) {
		open[r.Path] = true
	}
	seen := map[string]bool{}
	for _, r := range table(routed{
		ready:     &readiness{},
		auth:      auth.Deps{Now: time.Now, Local: true},
		mailbox:   mailbox.Deps{Development: true, CronSecret: "secret"},
		operators: &auth.SSO{},
	}) {
		name := r.Method + " " + r.Path
		if seen[name] {
			t.Errorf("%s stands in the table twice", name)
		}
		seen[name] = true
		if r.Access.Public != open[r.Path] {
			t.Errorf("%s: public %t", name, r.Access.Public)
		}
		ofAPI, page := strings.HasPrefix(r.Path, "/api/v1/"), r.Access.Session || r.Access.Operator
		ofAPI = ofAPI || strings.HasPrefix(r.Path, mcp.Root)
		if !r.Access.Public && ofAPI == page {
			t.Errorf("%s: of the API %t, asks for a session %t", name, ofAPI, page)
		}
		if inTenant := strings.HasPrefix(r.Path, dashboard.Root); inTenant &&
			(!r.Access.Session || r.Access.Action == "") {
			t.Errorf("%s does not say what the role must allow", name)
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d routes were looked at", len(seen))
	}
}

func TestPathsThatNoRouteNamesAre404AndOneLabel(t *testing.T) {
	t.Parallel()
	p := program(t, newDatabase(t), Parts{Web: true})
	for _, path := range []string{"/metrics", "/debug/pprof/", "/api/v1/../../metrics", "/API/v1/events", "/healthz/", "/" + strings.Repeat("a", 500)} {
		if status, body := fetch(t, p.URL()+path, ""); status != http.StatusNotFound || !strings.Contains(body, `"no_such_path"`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, method := range []string{"BREW", http.MethodOptions} {
		req, _ := http.NewRequestWithContext(t.Context(), method, p.URL()+"/healthz", nil)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	_, metrics := fetch(t, p.MetricsURL(), "")
	if !strings.Contains(metrics, `posthorn_http_requests_total{method="other",route="unmatched",status="404"} 6`) ||
		strings.Contains(metrics, "BREW") || strings.Contains(metrics, "aaaa") {
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, "posthorn_http_requests_total") {
				t.Error(line)
			}
		}
	}
}

func TestProfilesAreOnTheMetricsAddressAlone(t *testing.T) {
	t.Parallel()
	p := program(t, newDatabase(t), Parts{Web: true})
	base := strings.TrimSuffix(p.MetricsURL(), "/metrics")
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap?debug=1", "/healthz", "/readyz"} {
		if status, body := fetch(t, base+path, ""); status != http.StatusOK || body == "" {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// dial opens a connection to a program and sends a text.
func dial(t *testing.T, url, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

func TestHeadersThatAreTooLongOrTooSlowEndTheConnection(t *testing.T) {
	t.Parallel()
	p := program(t, newDatabase(t), Parts{Web: true})
	const small = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, c := range map[string]struct {
		headers string
		want    int
	}{
		"30 KiB":       {"X-Long: " + strings.Repeat("x", 30<<10) + "\r\n", http.StatusOK},
		"33 KiB":       {"X-Long: " + strings.Repeat("x", 33<<10) + "\r\n", http.StatusRequestHeaderFieldsTooLarge},
		"1 MiB":        {"X-Long: " + strings.Repeat("x", 1<<20) + "\r\n", http.StatusRequestHeaderFieldsTooLarge},
		"400 values":   {strings.Repeat("X-Many: x\r\n", 400), http.StatusOK},
		"501 values":   {strings.Repeat("X-Many: x\r\n", 501), http.StatusRequestHeaderFieldsTooLarge},
		"3,000 values": {strings.Repeat("a:\r\n", 3000), http.StatusRequestHeaderFieldsTooLarge},
	} {
		for _, before := range []string{"", small} { // on a new connection, and on one that was used
			connection, responses := dial(t, p.URL(), before)
			if before != "" {
				res, err := http.ReadResponse(responses, nil)
				if err != nil || res.StatusCode != http.StatusOK {
					t.Fatalf("%+v, %v", res, err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
			}
			_, _ = io.WriteString(connection, "GET /healthz HTTP/1.1\r\nHost: x\r\n"+c.headers+"\r\n")
			res, err := http.ReadResponse(responses, nil)
			if err != nil {
				if len(c.headers) < 1<<20 { // of which it may close before all was sent
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if res.StatusCode != c.want {
				t.Errorf("%s: %s, want %d", name, res.Status, c.want)
			}
			if body, _ := io.ReadAll(res.Body); c.want != http.StatusOK && !res.Close {
				t.Errorf("%s: the connection stays open: %s", name, body)
			}
		}
	}
	started := time.Now()
	_, answers := dial(t, p.URL(), "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	_, _ = io.Copy(io.Discard, answers) // until the server hangs up
	if took := time.Since(started); took < headerTime-time.Second || took > headerTime+10*time.Second {
		t.Errorf("a header that never ends was waited for %s", took)
	}
}

func TestRequestsAreLimitedInTimeAndStreamsMayLiftTheLimit(t *testing.T) {
	t.Parallel()
	lifted := make(chan error, 2)
	server := httptest.NewUnstartedServer(nil)
	server.Config = newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection := http.NewResponseController(w)
		lifted <- errors.Join(connection.SetReadDeadline(time.Time{}), connection.SetWriteDeadline(time.Time{}), connection.Flush())
	}), publicLimits, silent)
	server.Start()
	defer server.Close()
	if status, _ := fetch(t, server.URL+"/stream", ""); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if err := <-lifted; err != nil {
		t.Errorf("a handler can't reach its connection: %v", err)
	}
}

func TestRequestsOnOneConnectionEachGetTheirOwnTime(t *testing.T) {
	t.Parallel()
	p := program(t, newDatabase(t), Parts{Web: true})
	c, answers := dial(t, p.URL(), "")
	for range 3 {
		fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		res, err := http.ReadResponse(answers, nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
	}
}

func TestReadinessSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	d := openTest(t, environ)
	ready := &readiness{
		database: d,
		url:      databaseURL(t, environ),
		worker:   func() error { return fault.New(fault.Unavailable, "asleep", "It sleeps.") },
	}
	ask := func() (int, report) {
		w := httptest.NewRecorder()
		ready.serveReady(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		var r report
		if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		return w.Code, r
	}
	status, r := ask()
	if status != http.StatusServiceUnavailable || r.Status != "not_ready" || r.Checks["worker"].Detail != "It sleeps." || !r.Checks["database"].OK ||
		!r.Checks["clock"].OK || !r.Checks["migrations"].OK {
		t.Errorf("%d %+v", status, r)
	}
	ready.worker = nil
	if status, _ = ask(); status != http.StatusServiceUnavailable {
		t.Error("the answer was not kept for a moment")
	}
	ready.at = time.Time{}
	if status, r = ask(); status != http.StatusOK || r.Status != "ready" {
		t.Errorf("%d %+v", status, r)
	}
	succeed(t, environ, nil, "migrate", "down")
	ready.at, ready.schemaAt = time.Time{}, time.Time{}
	if status, r = ask(); status != http.StatusServiceUnavailable || !strings.Contains(r.Checks["migrations"].Detail, "posthorn migrate up") {
		t.Errorf("%d %+v", status, r)
	}
	ready.server = func() error { return fault.New(fault.Unavailable, "updated", "It was updated.") }
	ready.at = time.Time{}
	if status, r = ask(); status != http.StatusServiceUnavailable || r.Checks["postgres"].Detail != "It was updated." {
		t.Errorf("%d %+v", status, r)
	}
	ready.server = nil
	away, err := url.Parse(databaseURL(t, environ))
	if err != nil {
		t.Fatal(err)
	}
	away.Path = "/no_such_database"
	ready.proof.Close()
	ready.proof = db.ProofOf(away.String())
	ready.at = time.Time{}
	if status, r = ask(); status != http.StatusServiceUnavailable || r.Checks["database"].OK || r.Checks["database"].Detail == "" {
		t.Errorf("%d %+v", status, r)
	}
	ready.stop()
	if status, r = ask(); status != http.StatusServiceUnavailable || r.Status != "stopping" {
		t.Errorf("%d %+v", status, r)
	}
}

// A process that can't store events is not ready, also where all of its connections are fine.
func TestReadinessProvesThatAnEventCouldBeStored(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	d := openTest(t, environ)
	said := newOutput()
	ready := &readiness{database: d, url: databaseURL(t, environ), log: slog.New(slog.NewTextHandler(said, nil))}
	t.Cleanup(ready.stop)
	owner, err := pgx.Connect(t.Context(), databaseURL(t, environ))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close(context.Background()) })
	// All connections of the pool are in use: the check has its own.
	for range d.Pool().Config().MaxConns {
		conn, err := d.Pool().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
	}
	ask := func() report {
		ready.at = time.Time{}
		return ready.check(t.Context())
	}
	if r := ask(); r.Status != "ready" {
		t.Fatalf("%+v", r)
	}
	database := pgx.Identifier{owner.Config().Database}.Sanitize()
	for _, c := range []struct{ name, broken, fixed, says string }{
		{
			"takes no writes", "ALTER DATABASE " + database + " SET default_transaction_read_only = on",
			"BEGIN READ WRITE; ALTER DATABASE " + database + " RESET default_transaction_read_only; COMMIT", "accepts no changes",
		},
		{"lacks a right", "REVOKE INSERT ON posthorn.queue FROM posthorn_ingest", "GRANT INSERT ON posthorn.queue TO posthorn_ingest", "lack a permission"},
		{"lacks another right", "REVOKE INSERT ON posthorn.ledger FROM posthorn_ingest", "GRANT INSERT ON posthorn.ledger TO posthorn_ingest", "lack a permission"},
		{"has a role that can't use the schema", "REVOKE USAGE ON SCHEMA posthorn FROM posthorn_ingest", "GRANT USAGE ON SCHEMA posthorn TO posthorn_ingest", "lack a permission"},
		{
			"can't load a library", "CREATE OR REPLACE FUNCTION posthorn.prove_emission() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE undefined_file; END $$",
			"CREATE OR REPLACE FUNCTION posthorn.prove_emission() RETURNS timestamptz LANGUAGE sql AS 'SELECT clock_timestamp()'", "restart PostgreSQL",
		},
	} {
		ready.proof.Close() // settings of a database are those of new connections
		if _, err := owner.Exec(t.Context(), c.broken); err != nil {
			t.Fatal(c.name, err)
		}
		if r := ask(); r.Status != "not_ready" || !strings.Contains(r.Checks["database"].Detail, c.says) {
			t.Errorf("a database that %s: %+v", c.name, r)
		}
		if _, err := owner.Exec(t.Context(), c.fixed); err != nil {
			t.Fatal(c.name, err)
		}
		ready.proof.Close()
		if r := ask(); r.Status != "ready" {
			t.Errorf("a database that no longer %s: %+v", c.name, r)
		}
	}
	for _, line := range []string{"level=ERROR", "SQLSTATE 42501", "the process is ready again"} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("the log does not say %q:\n%s", line, said)
		}
	}
}

func TestClocksMayDifferByFiveSecondsAndTheDoubt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		skew, took time.Duration
		ok         bool
		says       string
	}{
		{0, 0, true, ""},
		{5 * time.Second, 0, true, ""},
		{-5 * time.Second, 0, true, ""},
		{5001 * time.Millisecond, 0, false, "5s behind the database's"},
		{-6 * time.Second, 0, false, "6s ahead of the database's"},
		{time.Hour, time.Second, false, "1h0m0s behind"},
		{5500 * time.Millisecond, time.Second, true, ""}, // the question took a second
		{5600 * time.Millisecond, time.Second, false, "5.6s behind"},
	} {
		got := clockProbe(now.Add(c.skew+c.took/2), now, c.took)
		if got.OK != c.ok || !strings.Contains(got.Detail, c.says) {
			t.Errorf("%s off, asked for %s: %+v", c.skew, c.took, got)
		}
	}
}

func TestAddressesOfAllInterfacesAreShownAsOneThatCanBeTyped(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{":0": "localhost:", "127.0.0.1:0": "127.0.0.1:", "0.0.0.0:0": "localhost:"} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(l); !strings.HasPrefix(got, want) {
			t.Errorf("%s is shown as %s", addr, got)
		}
		_ = l.Close()
	}
}

func TestAPartThatEndsByItselfIsFatal(t *testing.T) {
	t.Parallel()
	for says, result := range map[string]error{"the relay has stopped by itself": nil, "the relay has stopped: out of paper": errors.New("out of paper")} {
		p := &Program{Log: silent, failed: make(chan error, 1)}
		part := p.run("relay", func(context.Context) error { return result })
		if err := <-p.Failed(); err.Error() != says {
			t.Errorf("got %v, want %s", err, says)
		}
		part.end()
	}
	p := &Program{Log: silent, failed: make(chan error, 1)}
	p.run("relay", func(ctx context.Context) error { <-ctx.Done(); return errors.New("late") }).end()
	select {
	case err := <-p.Failed():
		t.Errorf("a part that was told to stop is fatal: %v", err)
	default:
	}
}
