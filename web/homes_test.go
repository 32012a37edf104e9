package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/home"
	"posthorn/domain/id"
)

const homeSecret = "a secret that all homes of a test know"

// someHome is one of the homes of a test: a program and a tenant of it.
type someHome struct {
	*Program
	environ     []string
	tenant, key string
}

// newHomes runs a home for each name, with its own database and a tenant.
func newHomes(t *testing.T, names ...string) []*someHome {
	t.Helper()
	return newHomesOf(t, Parts{Web: true}, names...)
}

func newHomesOf(t *testing.T, parts Parts, names ...string) []*someHome {
	t.Helper()
	return newHomesAt(t, parts, false, names...)
}

// newHomesAt gives all homes one public address, that of the first, or each its own.
func newHomesAt(t *testing.T, parts Parts, together bool, names ...string) []*someHome {
	t.Helper()
	ports, list := make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		ports[i] = freeAddress(t)
		list[i] = name + "=http://" + ports[i]
	}
	homes := make([]*someHome, len(names))
	for i, name := range names {
		h := &someHome{environ: append(newDatabase(t), "POSTHORN_ADDR="+ports[i], "POSTHORN_HOME="+name,
			"POSTHORN_HOMES="+strings.Join(list, ","), "POSTHORN_HOME_SECRET="+homeSecret, "POSTHORN_TRUSTED_PROXIES=127.0.0.1", "POSTHORN_EGRESS_ALLOW=127.0.0.0/8")}
		if together {
			h.environ = append(h.environ, "POSTHORN_BASE_URL=http://"+ports[0])
		}
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

// Any web process accepts requests for a tenant of another home: events, lists, Svix's API.
func TestAnyHomePassesOnWhatBelongsToAnother(t *testing.T) {
	t.Parallel()
	homes := newHomes(t, "eu1", "eu2")
	one, two := homes[0], homes[1]
	if !strings.HasPrefix(one.key, "phk_eu1_") || !strings.HasPrefix(two.key, "phk_eu2_") {
		t.Fatalf("keys do not name their homes: %.12s %.12s", one.key, two.key)
	}
	for _, by := range homes {
		for _, of := range homes {
			got := ask(t, "POST", by.URL()+"/api/v1/events", of.key, anEvent)
			if got.status != http.StatusAccepted || got.header.Get("Posthorn-Home") != of.Config.Home ||
				len(got.header.Values("Posthorn-Home")) != 1 {
				t.Fatalf("through %s for %s: %d %v %s", by.Config.Home, of.Config.Home, got.status, got.header["Posthorn-Home"], got.body)
			}
			var event struct{ ID string }
			if err := json.Unmarshal([]byte(got.body), &event); err != nil {
				t.Fatal(err)
			}
			for _, reader := range homes {
				if got := ask(t, "GET", reader.URL()+"/api/v1/events/"+event.ID, of.key, ""); got.status != http.StatusOK {
					t.Errorf("read through %s: %d %s", reader.Config.Home, got.status, got.body)
				}
			}
		}
	}
	// A key from before the homes names none.
	plain := "phk_" + strings.Repeat("a", 49)
	rename(t, two, plain)
	if got := ask(t, "POST", one.URL()+"/api/v1/events", plain, anEvent); got.status != http.StatusAccepted {
		t.Errorf("a key without a home: %d %s", got.status, got.body)
	}
	if got := ask(t, "POST", one.URL()+"/api/v1/events", "phk_eu2_"+strings.Repeat("b", 49), anEvent); got.status != http.StatusUnauthorized {
		t.Errorf("an unknown key of the other home: %d %s", got.status, got.body)
	}
	if got := ask(t, "POST", one.URL()+"/api/v1/events", "phk_"+strings.Repeat("c", 49), anEvent); got.status != http.StatusUnauthorized {
		t.Errorf("an unknown key: %d %s", got.status, got.body)
	}
	// Bounds on bodies are those of the home that reads them.
	if got := ask(t, "POST", one.URL()+"/api/v1/events", two.key, `{"type":"a.b","data":"`+strings.Repeat("x", 3<<20)+`"}`); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: %d %.200s", got.status, got.body)
	}
}

// rename gives a tenant's key another text.
func rename(t *testing.T, h *someHome, text string) {
	t.Helper()
	hash := accounts.HashToken(text)
	err := h.pools[0].Console(t.Context(), func(q *db.Tx) error {
		tenant, err := id.Tenant.Parse(h.tenant)
		if err != nil {
			return err
		}
		row, _, err := accounts.MakeKey(t.Context(), q, accounts.NewKey{
			Tenant: &tenant,
			Name:   "Old",
			Scopes: access.TenantScopes(),
		})
		if err != nil {
			return err
		}
		return q.InsertKey(t.Context(), sql.InsertKeyParams{
			ID:        id.New(time.Now(), [10]byte{1}),
			TenantID:  row.Tenant,
			Name:      "Plain",
			Prefix:    text[:10],
			Hash:      hash,
			Scopes:    row.Scopes,
			CreatedAt: row.CreatedAt,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A platform key acts for tenants of all homes: its own home vouches for it.
func TestAPlatformKeyActsForTenantsOfAllHomes(t *testing.T) {
	t.Parallel()
	homes := newHomes(t, "eu1", "eu2", "us")
	one, two, three := homes[0], homes[1], homes[2]
	var key struct {
		APIKey string `json:"api_key"`
	}
	succeed(t, one.environ, &key, "key", "create", "--platform", "--scopes", "all", "--json")
	for _, by := range homes {
		for _, of := range homes {
			for _, name := range []string{of.tenant, "customer-" + of.Config.Home} {
				got := ask(t, "POST", by.URL()+"/api/v1/tenants/"+name+"/events", key.APIKey, anEvent)
				if got.status != http.StatusAccepted || got.header.Get("Posthorn-Home") != of.Config.Home {
					t.Errorf("through %s for %s: %d %s %s", by.Config.Home, name, got.status, got.header.Get("Posthorn-Home"), got.body)
				}
			}
			if got := ask(t, "GET", by.URL()+"/svix/api/v1/app/"+of.tenant, key.APIKey, ""); got.status != http.StatusOK ||
				!strings.Contains(got.body, "Of "+of.Config.Home) {
				t.Errorf("Svix's API through %s for %s: %d %s", by.Config.Home, of.Config.Home, got.status, got.body)
			}
			if got := ask(t, "POST", by.URL()+"/mcp/"+of.tenant, key.APIKey, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); got.status != http.StatusOK ||
				got.header.Get("Posthorn-Home") != of.Config.Home || !strings.Contains(got.body, "complete") {
				t.Errorf("MCP through %s for %s: %d %s", by.Config.Home, of.Config.Home, got.status, got.body)
			}
		}
	}
	// What a scope does not allow is not allowed elsewhere either.
	succeed(t, one.environ, &key, "key", "create", "--platform", "--scopes", "events:read", "--json")
	if got := ask(t, "POST", three.URL()+"/api/v1/tenants/"+two.tenant+"/events", key.APIKey, anEvent); got.status != http.StatusForbidden ||
		!strings.Contains(got.body, "scope_missing") {
		t.Errorf("without the scope: %d %s", got.status, got.body)
	}
	if got := ask(t, "GET", three.URL()+"/api/v1/tenants/"+id.Tenant.Format(id.UUID{1})+"/events", key.APIKey, ""); got.status != http.StatusNotFound {
		t.Errorf("a tenant of no home: %d %s", got.status, got.body)
	}
}

// A key opens only its tenant, at any home, and nobody can speak for a home without the secret.
func TestPassingOnOpensNothing(t *testing.T) {
	t.Parallel()
	homes := newHomes(t, "eu1", "eu2")
	one, two := homes[0], homes[1]
	var event struct{ ID string }
	if err := json.Unmarshal([]byte(ask(t, "POST", two.URL()+"/api/v1/events", two.key, anEvent).body), &event); err != nil {
		t.Fatal(err)
	}
	for _, by := range homes {
		if got := ask(t, "GET", by.URL()+"/api/v1/events/"+event.ID, one.key, ""); got.status != http.StatusNotFound {
			t.Errorf("another tenant's event through %s: %d %s", by.Config.Home, got.status, got.body)
		}
		if got := ask(t, "GET", by.URL()+"/api/v1/tenants/"+two.tenant+"/events", one.key, ""); got.status != http.StatusForbidden {
			t.Errorf("another tenant's path through %s: %d %s", by.Config.Home, got.status, got.body)
		}
		for _, path := range []string{"/t/" + two.tenant, "/t/" + two.tenant + "/events"} {
			if got := ask(t, "GET", by.URL()+path, one.key, "", "Accept", "text/html"); strings.Contains(got.body, "Of eu2") {
				t.Errorf("%s through %s shows the tenant", path, by.Config.Home)
			}
		}
		if got := ask(t, "POST", by.URL()+"/internal/homes/find", "", `{"tenant":"`+two.tenant+`"}`); got.status != http.StatusNotFound {
			t.Errorf("asked without a signature: %d %s", got.status, got.body)
		}
	}
	path := "/api/v1/tenants/" + two.tenant + "/events"
	vouched := home.Passage{
		From:   "eu1",
		To:     "eu2",
		At:     time.Now().Unix(),
		Hops:   1,
		Client: "203.0.113.9",
		Key:    id.Key.Format(id.UUID{1}),
		Scopes: "events:read",
	}
	for name, header := range map[string]string{
		"a wrong secret":  vouched.Sign(homeSecret+"?", "GET", path),
		"another path":    vouched.Sign(homeSecret, "GET", path+"/x"),
		"another method":  vouched.Sign(homeSecret, "POST", path),
		"no signature":    "eyJmIjoiZXUxIn0",
		"an old one":      func() string { p := vouched; p.At -= 120; return p.Sign(homeSecret, "GET", path) }(),
		"of another home": func() string { p := vouched; p.To = "eu1"; return p.Sign(homeSecret, "GET", path) }(),
	} {
		if got := ask(t, "GET", two.URL()+path, "", "", "Posthorn-Passage", header); got.status != http.StatusForbidden ||
			!strings.Contains(got.body, "home_forged") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := ask(t, "GET", two.URL()+path, "", "", "Posthorn-Passage", vouched.Sign(homeSecret, "GET", path)); got.status != http.StatusOK {
		t.Errorf("the right one: %d %s", got.status, got.body)
	}
	loop := vouched
	loop.Hops, loop.Key = home.MaxHops, ""
	if got := ask(t, "GET", two.URL()+"/api/v1/events", one.key, "", "Posthorn-Passage",
		loop.Sign(homeSecret, "GET", "/api/v1/events")); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "home_loop") {
		t.Errorf("a request that goes in a circle: %d %s", got.status, got.body)
	}
}

// The home of the tenant sees the client, and not the home in between; what the client claims is not believed.
func TestTheClientsAddressSurvivesAHome(t *testing.T) {
	t.Parallel()
	homes := newHomes(t, "eu1", "eu2")
	one, two := homes[0], homes[1]
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
	if got := ask(t, "GET", one.URL()+"/t/"+two.tenant, "", "", "Accept", "text/html"); got.status != http.StatusServiceUnavailable ||
		!strings.Contains(got.body, "<html") {
		t.Errorf("a page: %d %.300s", got.status, got.body)
	}
	again := program(t, two.environ, Parts{Web: true})
	deadline := time.Now().Add(10 * time.Second)
	for {
		got := ask(t, "POST", one.URL()+"/api/v1/events", two.key, anEvent)
		if got.status == http.StatusAccepted {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it runs at %s again, and is not passed to: %d %s", again.URL(), got.status, got.body)
		}
	}
}

// A person signs in at any web process, in the home that has the account, and sees its tenant through any.
func TestPeopleSignInThroughAnyHome(t *testing.T) {
	t.Parallel()
	homes := newHomes(t, "eu1", "eu2")
	one, two := homes[0], homes[1]
	const email = "ada@example.com"
	tenant, err := id.Tenant.Parse(two.tenant)
	if err != nil {
		t.Fatal(err)
	}
	var token string
	if err := two.pools[0].Console(t.Context(), func(q *db.Tx) error {
		person, err := accounts.AddPerson(t.Context(), q, email, "Ada", "none")
		if err != nil {
			return err
		}
		_, err = accounts.AddMember(t.Context(), q, tenant, person, access.Owner)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	send := func(method, path string, form url.Values) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, one.URL()+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", one.URL())
		}
		res, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(text)
	}
	// The form goes to the home of the address, as its response says.
	res, _ := send("POST", "/sign-in", url.Values{"email": {email}, "password": {"a wrong password"}})
	if got := res.Header.Get("Posthorn-Home"); got != "eu2" {
		t.Errorf("the sign-in was answered by %q", got)
	}
	at, _ := url.Parse(one.URL())
	if !slices.ContainsFunc(jar.Cookies(at), func(c *http.Cookie) bool { return c.Name == "posthorn-home" && c.Value == "eu2" }) {
		t.Errorf("the browser does not remember the home: %v", jar.Cookies(at))
	}
	if err := two.pools[0].Account(t.Context(), func(q *db.Tx) error {
		row, err := q.FindPerson(t.Context(), email)
		if err == nil {
			token, err = accounts.StartSession(t.Context(), q, accounts.NewSession{Person: &row.ID, Life: time.Hour})
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	jar.SetCookies(at, []*http.Cookie{{Name: "posthorn-eu2", Value: token, Path: "/"}})
	for _, path := range []string{"/t/" + two.tenant, "/account", "/tenants"} {
		res, text := send("GET", path, nil)
		if res.StatusCode != http.StatusOK || res.Header.Get("Posthorn-Home") != "eu2" {
			t.Errorf("%s: %d by %s\n%.300s", path, res.StatusCode, res.Header.Get("Posthorn-Home"), text)
		}
	}
	// A tenant of the other home asks for a sign-in there, and what the browser has here stays.
	if res, _ := send("GET", "/t/"+one.tenant, nil); res.Request.URL.Path == "/t/"+one.tenant && res.StatusCode == http.StatusOK {
		t.Errorf("a session of eu2 opens a tenant of eu1: %s", res.Request.URL)
	}
	if res, _ := send("GET", "/t/"+two.tenant, nil); res.StatusCode != http.StatusOK {
		t.Errorf("back in eu2: %d", res.StatusCode)
	}
}

func TestTheSettingsOfTheHomesPageAreTaken(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/ops/homes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```sh\n")
	block, _, _ := strings.Cut(rest, "```")
	lines := strings.Split(strings.TrimSpace(strings.Replace(block, "...   # openssl rand -hex 32", homeSecret, 1)), "\n")
	cfg, err := loadConfig(lines)
	if err != nil || cfg.Home != "eu1" || len(cfg.Others) != 1 || cfg.Others[0].URL.String() != "http://10.0.1.1:8080" {
		t.Errorf("%q: %+v %v", lines, cfg.Others, err)
	}
	_, rest, _ = strings.Cut(rest, "posthorn tenant move ")
	typed, _, _ := strings.Cut(rest, "\n")
	args := append([]string{"tenant", "move"}, strings.Fields(typed)...)
	if r := command(t, []string{"POSTHORN_DATABASE_URL=postgres://u@h/d"}, args...); !strings.Contains(r.stderr, toDatabaseVariable) {
		t.Errorf("%q is not taken: %s", typed, r.stderr)
	}
}
