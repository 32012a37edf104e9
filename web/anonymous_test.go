package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/auth"
	"posthorn/handlers/mailbox"
	"posthorn/handlers/svix"
)

// hasty are limits that a test can wait for.
var hasty = limits{Request: 2 * time.Second, Response: 30 * time.Second}

// programWithin is a web process with its own limits, behind a proxy at 127.0.0.1 that names its clients.
func programWithin(t *testing.T, within limits, environ []string) *Program {
	t.Helper()
	cfg, err := loadConfig(append(append(slices.Clone(anyPorts), "POSTHORN_TRUSTED_PROXIES=127.0.0.1"), environ...))
	if err != nil {
		t.Fatal(err)
	}
	p := &Program{Config: cfg, Parts: Parts{Web: true}, Log: silent, limits: within}
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// stalled is a connection that has sent the head of a request and one byte of its body. more are further header lines.
func stalled(t *testing.T, url, method, path, client string, more ...string) net.Conn {
	t.Helper()
	lines := append([]string{
		method + " " + path + " HTTP/1.1", "Host: " + strings.TrimPrefix(url, "http://"), "X-Forwarded-For: " + client,
		"Content-Length: 10000", "Sec-Fetch-Site: same-origin",
	}, more...)
	c, _ := dial(t, url, strings.Join(lines, "\r\n")+"\r\n\r\na")
	return c
}

// status is the status of the response on a connection, or 0 if it was closed without one.
func statusOf(c net.Conn) int {
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	return res.StatusCode
}

// everyRoute is the whole table, with what the configuration can switch on.
func everyRoute() []handlers.Route {
	return table(routed{
		ready:     &readiness{},
		auth:      auth.Deps{Now: time.Now, Local: true},
		mailbox:   mailbox.Deps{Development: true, CronSecret: "secret"},
		operators: &auth.SSO{},
		svix:      &svix.Deps{},
	})
}

// documented waits until a server has rendered its documentation: the first request does it, and with the race detector
// on a busy machine it takes longer than a request can.
func documented(t *testing.T, url string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/docs", nil)
	until(t, "the documentation is rendered", func() bool {
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// A body that never ends is ended by the server on every path: for strangers and with a key, here and on the way to
// another home.
func TestEveryRouteEndsABodyThatStalls(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer other.Close()
	address := freeAddress(t)
	environ := append(newDatabase(t), "POSTHORN_ADDR="+address, "POSTHORN_HOME=eu1",
		"POSTHORN_HOMES=eu1=http://"+address+",eu2="+other.URL, "POSTHORN_CRON_SECRET="+strings.Repeat("s", 40))
	p := programWithin(t, hasty, environ)
	documented(t, p.URL())
	var made struct {
		Key string `json:"api_key"`
	}
	moved := "phk_eu1_" + strings.Repeat("a", 49)
	h := &someHome{Program: p}
	h.gives(t, "eu2", id.UUID{7}, moved, "a-token")
	succeed(t, environ, &made, "tenant", "create", "--name", "Acme", "--json")
	type try struct {
		name string
		c    net.Conn
	}
	var all []try
	for i, r := range everyRoute() {
		for name, header := range map[string]string{
			"a stranger":              "X-None: 1",
			"a key":                   "Authorization: Bearer " + made.Key,
			"a key of another home's": "Authorization: Bearer " + moved,
		} {
			client := fmt.Sprintf("198.51.%d.%d", 100+len(name), i%250)
			c := stalled(t, p.URL(), r.Method, r.Path, client, header)
			all = append(all, try{r.Method + " " + r.Path + " by " + name, c})
		}
	}
	for _, path := range []string{"/no-such-path", "/inbox/a-token", "/api/v1/tenants/" + id.Tenant.Format(id.UUID{7}) + "/events/batch"} {
		all = append(all, try{"POST " + path, stalled(t, p.URL(), "POST", path, "198.51.1.1")})
	}
	// The deadline is two seconds, and two more where the request is rejected first. A busy machine's time comes on
	// top.
	late := time.Now().Add(patience / 2)
	var wait sync.WaitGroup
	for _, one := range all {
		wait.Go(func() {
			_ = one.c.SetReadDeadline(late)
			if _, err := io.Copy(io.Discard, one.c); isTimeout(err) {
				t.Errorf("%s: the connection is still open", one.name)
			}
		})
	}
	wait.Wait()
	if len(all) < 600 {
		t.Errorf("only %d requests", len(all))
	}
}

func isTimeout(err error) bool {
	var slow net.Error
	return errors.As(err, &slow) && slow.Timeout()
}

// Strangers of one network fill their own share. Requests with a key and strangers elsewhere go on as before.
func TestStrangersFillNothingButTheShareOfTheirNetwork(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	p := programWithin(t, limits{Request: patience, Response: patience}, environ)
	platform := platformKey(t, environ)
	const here, there = "203.0.113.7", "203.0.113.8"
	for range 256 { // of 32 KiB each: the 8 MiB of a network
		stalled(t, p.URL(), "POST", "/sign-in", here)
	}
	eventually(t, "the share of the network is in use", func() bool {
		c := stalled(t, p.URL(), "POST", "/theme", here)
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		return statusOf(c) == http.StatusTooManyRequests
	})
	form := []string{"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}
	send := func(from string) answer {
		return ask(t, "POST", p.URL()+"/sign-in", "", "email=a@example.com&password=x", append(form, "X-Forwarded-For", from)...)
	}
	if got := send(here); got.status != http.StatusTooManyRequests || !strings.Contains(got.body, "network_busy") {
		t.Errorf("a sign-in from the same network: %d %s", got.status, got.body)
	}
	if got := send(there); got.status != http.StatusBadRequest {
		t.Errorf("a sign-in from another network: %d %s", got.status, got.body)
	}
	if got := ask(t, "POST", p.URL()+"/svix/api/v1/app", platform, `{"name":"A","uid":"a"}`, "X-Forwarded-For", here); got.status != http.StatusCreated {
		t.Errorf("Svix's API with a key, from the same network: %d %s", got.status, got.body)
	}
}

// Svix's API rejects a request without a key before any of its body is read, in Svix's form.
func TestSvixRoutesKnowTheKeyBeforeTheyReadABody(t *testing.T) {
	t.Parallel()
	p := program(t, newDatabase(t), Parts{Web: true})
	for _, auth := range []string{"X-None: 1", "Authorization: Bearer phk_" + strings.Repeat("x", 49)} {
		c, answers := dial(t, p.URL(), "POST /svix/api/v1/app HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1048576\r\n"+auth+"\r\n\r\n")
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = c.Close()
		if res.StatusCode != http.StatusUnauthorized || !strings.Contains(string(text), `"authentication_failed"`) {
			t.Errorf("%d %s", res.StatusCode, text)
		}
	}
	for _, r := range svix.Routes(svix.Deps{}) {
		if r.Access.Public && r.Method != http.MethodGet && r.Path != "/svix/api/v1/auth/logout" {
			if got := ask(t, r.Method, p.URL()+r.Path, "", "{}"); got.status != http.StatusBadRequest {
				t.Errorf("%s %s is open to everybody: %d", r.Method, r.Path, got.status)
			}
		}
	}
}

// Strangers, however many and slow, take no slot between homes that a request with a key needs, and those of one
// network take a part of the strangers' slots. An invented key is a stranger's.
func TestStrangersTakeNoSlotsOfKeysBetweenHomes(t *testing.T) {
	t.Parallel()
	let, inside := make(chan struct{}), atomic.Int64{}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.Contains(r.URL.Path, "held") {
			inside.Add(1)
			<-let
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(other.Close)
	address := freeAddress(t)
	p := programWithin(t, limits{Request: patience, Response: patience}, append(newDatabase(t), "POSTHORN_ADDR="+address, "POSTHORN_HOME=eu1",
		"POSTHORN_HOMES=eu1=http://"+address+",eu2="+other.URL))
	key := "phk_eu1_" + strings.Repeat("a", 49)
	h := &someHome{Program: p}
	h.gives(t, "eu2", id.UUID{7}, key, "held", "slow", "free")
	emit := func() {
		t.Helper()
		got := ask(t, "POST", p.URL()+"/api/v1/events", key, anEvent, "X-Forwarded-For", "203.0.113.1")
		if got.status != http.StatusAccepted {
			t.Errorf("a request with a key: %d %s", got.status, got.body)
		}
	}
	invented := "Authorization: Bearer phk_eu1_" + strings.Repeat("b", 49)
	for i := range 600 { // slow
		stalled(t, p.URL(), "POST", "/inbox/slow", fmt.Sprintf("203.0.113.%d", 1+i%5), invented)
	}
	emit()
	held := make([]net.Conn, 0, 100)
	for range cap(held) { // whole
		c, _ := dial(t, p.URL(), "GET /inbox/held HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.1\r\n"+invented+"\r\n\r\n")
		held = append(held, c)
	}
	defer close(let)
	refused := 0
	eventually(t, "the slots of the network are in use", func() bool { return inside.Load() == 64 })
	for _, c := range held {
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if statusOf(c) == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 36 {
		t.Errorf("%d of 100 requests are refused, want those beyond 64", refused)
	}
	emit()
	if got := ask(t, "POST", p.URL()+"/inbox/free", "", "{}", "X-Forwarded-For", "203.0.113.99"); got.status != http.StatusAccepted {
		t.Errorf("a stranger of another network: %d %s", got.status, got.body)
	}
}

// A request with a Transfer-Encoding, perhaps also with a Content-Length, is the last of its connection.
func TestAChunkedRequestIsTheLastOfItsConnection(t *testing.T) {
	t.Parallel()
	p := program(t, newDatabase(t), Parts{Web: true})
	const next = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, length := range []string{"", "Content-Length: 12\r\n", "Content-Length: 5\r\n"} {
		for _, path := range []string{"/api/v1/events", "/sign-in", "/healthz", "/no-such-path", "/svix/api/v1/app"} {
			_, answers := dial(t, p.URL(), "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+length+"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"+next)
			all, err := io.ReadAll(answers)
			if n := strings.Count(string(all), "HTTP/1.1 "); n != 1 || err != nil {
				t.Errorf("%s with %q: %d responses, %v", path, length, n, err)
			}
		}
	}
	_, answers := dial(t, p.URL(), next+next+strings.Replace(next, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
	if all, _ := io.ReadAll(answers); strings.Count(string(all), "HTTP/1.1 200") != 3 {
		t.Errorf("without one: %s", all)
	}
}

// HEAD is GET without a body on every path that everybody can open, except where a GET changes something.
func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	p := program(t, append(newDatabase(t), "POSTHORN_CRON_SECRET="+strings.Repeat("s", 40)), Parts{Web: true})
	documented(t, p.URL())
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	see := func(method, path string) (int, string) {
		req, _ := http.NewRequestWithContext(t.Context(), method, p.URL()+path, nil)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(text)
	}
	changing := 0
	for _, r := range everyRoute() {
		if r.Method != http.MethodGet || r.Timeout < 0 || r.Path == "/console/sso" || r.Path == "/console/sso/callback" {
			continue
		}
		status, body := see("HEAD", r.Path)
		if r.Changes {
			changing++
			if status != http.StatusMethodNotAllowed {
				t.Errorf("HEAD %s, where a GET changes something: %d", r.Path, status)
			}
			continue
		}
		if want, _ := see("GET", r.Path); status != want || body != "" {
			t.Errorf("%s: GET %d, HEAD %d with %d bytes", r.Path, want, status, len(body))
		}
	}
	if changing < 6 {
		t.Errorf("%d routes change something by a GET", changing)
	}
}

// Many concurrent sign-ins wait in a separate queue. They get a response in time that does not blame the database, and
// a tenant's requests go on.
func TestACrowdOfSignInsTakesNoConnectionsFromTenants(t *testing.T) {
	t.Parallel()
	environ := newDatabase(t)
	p := programWithin(t, limits{}, environ)
	var made struct {
		Key string `json:"api_key"`
	}
	succeed(t, environ, &made, "tenant", "create", "--name", "Acme", "--json")
	const crowd = 400
	var wait sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	client := asker{t, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowd}}}
	for i := range crowd {
		wait.Go(func() {
			a := client.request("POST", p.URL()+"/sign-in", "", "email=nobody@example.com&password=wrong", "Content-Type", "application/x-www-form-urlencoded",
				"Sec-Fetch-Site", "same-origin", "X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", i/200, i%200))
			mu.Lock()
			got[a.status]++
			mu.Unlock()
		})
	}
	for range 20 {
		if a := ask(t, "GET", p.URL()+"/api/v1/endpoints", made.Key, ""); a.status != http.StatusOK {
			t.Errorf("a tenant's request at that time: %d %s", a.status, a.body)
		}
	}
	wait.Wait()
	served, rejected := got[http.StatusBadRequest], got[http.StatusTooManyRequests]
	if served+rejected != crowd || served == 0 || rejected == 0 {
		t.Errorf("sign-ins by status: %v", got)
	}
}

// A place in the queue is for requests that use the database: every form of strangers, and no slow sender.
func TestFormsOfStrangersWaitInTheQueue(t *testing.T) {
	t.Parallel()
	apart := map[string]bool{ // no database, or a server outside, or a bound of their own
		"/theme":                  true,
		"/sign-in/sso":            true,
		"/sso/:sso_tenant/logout": true,
		"/console/sso/logout":     true,
		"/inbox/:token":           true,
		"/unsubscribe/:token":     true,
		"/internal/sweep":         true,
	}
	for _, r := range everyRoute() {
		if r.Access.Public && r.Method == http.MethodPost && !strings.HasPrefix(r.Path, "/svix/") && r.Queued == apart[r.Path] {
			t.Errorf("%s %s: queued %t", r.Method, r.Path, r.Queued)
		}
	}
}
