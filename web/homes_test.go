package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/tools/schematest"
)

// someHome is one of the homes of a test: a program and a tenant of it.
type someHome struct {
	*Program
	environ     []string
	admin       string // URL for a superuser of its database's server, if that replicates
	tenant, key string
}

// newHomes runs a home for each name, with its own database and a tenant.
func newHomes(t *testing.T, names ...string) []*someHome {
	t.Helper()
	return newHomesOf(t, Parts{Web: true}, names...)
}

func newHomesOf(t *testing.T, parts Parts, names ...string) []*someHome {
	t.Helper()
	urls := make([]string, len(names))
	for i := range urls {
		urls[i] = schematest.Clone(t)
	}
	return newHomesOn(t, parts, urls, names...)
}

// newHomesOn runs them on databases that are given.
func newHomesOn(t *testing.T, parts Parts, urls []string, names ...string) []*someHome {
	t.Helper()
	ports, list := make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		ports[i] = freeAddress(t)
		list[i] = name + "=http://" + ports[i]
	}
	homes := make([]*someHome, len(names))
	for i, name := range names {
		h := &someHome{environ: append(databaseEnvironment(urls[i]), "POSTHORN_ADDR="+ports[i], "POSTHORN_HOME="+name,
			"POSTHORN_HOMES="+strings.Join(list, ","), "POSTHORN_TRUSTED_PROXIES=127.0.0.1", "POSTHORN_EGRESS_ALLOW=127.0.0.0/8")}
		if i > 0 {
			h.environ = append(h.environ, "POSTHORN_MASTER_KEY="+secondHomeKey)
		}
		h.Program = program(t, h.environ, parts)
		var made struct {
			Tenant string `json:"tenant_id"`
			Key    string `json:"api_key"`
		}
		succeed(t, h.environ, &made, "tenant", "create", "--name", "Of "+name, "--external-id", "customer-"+name, "--json")
		h.tenant, h.key = made.Tenant, made.Key
		homes[i] = h
	}
	return homes
}

// gives makes a home think that a tenant with some keys and tokens has moved to another, and waits until it knows.
func (h *someHome) gives(t *testing.T, to string, tenant id.UUID, tokens ...string) {
	t.Helper()
	var hashes [][]byte
	for _, token := range tokens {
		hashes = append(hashes, accounts.HashToken(token))
	}
	h.exec(t, "INSERT INTO moved_tenants (tenant_id, home, external_id, hashes) VALUES ($1, $2, $3, $4)", tenant, to, "customer-"+to, hashes)
	until(t, "the home knows where the tenant is", func() bool {
		return visit(t, h.at()+"/t/"+id.Tenant.Format(tenant)).header.Get("Location") != "" &&
			!strings.Contains(visit(t, h.at()+"/t/"+id.Tenant.Format(tenant)).header.Get("Location"), "sign-in")
	})
}

type answer struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, method, url, key, body string, header ...string) answer {
	t.Helper()
	return asker{t, http.DefaultClient}.request(method, url, key, body, header...)
}

// asker makes requests.
type asker struct {
	t      *testing.T
	client *http.Client
}

func (c asker) request(method, url, key, body string, header ...string) answer {
	t, client := c.t, c.client
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(text)}
}

const anEvent = `{"type":"order.completed","data":{"n":1}}`

// A home forwards programs' requests for a tenant that has moved, as they are, and the home of the tenant authenticates
// them. Of other tenants it knows nothing, and asks nobody.
func TestAHomeForwardsRequestsForTenantsThatHaveMoved(t *testing.T) {
	t.Parallel()
	homes := newHomes(t, "eu1", "eu2")
	one, two := homes[0], homes[1]
	if !strings.HasPrefix(one.key, "phk_eu1_") || !strings.HasPrefix(two.key, "phk_eu2_") {
		t.Fatalf("keys do not name their homes: %.12s %.12s", one.key, two.key)
	}
	if got := ask(t, "POST", one.URL()+"/api/v1/events", two.key, anEvent); got.status != http.StatusUnauthorized || got.header.Get("Posthorn-Home") != "eu1" {
		t.Errorf("a key of another home: %d by %s", got.status, got.header.Get("Posthorn-Home"))
	}
	one.gives(t, "eu2", uuidOf(t, id.Tenant, two.tenant), two.key)
	for _, request := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/api/v1/events", anEvent, http.StatusAccepted},
		{"GET", "/api/v1/events?limit=1", "", http.StatusOK},
		{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, http.StatusOK},
		{"POST", "/api/v1/events", `{"type":"a.b","data":"` + strings.Repeat("x", 3<<20) + `"}`, http.StatusRequestEntityTooLarge},
		{"POST", "/api/v1/events", anEvent[1:], http.StatusBadRequest},
	} {
		got := ask(t, request.method, one.URL()+request.path, two.key, request.body)
		if got.status != request.status || got.header.Get("Posthorn-Home") != "eu2" || len(got.header.Values("Posthorn-Home")) != 1 {
			t.Errorf("%s %s: %d by %v %.300s", request.method, request.path, got.status, got.header["Posthorn-Home"], got.body)
		}
	}
	if got := ask(t, "POST", one.URL()+"/api/v1/events", one.key, anEvent); got.status != http.StatusAccepted || got.header.Get("Posthorn-Home") != "eu1" {
		t.Errorf("a tenant that has stayed: %d by %s", got.status, got.header.Get("Posthorn-Home"))
	}
	if got := ask(t, "POST", one.URL()+"/api/v1/events", "phk_eu2_"+strings.Repeat("c", 49), anEvent); got.status != http.StatusUnauthorized || got.header.Get("Posthorn-Home") != "eu1" {
		t.Errorf("an invented key: %d by %s", got.status, got.header.Get("Posthorn-Home"))
	}
}

// People are redirected to the same page of the home of their tenant. A form that was open there leads to the tenant's
// page, since the browser is not signed in there.
func TestAHomeRedirectsPeopleOfTenantsThatHaveMoved(t *testing.T) {
	t.Parallel()
	homes := newHomes(t, "eu1", "eu2")
	one, two := homes[0], homes[1]
	one.gives(t, "eu2", uuidOf(t, id.Tenant, two.tenant), "a-token")
	for path, want := range map[string]string{
		"/t/" + two.tenant + "/events?q=x":    "/t/" + two.tenant + "/events?q=x",
		"/sso/" + two.tenant:                  "/sso/" + two.tenant,
		"/portal?token=a-token":               "/portal?token=a-token",
		"/invitations/accept?token=a-token":   "/invitations/accept?token=a-token",
		"/shared/" + two.tenant + "/anything": "/shared/" + two.tenant + "/anything",
	} {
		if got := visit(t, one.URL()+path); got.status != http.StatusFound || got.header.Get("Location") != two.at()+want {
			t.Errorf("%s: %d to %q", path, got.status, got.header.Get("Location"))
		}
	}
	if got := (asker{t, stay}).request("POST", one.URL()+"/t/"+two.tenant+"/endpoints", "", "a=b", "Accept", "text/html"); got.status != http.StatusSeeOther ||
		got.header.Get("Location") != two.at()+"/t/"+two.tenant {
		t.Errorf("a form: %d to %q", got.status, got.header.Get("Location"))
	}
	for _, path := range []string{"/t/" + one.tenant, "/portal?token=another", "/sign-in", "/docs", "/healthz"} {
		if got := visit(t, one.URL()+path); strings.HasPrefix(got.header.Get("Location"), two.at()) {
			t.Errorf("%s leads to %s", path, got.header.Get("Location"))
		}
	}
}

// No home speaks for another: a key opens only what its home says, a platform key goes to no other home, and nobody who
// has no key learns which tenants have moved.
func TestNoHomeVouchesForAKey(t *testing.T) {
	t.Parallel()
	homes := newHomes(t, "eu1", "eu2")
	one, two := homes[0], homes[1]
	var event struct{ ID string }
	if err := json.Unmarshal([]byte(ask(t, "POST", two.URL()+"/api/v1/events", two.key, anEvent).body), &event); err != nil {
		t.Fatal(err)
	}
	one.gives(t, "eu2", uuidOf(t, id.Tenant, two.tenant), two.key)
	var own, other struct {
		APIKey string `json:"api_key"`
	}
	succeed(t, one.environ, &own, "key", "create", "--platform", "--scopes", "all", "--json")
	succeed(t, two.environ, &other, "key", "create", "--platform", "--scopes", "all", "--json")
	path := "/api/v1/tenants/" + two.tenant + "/events/" + event.ID
	for _, try := range []struct {
		name, path, key, by string
		status              int
		text                string
	}{
		{"another tenant's event", "/api/v1/events/" + event.ID, one.key, "eu1", http.StatusNotFound, ""},
		{"another tenant's path", path, one.key, "eu2", http.StatusUnauthorized, "key_unknown"},
		{"a platform key of the home that it left", path, own.APIKey, "eu1", http.StatusConflict, "tenant_moved"},
		{"the same, by the external id", "/api/v1/tenants/customer-eu2", own.APIKey, "eu1", http.StatusConflict, two.at()},
		{"a platform key of the tenant's home", path, other.APIKey, "eu2", http.StatusOK, event.ID},
		{"a forged platform key of this home", path, "php_eu1_" + strings.Repeat("a", 49), "eu1", http.StatusUnauthorized, "key_unknown"},
		{"a forged platform key of no home", path, "php_" + strings.Repeat("a", 49), "eu1", http.StatusUnauthorized, "key_unknown"},
		{"a forged platform key of the other home", path, "php_eu2_" + strings.Repeat("a", 49), "eu2", http.StatusUnauthorized, "key_unknown"},
		{"no key", path, "", "eu2", http.StatusUnauthorized, ""},
		{"the tenant's key", "/api/v1/events/" + event.ID, two.key, "eu2", http.StatusOK, event.ID},
		{"the tenant's key at a path of platform keys", path, two.key, "eu2", http.StatusForbidden, "platform_key_required"},
		{"Svix's API with the other home's platform key", "/svix/api/v1/app/" + two.tenant, other.APIKey, "eu2", http.StatusOK, "Of eu2"},
	} {
		got := ask(t, "GET", one.URL()+try.path, try.key, "", "Posthorn-Passage", "eyJmIjoiZXUxIn0.AA", "X-Forwarded-For", "203.0.113.9")
		if got.status != try.status || got.header.Get("Posthorn-Home") != try.by || !strings.Contains(got.body, try.text) {
			t.Errorf("%s: %d by %s %s", try.name, got.status, got.header.Get("Posthorn-Home"), got.body)
		}
	}
	// Homes that disagree about a tenant end the request.
	two.gives(t, "eu1", id.UUID{9}, "phk_eu1_"+strings.Repeat("d", 49))
	one.exec(t, "UPDATE moved_tenants SET hashes = hashes || $1, moved_at = clock_timestamp()", [][]byte{accounts.HashToken("phk_eu1_" + strings.Repeat("d", 49))})
	until(t, "a request does not go in a circle", func() bool {
		got := ask(t, "GET", one.URL()+"/api/v1/events", "phk_eu1_"+strings.Repeat("d", 49), "")
		return got.status == http.StatusServiceUnavailable && strings.Contains(got.body, "home_loop")
	})
}

// The home of the tenant sees the client, and not the home in between; what the client claims is not believed.
func TestTheClientsAddressSurvivesAHome(t *testing.T) {
	t.Parallel()
	homes := newHomes(t, "eu1", "eu2")
	one, two := homes[0], homes[1]
	one.gives(t, "eu2", uuidOf(t, id.Tenant, two.tenant), two.key)
	if got := ask(t, "POST", one.URL()+"/api/v1/keys", two.key, `{"name":"k","scopes":["events:read"]}`, "X-Forwarded-For", "192.0.2.1, 198.51.100.7"); got.status != http.StatusCreated {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := ask(t, "GET", two.URL()+"/api/v1/audit-log?action=key.created", two.key, ""); !strings.Contains(got.body, `"198.51.100.7"`) || strings.Contains(got.body, "192.0.2.1") {
		t.Errorf("the audit log names another address: %s", got.body)
	}
}

// A database remembers which home it is, so that two homes never have the same tenants.
func TestADatabaseIsOneHome(t *testing.T) {
	t.Parallel()
	h := newHomes(t, "eu1", "eu2")[0]
	environ := append(slices.Clone(h.environ), "POSTHORN_ADDR=127.0.0.1:0", "POSTHORN_HOME=eu2")
	cfg, err := loadConfig(append(slices.Clone(anyPorts), environ...))
	if err != nil {
		t.Fatal(err)
	}
	p := &Program{Config: cfg, Parts: Parts{Web: true}, Log: silent}
	if err := p.Run(t.Context()); !fault.Is(err, "home_other") {
		t.Errorf("a process of eu2 on the database of eu1: %v", err)
	}
}

// A home that is down affects only its own tenants, and recovers by itself.
func TestAHomeThatIsDownConcernsItsOwnTenantsAlone(t *testing.T) {
	t.Parallel()
	homes := newHomes(t, "eu1", "eu2")
	one, two := homes[0], homes[1]
	one.gives(t, "eu2", uuidOf(t, id.Tenant, two.tenant), two.key)
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		began := time.Now()
		got := ask(t, "POST", one.URL()+"/api/v1/events", two.key, anEvent)
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "home_unavailable") {
			t.Errorf("for a tenant of the home that is down: %d %s", got.status, got.body)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		if got := ask(t, "POST", one.URL()+"/api/v1/events", one.key, anEvent); got.status != http.StatusAccepted {
			t.Errorf("for a tenant of its own: %d %s", got.status, got.body)
		}
	}
	program(t, two.environ, Parts{Web: true})
	until(t, "events are accepted again", func() bool {
		return ask(t, "POST", one.URL()+"/api/v1/events", two.key, anEvent).status == http.StatusAccepted
	})
}

func TestTheSettingsOfTheHomesPageAreTaken(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/ops/homes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```sh\n")
	block, _, _ := strings.Cut(rest, "```")
	lines := strings.Split(strings.TrimSpace(block), "\n")
	cfg, err := loadConfig(lines)
	if err != nil || cfg.Home != "eu1" || len(cfg.Others) != 1 || cfg.Others[0].URL.String() != "https://eu2.example.com" {
		t.Errorf("%q: %+v %v", lines, cfg.Others, err)
	}
	_, rest, _ = strings.Cut(rest, "posthorn tenant move ")
	typed, _, _ := strings.Cut(rest, "\n")
	args := append([]string{"tenant", "move"}, strings.Fields(typed)...)
	if r := command(t, []string{"POSTHORN_DATABASE_URL=postgres://u@h/d"}, args...); !strings.Contains(r.stderr, toDatabaseVariable) {
		t.Errorf("%q is not taken: %s", typed, r.stderr)
	}
}
