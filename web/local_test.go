package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/client"
	"posthorn/tools/dbtest"
	"posthorn/web/demo"
)

// openLink opens a link with a browser's cookies, and gives what it ends at.
func openLink(t *testing.T, link string) (status int, path, body string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSpace(link), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	res, err := (&http.Client{Jar: jar}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Request.URL.Path, string(text)
}

func TestALinkFromTheTerminalLandsInTheDashboardOnce(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	p := program(t, environ, Parts{Web: true})
	link := func() string {
		return succeed(t, append(slices.Clone(environ), "POSTHORN_ADDR="+strings.TrimPrefix(p.URL(), "http://")), nil, "open")
	}
	first := link()
	status, path, body := openLink(t, first)
	if status != http.StatusOK || !strings.HasPrefix(path, "/t/ten_") || !strings.Contains(body, "My organization") {
		t.Fatalf("without any tenant: %d %s %.300s", status, path, body)
	}
	if status, _, body := openLink(t, first); status != http.StatusGone || !strings.Contains(body, "local_link_gone") {
		t.Errorf("a second time: %d %.300s", status, body)
	}
	succeed(t, environ, nil, "tenant", "create", "--name", "Made by hand")
	if status, _, body := openLink(t, link()); status != http.StatusOK || !strings.Contains(body, "Made by hand") ||
		!strings.Contains(body, "My organization") {
		t.Errorf("what a command has made is not shown: %d", status)
	}
	if got := p.localLink(t.Context()); !strings.HasPrefix(got, p.URL()+"/sign-in/link?token=") {
		t.Errorf("serve prints %s", got)
	}
}

func TestThereIsNoLinkWithoutAPasswordWhereOthersCanAsk(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	for _, elsewhere := range []string{"POSTHORN_BASE_URL=https://posthorn.example.com", "POSTHORN_ADDR=:8080"} {
		if r := command(t, append(slices.Clone(environ), elsewhere), "open"); r.code != exitFailed || r.stdout != "" ||
			!strings.Contains(r.stderr, "password") {
			t.Errorf("%s: exit code %d, %s%s", elsewhere, r.code, r.stdout, r.stderr)
		}
		if r := command(t, append(slices.Clone(environ), elsewhere), "serve", "--demo"); r.code != exitFailed ||
			!strings.Contains(r.stderr, "only this machine") {
			t.Errorf("a demo with %s: exit code %d, %s", elsewhere, r.code, r.stderr)
		}
	}
	p := program(t, append(environ, "POSTHORN_BASE_URL=https://posthorn.example.com"), Parts{Web: true})
	if got := p.localLink(t.Context()); got != "" {
		t.Errorf("serve prints %s", got)
	}
	if status, _ := fetch(t, "http://"+p.main.Addr().String()+"/sign-in/link?token=x", ""); status != http.StatusNotFound {
		t.Errorf("the link's path answers %d", status)
	}
}

func TestRoutesAreListedWithWhoMayCallThem(t *testing.T) {
	t.Parallel()
	var routes []struct{ Method, Path, Access string }
	succeed(t, []string{"POSTHORN_BASE_URL=https://posthorn.example.com"}, &routes, "routes", "--json")
	access := map[string]string{}
	for _, r := range routes {
		access[r.Method+" "+r.Path] = r.Access
	}
	for route, want := range map[string]string{
		"GET /healthz":                 "everybody",
		"POST /api/v1/events":          "key events:write",
		"GET /t/:tenant_id/deliveries": "person read",
		"POST /account/password":       "person, just signed in",
		"GET /console/queue":           "operator",
		"GET /dev/mail":                "",
	} {
		if access[route] != want {
			t.Errorf("%s: %q, want %q", route, access[route], want)
		}
	}
	if text := succeed(t, nil, nil, "routes"); !strings.Contains(text, "/dev/mail") {
		t.Error("for people, on their own machine: no mails")
	}
}

// TestTheDemosDataComesFromRealDeliveries runs the demo until its good receivers have got something and its bad one
// has refused.
func TestTheDemosDataComesFromRealDeliveries(t *testing.T) {
	t.Parallel()
	receivers, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	later, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	allowed := "POSTHORN_EGRESS_ALLOW=" + receivers.Addr().String() + "," + later.Addr().String()
	p := program(t, append(newDatabase(t), allowed), Parts{Web: true, Worker: true})
	key, err := demoKey(t.Context(), p.pools[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- demo.Run(ctx, demo.Config{
			Server:    p.URL(),
			Key:       key,
			Receivers: receivers,
			Log:       slog.New(slog.DiscardHandler),
		})
	}()
	t.Cleanup(func() { stop(); <-ended })
	api, err := client.New(p.URL(), key)
	if err != nil {
		t.Fatal(err)
	}
	for started := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		seen := map[string]bool{}
		for d, err := range api.Deliveries(t.Context(), client.ListDeliveriesParams{}) {
			if err != nil {
				t.Fatal(err)
			}
			seen[string(d.Status)] = true
		}
		if seen["delivered"] && seen["retrying"] {
			break
		}
		if time.Since(started) > patience {
			t.Fatalf("only %v", seen)
		}
	}
	theDemoMoves(t, api, demo.Config{Server: p.URL(), Key: key, Receivers: later, Log: slog.New(slog.DiscardHandler)})
	again, err := demoKey(t.Context(), p.pools[0])
	if err != nil || again == key {
		t.Fatalf("a later start: %v", err)
	}
	var list []struct{ Name string }
	succeed(t, []string{"POSTHORN_DATABASE_URL=" + p.Config.DatabaseURL.Reveal(), "POSTHORN_MASTER_KEY=" + testMasterKey}, &list, "tenant", "list", "--json")
	if len(list) != 1 || list[0].Name != demoTenant {
		t.Errorf("the tenants: %v", list)
	}
}

func TestOpenPrintsNoLinkThatTheServerDoesNotAccept(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	p := program(t, append(slices.Clone(environ), "POSTHORN_MAIL=smtp", "POSTHORN_SMTP_URL=smtp://127.0.0.1:1", "POSTHORN_MAIL_FROM=a@example.com"), Parts{Web: true})
	r := command(t, append(slices.Clone(environ), "POSTHORN_ADDR="+strings.TrimPrefix(p.URL(), "http://")), "open")
	if r.code != exitFailed || r.stdout != "" || !strings.Contains(r.stderr, "sign in with a password") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

func TestACommandThatReadsCreatesNoDatabase(t *testing.T) {
	t.Parallel()
	empty := dbtest.Clone(t, "", nil)
	for _, args := range [][]string{{"tenant", "list"}, {"tenant", "list", "--json"}, {"open"}, {"migrate", "status"}} {
		dir := filepath.Join(t.TempDir(), "scratch")
		r := command(t, append(slices.Clone(anyPorts), "POSTHORN_DATA_DIR="+dir), args...)
		if r.code != exitFailed || r.stdout != "" || !strings.Contains(r.stderr, "no Posthorn installation in "+dir) {
			t.Errorf("%v: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%v made %s", args, dir)
		}
		if args[0] == "migrate" {
			continue // of a database that somebody made it says what is missing
		}
		r = command(t, append(databaseEnvironment(empty), anyPorts...), args...)
		if r.code != exitFailed || r.stdout != "" || !strings.Contains(r.stderr, "no Posthorn installation in the database") {
			t.Errorf("%v: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

// theDemoMoves starts the demo at another address: the endpoints of the first start follow it.
func theDemoMoves(t *testing.T, api *client.Client, c demo.Config) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- demo.Run(ctx, c)
	}()
	t.Cleanup(func() { stop(); <-ended })
	eventually(t, "all endpoints are at the new address and active", func() bool {
		for e, err := range api.Endpoints(t.Context(), client.ListEndpointsParams{}) {
			if err != nil || !strings.HasPrefix(e.URL, "http://"+c.Receivers.Addr().String()+"/") || e.Status != "active" {
				return false
			}
		}
		return true
	})
}

func TestTheDemosAddressIsOneOfThisMachine(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"0.0.0.0:9100", "192.0.2.1:9100", "127.0.0.1", "127.0.0.1:0", "localhost:9100"} {
		if r := command(t, []string{"POSTHORN_DEMO_ADDR=" + wrong}, "serve", "--demo"); r.code != exitUsage || !strings.Contains(r.stderr, "POSTHORN_DEMO_ADDR") {
			t.Errorf("%s: exit code %d, %s", wrong, r.code, r.stderr)
		}
	}
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = used.Close() })
	if r := command(t, []string{"POSTHORN_DEMO_ADDR=" + used.Addr().String()}, "serve", "--demo"); r.code != exitFailed || !strings.Contains(r.stderr, "set POSTHORN_DEMO_ADDR") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
}
