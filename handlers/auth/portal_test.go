package auth_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/auth"
)

func (w *world) portal(l accounts.NewPortalLink) (link id.UUID, token string) {
	w.t.Helper()
	l.SessionSeconds, l.By = 3600, db.Author{Kind: "key", ID: "key"}
	err := w.db.Tenant(w.t.Context(), l.Tenant, func(q *db.Tx) error {
		row, text, err := accounts.MakePortalLink(w.t.Context(), q, l)
		link, token = row.ID, text
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return link, token
}

func TestAPortalLinkOpensOneTenantOnceWithItsRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *handlers.Config, _ *auth.Deps) { c.FrameAncestors = []string{"https://app.example.com"} })
	tenant, path := w.tenant("Acme", w.person("owner@example.com"))
	_, other := w.tenant("Other", w.person("b@example.com"))
	link, token := w.portal(accounts.NewPortalLink{Tenant: tenant, Role: access.Admin, Brand: "Shop <b>", Accent: "#1f6feb", ReturnURL: "https://app.example.com/x"})
	b := w.browser()
	b.get("/portal/open?token=" + token).to(path)
	got := b.get(path).want(200, "Shop &lt;b&gt;", "https://app.example.com/x", "1f6feb")
	if csp := got.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors https://app.example.com") || strings.Contains(csp, "unsafe") {
		t.Error(csp)
	}
	w.browser().get("/portal/open?token="+token).want(410, "portal_link_gone")
	b.get(other).to("/sign-in") // other tenants do not exist for it
	b.get("/account").to("/sign-in")
	b.post(path+"/members/invite", nil).want(403) // an admin's role, without a person
	b.post(path+"/leave", nil).want(404)
	if life := one[float64](w, "SELECT extract(epoch FROM expires_at - created_at) FROM sessions"); life != 3600 {
		t.Errorf("the session lives %v s", life)
	}
	w.SQL("UPDATE portal_links SET revoked_at = now() WHERE id = $1", link)
	b.get(path).want(401, "You were signed out", "Shop &lt;b&gt;")

	_, late := w.portal(accounts.NewPortalLink{Tenant: tenant, Role: access.Viewer})
	w.SQL("UPDATE portal_links SET open_until = now() WHERE opened_at IS NULL")
	w.browser().get("/portal/open?token=" + late).want(410)
	owner := w.signedIn("owner@example.com")
	if csp := owner.get(path).Header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Error("a member's page may be framed: " + csp)
	}
}

func TestAFramedPortalKeepsItsCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *handlers.Config, _ *auth.Deps) { c.BaseURL = "https://hooks.example.com" })
	tenant, _ := w.tenant("Acme", w.person("owner@example.com"))
	_, token := w.portal(accounts.NewPortalLink{Tenant: tenant, Role: access.Viewer})
	got := w.browser().get("/portal/open?token=" + token)
	var names []string
	for _, c := range got.Cookies {
		if names = append(names, c.Name); !c.Secure || !c.HttpOnly || !c.Partitioned || c.SameSite != http.SameSiteNoneMode {
			t.Error(c)
		}
	}
	if !slices.Equal(names, []string{"__Host-posthorn-portal", "__Host-posthorn-portal-link"}) {
		t.Error(names)
	}
}

// framedAs is what a browser adds to a request for a frame.
var framedAs = []string{"Sec-Fetch-Dest", "iframe"}

// What a frame can be led to without a session: each has the provider's origin in its policy, words for the customer,
// no form with a password, and Posthorn's name nowhere. What people open in a window of their own has neither.
func TestEveryResponseThatAFrameCanBeLedToCanBeFramed(t *testing.T) {
	t.Parallel()
	const shop = "https://app.example.com"
	w := newWorld(t, func(c *handlers.Config, _ *auth.Deps) { c.FrameAncestors = []string{shop} })
	tenant, path := w.tenant("Acme", w.person("owner@example.com"))
	_, other := w.tenant("Other", w.person("b@example.com"))
	open := func() (b *browser, link id.UUID, address string) {
		link, token := w.portal(accounts.NewPortalLink{Tenant: tenant, Role: access.Developer, Brand: "Shop", ReturnURL: shop + "/settings"})
		b, address = w.browser(), "/portal/open?token="+token
		b.get(address, framedAs...).to(path)
		return b, link, address
	}
	b, link, address := open()
	b.get(address, framedAs...).to(path) // the browser that it signed in
	b.get(address+"&next="+path+"/events", framedAs...).to(path + "/events")
	if to := b.get(address+"&next="+other+"/events", framedAs...).to(path); to != path {
		t.Errorf("a link into one tenant leads to %s", to)
	}
	expired, _, _ := open()
	w.SQL("UPDATE sessions SET expires_at = now() - interval '1 s' WHERE link_id <> $1", link)
	revoked, gone, again := open()
	w.SQL("UPDATE portal_links SET revoked_at = now() WHERE id = $1", gone)
	typed := url.Values{"url": {"https://hooks.example.com/typed"}, "secret": {"whsec_typed"}}
	for _, response := range []struct {
		name   string
		got    *page
		status int
		words  []string
	}{
		{"a used link, in another browser", w.browser().get(address, framedAs...), 410, []string{"This link has expired", "Shop"}},
		{"a link that never was", w.browser().get("/portal/open?token=never", framedAs...), 410, []string{"This link has expired"}},
		{"a revoked link, in its browser", revoked.get(again, framedAs...), 410, []string{"This link has expired", "Shop"}},
		{"no such page, signed in", b.get(path+"/no-such-page", framedAs...), 404, []string{"Shop", path}},
		{"no such object, signed in", b.get(path+"/endpoints/ep_01jd0000000000000000000000", framedAs...), 404, nil},
		{"a session that was revoked", revoked.get(path, framedAs...), 401, []string{"You were signed out", "Reload the page", "Shop", shop}},
		{"the same in a window", revoked.get(path), 401, []string{"You were signed out", "Open the dashboard again from Shop"}},
		{"a session that has expired", expired.get(path+"/events", framedAs...), 401, []string{"You were signed out", "Shop", `data-portal-says="signed-out"`}},
		{"a form after the end", expired.post(path+"/endpoints", typed, framedAs...), 401, []string{"This is what you typed", "https://hooks.example.com/typed"}},
		{"no cookie at all", w.browser().get(path, framedAs...), 401, []string{"You were signed out", "Reload the page"}},
		{"a person's browser", w.signedIn("owner@example.com").get(path, framedAs...), 401, []string{"You were signed out"}},
		{"another tenant", b.get(other, framedAs...), 401, []string{"You were signed out"}},
	} {
		body := response.got.want(response.status, response.words...).Body
		if csp := response.got.Header.Get("Content-Security-Policy"); !strings.HasSuffix(csp, "frame-ancestors "+shop) {
			t.Errorf("%s: %s", response.name, csp)
		}
		for _, wrong := range []string{"Posthorn", `type="password"`, "whsec_typed", `href="/"`} {
			if response.status != 404 && strings.Contains(body, wrong) {
				t.Errorf("%s holds %s: %s", response.name, wrong, body)
			}
		}
	}
	if got := expired.get(path+"/live", "HX-Request", "true"); got.Header.Get("HX-Refresh") != "true" {
		t.Errorf("a live part after the end: %d %v", got.Status, got.Header)
	}
	for name, got := range map[string]*page{
		"the sign-in page":      w.browser().get("/sign-in", framedAs...),
		"a member's page":       w.signedIn("owner@example.com").get(path),
		"a member's wrong page": w.signedIn("owner@example.com").get(path + "/endpoints/ep_01jd0000000000000000000000"),
	} {
		if csp := got.Header.Get("Content-Security-Policy"); !strings.HasSuffix(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: %s", name, csp)
		}
	}
	w.browser().get(path).to("/sign-in?next=")
}

func TestWhatWasTypedIsShownToAPersonWhoWasSignedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, path := w.tenant("Acme", w.person("owner@example.com"))
	b := w.signedIn("owner@example.com")
	b.get(path).want(200)
	w.SQL("DELETE FROM sessions")
	form := url.Values{"url": {"https://hooks.example.com/typed"}, "password": {"typed too"}}
	got := b.post(path+"/endpoints", form).want(401, "You were signed out", "https://hooks.example.com/typed", "/sign-in")
	if strings.Contains(got.Body, "typed too") {
		t.Error("a password is shown")
	}
	b.post(path+"/endpoints", nil).to("/sign-in")
}

func TestATenantHasABoundedNumberOfPortalLinksThatNobodyHasOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, _ := w.tenant("Acme", w.person("owner@example.com"))
	other, _ := w.tenant("Other", w.person("b@example.com"))
	link := accounts.NewPortalLink{Tenant: tenant, Role: access.Viewer}
	_, token := w.portal(link)
	for range account.MaxPortalLinks - 1 {
		w.portal(link)
	}
	full := func() bool {
		l := link
		l.SessionSeconds, l.By = 3600, db.Author{Kind: "key", ID: "key"}
		err := w.db.Tenant(t.Context(), tenant, func(q *db.Tx) error {
			_, _, err := accounts.MakePortalLink(t.Context(), q, l)
			return err
		})
		if err != nil && !fault.Is(err, "portal_links_count") {
			t.Fatal(err)
		}
		return err != nil
	}
	if !full() {
		t.Error("there is room for more than the bound")
	}
	w.portal(accounts.NewPortalLink{Tenant: other, Role: access.Viewer}) // another tenant has its own
	w.browser().get("/portal/open?token=" + token)
	if full() {
		t.Error("an opened link counts")
	}
}
