package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"posthorn/tools/dbtest"
)

// fetch gets a page.
func fetch(t *testing.T, url, key string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// dataDir is a data directory that the private server's own account can reach.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != filepath.Clean(os.TempDir()) && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestServeRunsOnAFreshMachineAndStopsCleanly(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	environ := append(slices.Clone(anyPorts), "POSTHORN_DATA_DIR="+dir)
	p := launch(t, environ, "serve")
	at := p.serving()
	if status, body := fetch(t, at.URL+"/healthz", ""); status != http.StatusOK || !strings.Contains(body, `"status":"ok"`) {
		t.Errorf("healthz: %d %s", status, body)
	}
	eventually(t, "the worker is registered", func() bool { // it serves before that
		status, body := fetch(t, at.URL+"/readyz", "")
		return status == http.StatusOK && strings.Contains(body, `"worker":{"ok":true}`)
	})
	if status, body := fetch(t, at.Metrics, ""); status != http.StatusOK || !strings.Contains(body, "posthorn_build_info{") ||
		!strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics: %d %s", status, body)
	}
	// Commands reach the same cluster while it runs.
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	if status, body := fetch(t, at.URL+"/api/v1/tenant", m.APIKey); status != http.StatusOK || !strings.Contains(body, m.TenantID) {
		t.Errorf("the tenant asks for itself: %d %s", status, body)
	}
	key, err := os.Stat(filepath.Join(dir, masterKeyFile))
	if err != nil || key.Mode().Perm() != 0o600 {
		t.Errorf("the master key's file: %v, %v", key, err)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(p.stderr.String(), "PostgreSQL has stopped") || strings.Contains(p.stderr.String(), `"level":"ERROR"`) {
		t.Error("it did not stop cleanly")
	}
	// What was made is there after a restart, and for commands that start the cluster for the time being.
	var list []struct{ ID string }
	if succeed(t, environ, &list, "tenant", "list", "--json"); len(list) != 1 || list[0].ID != m.TenantID {
		t.Errorf("after the stop: %v", list)
	}
}

func TestASecondServeSharesTheDataAndTakesOver(t *testing.T) {
	t.Parallel()
	environ := append(slices.Clone(anyPorts), "POSTHORN_DATA_DIR="+dataDir(t))
	first := launch(t, environ, "serve")
	first.serving()
	second := launch(t, environ, "serve")
	at := second.serving()
	first.signal(syscall.SIGTERM)
	if code := first.exit(); code != exitOK {
		t.Errorf("the first: exit code %d", code)
	}
	second.stderr.line(t, "PostgreSQL is ready")
	eventually(t, "the second is ready with a server of its own", func() bool {
		status, _ := fetch(t, at.URL+"/readyz", "")
		return status == http.StatusOK
	})
	second.signal(syscall.SIGTERM)
	if code := second.exit(); code != exitOK {
		t.Errorf("the second: exit code %d", code)
	}
}

// eventually is dbtest.Eventually within a time that nothing takes.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	dbtest.Eventually(t, patience, what, yes)
}

func TestAPortInUseIsOneClearLine(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	for _, c := range []struct{ variable, other, advice string }{
		{"POSTHORN_ADDR", "POSTHORN_METRICS_ADDR=off", "POSTHORN_ADDR to a free address"},
		{"POSTHORN_METRICS_ADDR", "POSTHORN_ADDR=127.0.0.1:0", "or to off"},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		p := launch(t, []string{c.variable + "=" + taken, c.other, "POSTHORN_DATA_DIR=" + dir}, "serve")
		code, said := p.exit(), p.stderr.String()
		if code != exitFailed || strings.Count(said, "\n") != 1 || !strings.Contains(said, taken+" is in use") ||
			!strings.Contains(said, c.advice) {
			t.Errorf("%s: exit code %d\n%s", c.variable, code, said)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a database was made before the address was tried", c.variable)
		}
	}
}

func TestAWrongConfigurationTouchesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{{"serve"}, {"web"}, {"worker"}, {"migrate", "up"}, {"tenant", "create", "--name", "Acme"}} {
		p := launch(t, []string{"POSTHORN_DATA_DIR=" + dir, "POSTHORN_ADDR=nowhere", "POSTHORN_LOG_LEVEL=loud"}, args...)
		code, said := p.exit(), p.stderr.String()
		if code != exitUsage || !strings.Contains(said, "2 settings are wrong") || p.stdout.String() != "" {
			t.Errorf("%v: exit code %d\n%s", args, code, said)
		}
	}
	// The database of one's own needs a key of one's own.
	for _, args := range []string{"serve", "web", "worker"} {
		p := launch(t, append(slices.Clone(anyPorts), "POSTHORN_DATABASE_URL=postgres://u@127.0.0.1:1/d"), args)
		if code, said := p.exit(), p.stderr.String(); code != exitUsage || !strings.Contains(said, "POSTHORN_MASTER_KEY") ||
			!strings.Contains(said, "openssl rand -base64 32") {
			t.Errorf("%s: exit code %d\n%s", args, code, said)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a data directory was made")
	}
}

func TestWebAndWorkerRunApart(t *testing.T) {
	t.Parallel()
	environ := append(newDatabase(t), anyPorts...)
	web, worker := launch(t, environ, "web"), launch(t, environ, "worker")
	for name, c := range map[string]struct {
		url    string
		worker bool
	}{
		"web":    {web.serving().URL, false},
		"worker": {strings.TrimSuffix(worker.serving().Metrics, "/metrics"), true},
	} {
		eventually(t, "the "+name+" is ready", func() bool {
			status, body := fetch(t, c.url+"/readyz", "")
			return status == http.StatusOK && strings.Contains(body, `"worker"`) == c.worker
		})
	}
	if at := worker.serving(); at.URL != "" {
		t.Errorf("the worker serves %s", at.URL)
	}
	for name, p := range map[string]*process{"web": web, "worker": worker} {
		p.signal(syscall.SIGINT)
		if code := p.exit(); code != exitOK {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
}

// half opens a connection and sends half a request, which keeps the server busy until the other half comes.
func half(t *testing.T, url, key string) (c net.Conn, answers *bufio.Reader, rest string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	rest = `{"name":"Late"}`
	fmt.Fprintf(c, "POST /api/v1/tenants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", key, len(rest))
	// The server asks for the body once a handler reads it: the request is in hand.
	answers = bufio.NewReader(c)
	if res, err := http.ReadResponse(answers, nil); err != nil || res.StatusCode != http.StatusContinue {
		t.Fatalf("the server says %+v, %v", res, err)
	}
	return c, answers, rest
}

func platformKey(t *testing.T, environ []string) string {
	t.Helper()
	var m made
	succeed(t, environ, &m, "key", "create", "--platform", "--scopes", "all", "--json")
	return m.APIKey
}

func TestAStopFinishesTheRequestsInFlight(t *testing.T) {
	t.Parallel()
	environ := append(newDatabase(t), anyPorts...)
	key := platformKey(t, environ)
	p := launch(t, environ, "serve")
	c, answers, rest := half(t, p.serving().URL, key)
	p.signal(syscall.SIGTERM)
	p.stderr.line(t, "stopping")
	if _, err := io.WriteString(c, rest); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusCreated {
		t.Errorf("the request in hand got %s", res.Status)
	}
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestASecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	environ := append(newDatabase(t), anyPorts...)
	key := platformKey(t, environ)
	p := launch(t, append(environ, "POSTHORN_SHUTDOWN_GRACE=1h"), "serve")
	half(t, p.serving().URL, key)
	p.signal(syscall.SIGINT)
	p.stderr.line(t, "stopping")
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 143 || strings.Contains(p.stderr.String(), "posthorn has stopped") {
		t.Errorf("exit code %d", code)
	}
}

func TestALogInTextWelcomesAPersonAndSaysWhatToTypeNext(t *testing.T) {
	t.Parallel()
	environ := append(newDatabase(t), anyPorts...)
	// The link of this machine makes the first tenant: nothing else is to be typed.
	p := launch(t, append(environ, "POSTHORN_LOG_FORMAT=text"), "serve")
	p.stdout.line(t, "The link works once")
	if strings.Contains(p.stdout.String(), "tenant create") {
		t.Error("it advises to make a tenant beside the link that makes one")
	}
	p.signal(syscall.SIGTERM)
	p.exit()
	// Where mails are sent, there is no such link.
	sends := append(
		environ,
		"POSTHORN_LOG_FORMAT=text",
		"POSTHORN_MAIL=resend",
		"RESEND_API_KEY=re_test",
		"POSTHORN_MAIL_FROM=hooks@example.com",
	)
	p = launch(t, sends, "serve")
	p.stdout.line(t, "tenant create --name")
	said := p.stdout.String()
	if !strings.Contains(said, "http://127.0.0.1:") || !strings.Contains(said, "/metrics") || strings.Contains(said, "postgres://") {
		t.Error(said)
	}
	p.signal(syscall.SIGTERM)
	p.exit()
	succeed(t, environ, nil, "tenant", "create", "--name", "Acme")
	p = launch(t, sends, "serve")
	if p.stdout.line(t, "Metrics"); strings.Contains(p.stdout.String(), "tenant create") {
		t.Error("it advises to make a tenant although there is one")
	}
	p.signal(syscall.SIGTERM)
	p.exit()
}

func TestEveryLogLineOfAServerIsJSON(t *testing.T) {
	t.Parallel()
	p := launch(t, append(append(newDatabase(t), anyPorts...), "POSTHORN_LOG_LEVEL=debug", "POSTHORN_METRIC_ADDR=x"), "serve")
	p.serving()
	p.signal(syscall.SIGTERM)
	p.exit()
	if p.stdout.String() != "" {
		t.Errorf("on stdout: %s", p.stdout)
	}
	for line := range strings.Lines(p.stderr.String()) {
		var record struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level == "" || record.Msg == "" {
			t.Errorf("no record: %s", line)
		}
		if strings.Contains(line, testMasterKey) || strings.Contains(line, "postgres://") {
			t.Errorf("a secret in %s", line)
		}
	}
	if !strings.Contains(p.stderr.String(), "POSTHORN_METRIC_ADDR") {
		t.Error("the mistyped variable was not mentioned")
	}
}
