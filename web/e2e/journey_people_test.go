//go:build e2e && unix

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"posthorn/tools/look"
)

// postForms are the actions of the forms on a page that change something of the tenant.
func postForms(tab *look.Tab) []string {
	return look.Run(tab, chromedp.Evaluate[[]string](`[...document.querySelectorAll("form")].filter((f) => f.method === "post" && f.querySelector("button:enabled")).map((f) => new URL(f.action).pathname)`))
}

func viewerCanDoNothing(t *testing.T, s *stage) {
	o := s.office(t, "Looking Ltd")
	ep, _ := o.endpoint("/hooks", nil)
	event := o.emitted("order.paid", `{}`)
	delivery := o.await("delivered", 1)
	viewer := o.join("viewer")
	tab := viewer.tab(look.View{})
	for _, path := range []string{"", "/endpoints", "/endpoints/" + ep, "/endpoints/" + ep + "/settings", "/endpoints/" + ep + "/filter", "/endpoints/" + ep + "/secrets", "/deliveries", "/deliveries/" + delivery, "/events", "/events/" + event, "/event-types", "/members", "/audit-log", "/notices", "/bulk-jobs"} {
		tab.Open(s.url + o.root + path)
		for _, name := range []string{"Add endpoint", "Pause", "Send test event", "Replay", "Save filter", "Rotate secret", "Invite member", "Create API key", "More actions", "Actions on all results"} {
			if tab.Has(name) {
				t.Errorf("%s offers a viewer %q", path, name)
			}
		}
		for _, action := range postForms(tab) {
			own := action == "/theme" || action == "/sign-out" || strings.HasSuffix(action, "/leave") || strings.HasPrefix(action, o.root+"/notices") ||
				strings.HasSuffix(action, "/filter")
			if !own {
				t.Errorf("%s has a viewer's form to %s", path, action)
			}
		}
	}
	quiet(t, tab)
	// What no page offers is refused all the same, when the page itself sends it.
	values := map[string]string{":tenant_id": o.tenant, ":endpoint_id": ep, ":delivery_id": delivery, ":event_id": event}
	for _, answer := range sendEverything(t, s, tab, values) {
		if !strings.HasPrefix(answer, "403 ") {
			t.Errorf("a viewer's POST is answered %s", answer)
		}
	}
}

func keyIsShownOnce(t *testing.T, s *stage) {
	o := s.office(t, "Keys Ltd")
	tab := o.owner.tab(look.View{})
	tab.Open(s.url + o.root + "/keys")
	tab.Press("Create API key")
	tab.Fill("Name", "The shop")
	tab.Press("Create key") // with the scope that the form proposes
	tab.Sees("Copy your new key")
	inspectOpen(t, tab)
	o.key = once(tab, "new-key")
	o.emitted("order.paid", `{}`)
	tab.Open(s.url + tab.Path()) // a reload
	tab.Arrives(o.root + "/keys")
	tab.Sees("The shop")
	if tab.Shows(o.key) || tab.Shows("Copy your new key") {
		t.Error("the key is shown a second time")
	}
	quiet(t, tab)
}

// backShowsTheFilterOfTheAddress: going back in the history shows the filter that the address says, not what was chosen
// or typed on the way out.
func backShowsTheFilterOfTheAddress(t *testing.T, s *stage) {
	o := s.office(t, "Going Back Ltd")
	o.endpoint("/hooks", nil)
	o.emitted("order.paid", `{}`)
	o.await("delivered", 1)
	tab := o.owner.tab(look.View{})
	deliveries := o.root + "/deliveries"
	for _, leave := range []func(){
		func() { tab.Choose("Status", "Failed") },
		func() {
			tab.Fill("Search by id, key, or value", "order_1")
			tab.Press("Endpoints")
		},
	} {
		tab.Open(s.url + deliveries)
		leave()
		tab.Until("the page is another", fmt.Sprintf(`location.pathname + location.search !== %q`, deliveries))
		tab.Do(chromedp.NavigateBack())
		tab.Until("the page before is back", fmt.Sprintf(`location.pathname + location.search === %q && document.readyState === "complete"`, deliveries))
		tab.Sees("order.paid")
		shown := look.Run(tab, chromedp.Evaluate[[]string](`[...document.querySelector("form.filters").elements].filter((f) => f.name && f.type !== "hidden" && (f.type === "checkbox" ? f.checked : f.value)).map((f) => f.name + "=" + f.value)`))
		if len(shown) > 0 {
			t.Errorf("the list of all deliveries shows the filter %v", shown)
		}
	}
	quiet(t, tab)
}

// filled is a path with values in the place of its parameters.
func filled(path string, values map[string]string) string {
	return parameter.ReplaceAllStringFunc(path, func(name string) string {
		if values[name] == "" {
			return "nothing"
		}
		return values[name]
	})
}

// sendEverything has a page send a form to every action that the server has in a tenant, but those that are a
// reader's own, and gives the answers: status, the problem's code, the path.
func sendEverything(t *testing.T, s *stage, tab *look.Tab, values map[string]string) []string {
	t.Helper()
	var routes []struct{ Method, Path, Access string }
	command(t, s.environ, place{}, &routes, "routes", "--json")
	var paths []string
	for _, r := range routes {
		if r.Method == http.MethodPost && strings.HasPrefix(r.Path, "/t/") && r.Access != "person read" {
			paths = append(paths, filled(r.Path, values))
		}
	}
	answers := look.Run(tab, chromedp.Evaluate[[]string](`Promise.all(`+quoted(paths)+`.map((path) => fetch(path, {method: "POST", body: new URLSearchParams()}).then((answer) => answer.text().then((text) =>
		answer.status + " " + (/(?:"code": ?"|<code>)([a-z_]+)/.exec(text) || ["", ""])[1] + " " + path))))`, chromedp.EvalAwaitPromise))
	if len(answers) < 20 {
		t.Errorf("only %d actions were tried", len(answers))
	}
	return answers
}

// quoted is a list as JavaScript writes it.
func quoted(list []string) string {
	var parts []string
	for _, s := range list {
		parts = append(parts, fmt.Sprintf("%q", s))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func portalLinkOpensOnce(t *testing.T, s *stage) {
	o := s.office(t, "Provided Ltd")
	ep, _ := o.endpoint("/hooks", nil)
	var link struct{ URL string }
	o.manage(http.MethodPost, "/portal-links", settings{"role": "developer", "brand_name": "Shopware", "accent": "#c2410c", "return_url": "https://shop.example.com/settings"}, &link)
	tab := s.browser.Visitor(t, look.View{})
	tab.Open(link.URL)
	tab.Arrives(o.root)
	tab.Sees("Shopware")
	tab.Sees("Back to Shopware")
	inspectOpen(t, tab)
	for _, name := range []string{"Members", "API keys"} {
		if tab.Has(name) {
			t.Errorf("a portal link without secrets shows %s", name)
		}
	}
	tab.Open(s.url + o.root + "/endpoints/" + ep)
	tab.Press("Pause")
	tab.Press("Pause")
	tab.Sees("Endpoint paused")
	quiet(t, tab)
	other := s.browser.Visitor(t, look.View{})
	other.Open(link.URL)
	other.Sees("This link has expired")
	other.Sees("Open the dashboard again from Shopware")
	tab.Open(s.url + s.office(t, "Foreign Ltd").root)
	if tab.Shows("Foreign Ltd") {
		t.Error("the link leads into another tenant")
	}
}

func secondFactorIsAskedFor(t *testing.T, s *stage) {
	o := s.office(t, "Careful Ltd")
	tab := o.owner.tab(look.View{})
	tab.Open(s.url + "/account")
	tab.Press("Set up authenticator app")
	tab.Sees("Set up second factor")
	inspectOpen(t, tab)
	seed := strings.ReplaceAll(look.Run(tab, chromedp.Text("#seed")), " ", "")
	now := time.Now()
	code := func(at time.Time) string {
		text, err := totp.GenerateCode(seed, at)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	tab.Fill("Code", code(now))
	tab.Press("Turn on")
	tab.Sees("Save your recovery codes")
	inspectOpen(t, tab)
	recovery := strings.Fields(look.Run(tab, chromedp.Text(chromedp.ID("recovery-codes"))))
	if len(recovery) < 5 || slices.Contains(recovery, "") {
		t.Fatalf("the recovery codes are %q", recovery)
	}
	tab.Press("I've saved them")
	tab.Sees("recovery codes left")
	tab.Open(s.url + o.root)
	signOut(tab)
	signIn(tab, s, o.owner.email)
	tab.Sees("Second factor")
	inspectOpen(t, tab)
	tab.Fill("Code", code(now)) // it was taken already
	tab.Press("Sign in")
	tab.Sees("already used")
	tab.Fill("Code", code(now.Add(30*time.Second))) // the next one, which a fast clock shows
	tab.Press("Sign in")
	tab.Arrives("/t/ten_")
	signOut(tab)
	signIn(tab, s, o.owner.email)
	tab.Fill("Code", recovery[0])
	tab.Press("Sign in")
	tab.Arrives("/t/ten_")
	quiet(t, tab)
}

func signOut(tab *look.Tab) {
	tab.Do(chromedp.Click(chromedp.CSS(".person summary")))
	tab.Press("Sign out")
	tab.Arrives("/sign-in")
}

func signIn(tab *look.Tab, s *stage, email string) {
	tab.Open(s.url + "/sign-in")
	tab.Fill("Email address", email)
	tab.Fill("Password", password)
	tab.Press("Sign in")
}
