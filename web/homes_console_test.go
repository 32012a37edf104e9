package main

import (
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/domain/settings"
	"posthorn/handlers"
)

// operatorOf signs an operator in to a home.
func operatorOf(t *testing.T, h *someHome) *http.Cookie {
	t.Helper()
	op := db.NewID()
	if _, err := h.pools[0].Pool().Exec(t.Context(), "SET ROLE posthorn_console; INSERT INTO operators (id, email, name, created_at) VALUES ('"+op.String()+"', 'op@example.com', 'Olga', now()); RESET ROLE"); err != nil {
		t.Fatal(err)
	}
	var token string
	if err := h.pools[0].Account(t.Context(), func(q *db.Tx) (err error) {
		token, err = accounts.StartSession(t.Context(), q, accounts.NewSession{Operator: &op, Life: time.Hour})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return &http.Cookie{
		Name:  handlers.NewSessions(h.pools[0], h.URL()).Of(h.Config.Home).Cookie(account.Operator),
		Value: token,
	}
}

// visit gets a page with a cookie, and follows nothing.
func visit(t *testing.T, url string, cookies ...*http.Cookie) answer {
	t.Helper()
	header := []string{"Accept", "text/html"}
	var pairs []string
	for _, c := range cookies {
		pairs = append(pairs, c.Name+"="+c.Value)
	}
	if pairs != nil {
		header = append(header, "Cookie", strings.Join(pairs, "; "))
	}
	return asker{t, stay}.request("GET", url, "", "", header...)
}

// stay is a client that follows no redirect.
var stay = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func holds(t *testing.T, what string, got answer, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if got.status != http.StatusOK || !strings.Contains(got.body, text) {
			t.Errorf("%s: %d, without %q", what, got.status, text)
		}
	}
}

// The console and the status page of any home say how all homes are, by what their public addresses say. A home that is
// down or that hangs keeps no page waiting, and pages say so and what it means.
func TestTheConsoleAndTheStatusPageShowAllHomes(t *testing.T) {
	t.Parallel()
	homes := newHomesOf(t, Parts{Web: true, Worker: true}, "eu1", "eu2")
	one, two := homes[0], homes[1]
	for _, h := range homes {
		if _, err := accounts.ChangePlatform(t.Context(), h.pools[0],
			accounts.PlatformChange{Texts: map[string]string{settings.StatusPage: settings.Public}},
			db.Author{Kind: "command"}); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if got := ask(t, "GET", h.URL()+path, "", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"home":"`+
				h.Config.Home+`"`) || !strings.Contains(got.body, `"version":"`+buildVersion()+`"`) {
				t.Errorf("%s of %s: %d %s", path, h.Config.Home, got.status, got.body)
			}
		}
	}
	cookie := operatorOf(t, one)
	until(t, "all is well on the page of homes", func() bool {
		return strings.Count(visit(t, one.URL()+"/console/homes", cookie).body, ">Operational<") == 2
	})
	holds(t, "the page of homes", visit(t, one.URL()+"/console/homes", cookie), two.at()+"/console", "this home", buildVersion())
	holds(t, "the status page", visit(t, one.URL()+"/status"), "eu1", "eu2", "Deliveries of the home eu1.")

	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	metrics := func() (served string) {
		_, served = fetch(t, one.MetricsURL(), "")
		return served
	}
	says := func(served, home, value string) bool {
		return strings.Contains(served, `posthorn_home_up{home="`+home+`"} `+value+"\n")
	}
	up := func(home, value string) bool { return says(metrics(), home, value) }
	down := func(what string) {
		t.Helper()
		if served := metrics(); !says(served, "eu1", "1") {
			t.Errorf("%s: the metrics do not say that this home works: %s", what, homeLines(served))
		}
		until(t, what+": the home is down in the metrics", func() bool { return up("eu2", "0") })
		until(t, what+": the home is down on the status page", func() bool { return strings.Contains(visit(t, one.URL()+"/status").body, ">Down<") })
		for _, page := range []string{"/status", "/console/homes"} {
			holds(t, what+": "+page, visit(t, one.URL()+page, cookie), "Tenants of other homes are not affected.")
		}
	}
	down("killed")
	hung, err := net.Listen("tcp", two.Config.Addr)
	if err != nil {
		t.Fatal(err)
	}
	down("hung")
	began := time.Now()
	holds(t, "the page of homes while one hangs", visit(t, one.URL()+"/console/homes", cookie), "this home")
	if took := time.Since(began); took > askBound {
		t.Errorf("a home that hangs kept the page for %v", took)
	}
	if err := hung.Close(); err != nil {
		t.Fatal(err)
	}
	program(t, two.environ, Parts{Web: true, Worker: true})
	until(t, "it is back in the metrics", func() bool { return up("eu2", "1") })
	until(t, "it is back", func() bool {
		return strings.Count(visit(t, one.URL()+"/console/homes", cookie).body, ">Operational<") == 2
	})
}

// homeLines are the samples of a metrics response that are about homes.
func homeLines(served string) string {
	other := func(line string) bool { return !strings.HasPrefix(line, "posthorn_home") }
	return strings.Join(slices.DeleteFunc(strings.Split(served, "\n"), other), "\n")
}

// An installation without homes has no such page in its navigation, and its status page names none.
func TestWithoutHomesNoPageNamesOne(t *testing.T) {
	t.Parallel()
	p := program(t, append(newDatabase(t), "POSTHORN_ADDR=127.0.0.1:0"), Parts{Web: true})
	h := &someHome{Program: p}
	cookie := operatorOf(t, h)
	holds(t, "the page of homes", visit(t, p.URL()+"/console/homes", cookie), "No homes")
	if got := visit(t, p.URL()+"/console", cookie); strings.Contains(got.body, "/console/homes") {
		t.Error("the navigation leads to homes")
	}
	if got := ask(t, "GET", p.URL()+"/healthz", "", ""); strings.Contains(got.body, "home") {
		t.Errorf("%s", got.body)
	}
}

// askBound is less than what a home that hangs keeps a request.
const askBound = 1500 * time.Millisecond

// With a key of another home, the page of homes has that home's numbers, as its API gives them. A key that is rejected
// is told, and never shown.
func TestTheConsoleShowsTheNumbersOfOtherHomesByTheirKeys(t *testing.T) {
	t.Parallel()
	homes := newHomes(t, "eu1", "eu2")
	one, two := homes[0], homes[1]
	for range 4 {
		succeed(t, two.environ, &struct{}{}, "tenant", "create", "--name", "Another", "--json")
	}
	var key struct {
		APIKey string `json:"api_key"`
	}
	succeed(t, two.environ, &key, "key", "create", "--platform", "--scopes", "webhooks:read", "--json")
	cookie := operatorOf(t, one)
	page := func(h *someHome) string { return plainText(visit(t, h.URL()+"/console/homes", cookie).body) }
	until(t, "a home without a key has no numbers", func() bool { return numbersOf("eu2", "–").MatchString(page(one)) })
	if text := page(one); !numbersOf("eu1", "1").MatchString(text) {
		t.Errorf("this home: %s", text)
	}
	for _, c := range []struct{ key, want string }{{key.APIKey, "5"}, {"php_eu2_" + strings.Repeat("a", 49), "–"}} {
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
		one.Program = program(t, append(slices.Clone(one.environ), "POSTHORN_HOME_KEYS=eu2="+c.key), Parts{Web: true})
		until(t, "the numbers of the other home are those of its API", func() bool { return numbersOf("eu2", c.want).MatchString(page(one)) })
		if c.want == "–" {
			until(t, "a key that is rejected is told", func() bool { return strings.Contains(page(one), "It rejects the key in POSTHORN_HOME_KEYS.") })
		}
		if body := visit(t, one.URL()+"/console/homes", cookie).body; strings.Contains(body, c.key) || strings.Contains(body, c.key[8:]) {
			t.Error("the page has the key")
		}
	}
}

// numbersOf finds the line of a home with its number of tenants.
func numbersOf(home, tenants string) *regexp.Regexp {
	return regexp.MustCompile(home + ` .{0,9}?(this home )?Operational .{0,120}?` + tenants + ` (0|–) (0|–) (0|–) http`)
}

// The page of homes lists the moves that are not finished, and says how one is finished or rolled back whose command is
// missing. The overview leads there.
func TestTheConsoleShowsMovesThatAreNotFinished(t *testing.T) {
	t.Parallel()
	one := newHomes(t, "eu1", "eu2")[0]
	one.exec(t, "INSERT INTO tenant_moves (tenant_id, direction, home, state) VALUES ($1, 'out', 'eu2', 'copying')", uuidOf(t, id.Tenant, one.tenant))
	cookie := operatorOf(t, one)
	got := visit(t, one.URL()+"/console/homes", cookie)
	holds(t, "a move that runs", got, "Of eu1", "Running")
	if strings.Contains(got.body, "--rollback") {
		t.Error("a move that runs is told to be ended")
	}
	one.exec(t, "UPDATE tenant_moves SET state = 'closed', stopped_at = now() - interval '2 minutes'")
	holds(t, "a move that has stopped", visit(t, one.URL()+"/console/homes", cookie), "Stopped", "accepts no events",
		"posthorn tenant move "+one.tenant+" --to eu2", "--rollback")
	holds(t, "the overview", visit(t, one.URL()+"/console", cookie), "The move of Of eu1 to the home eu2 has stopped", "/console/homes")
}
