package main

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
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
