package auth_test

import (
	"net/http"
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
	b.get(path).to("/sign-in")

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
	if len(got.Cookies) != 1 {
		t.Fatal(got.Cookies)
	}
	if c := got.Cookies[0]; c.Name != "__Host-posthorn-portal" || !c.Secure || !c.HttpOnly || !c.Partitioned ||
		c.SameSite != http.SameSiteNoneMode {
		t.Error(c)
	}
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
