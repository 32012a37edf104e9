//go:build e2e

package auth_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"posthorn/domain/access"
	"posthorn/handlers"
	"posthorn/handlers/auth"
	"posthorn/web/look"
)

// TestThePagesOfAccountsFitEveryScreenAndBreakNoPolicy opens every page of this package and the members' and settings' pages
// in a real browser.
func TestThePagesOfAccountsFitEveryScreenAndBreakNoPolicy(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	at := "http://" + server.Listener.Addr().String()
	w := newWorld(t, func(c *handlers.Config, d *auth.Deps) { c.BaseURL, d.BaseURL, d.MailIsShown = at, at, true })
	server.Config.Handler = withStatic(w.engine)
	server.Start()
	t.Cleanup(server.Close)
	tenant, path := w.tenant("Acme GmbH & Co. KG", w.person("ada.lovelace@example.com"))
	w.join(tenant, w.person("somebody.with.a.rather.long.address@subdomain.example.com"), access.Developer)
	owner := w.signedIn("ada.lovelace@example.com")
	owner.post(path+"/members/invite", url.Values{"email": {"new@example.com"}, "role": {"viewer"}}).to(path)
	invitation := w.lastMail("new@example.com", "invitation").Token
	w.browser().post("/sign-up", url.Values{"tenant": {"T"}, "name": {"N"}, "email": {"n@example.com"}}).to("/")
	verify := w.lastMail("n@example.com", "verify_address").Token
	w.signedIn("ada.lovelace@example.com")
	open := map[string]string{
		"sign-in": "/sign-in", "sign-up": "/sign-up", "sent": "/sign-up/sent", "reset": "/reset", "verify": "/verify-email?token=" + verify,
		"invitation": "/invitations/accept?token=" + invitation, "gone": "/reset/new?token=x", "nothing": "/nothing",
	}
	mine := map[string]string{
		"account": "/account", "tenants": "/tenants", "confirm": "/account/confirm", "setup": "/account/totp", "home": path, "members": path + "/members", "settings": path + "/settings",
	}
	owner.post("/account/totp/start", nil).to("/account/totp")
	browser := look.Open(t)
	for i, v := range append(look.Views(), look.View{NoScript: true}) {
		visit := func(name, page string, tab *look.Tab) {
			tab.Do(chromedp.Navigate(at + page))
			if !v.NoScript {
				if wide := tab.Overflow(); wide != "" {
					t.Errorf("%s, %s: %s", name, v, wide)
				}
			}
			tab.Picture("accounts-"+name, v)
		}
		tab := browser.Tab(t, v)
		for name, page := range open {
			visit(name, page, tab)
		}
		if i == 0 { // the tabs of one browser share its cookies
			tab.Do(
				chromedp.Navigate(at+"/sign-in"), chromedp.SetValue("#f-email", "ada.lovelace@example.com"), chromedp.SetValue("#f-password", goodPassword),
				chromedp.Click("form.form button"), chromedp.WaitVisible(".page-head"),
			)
		}
		for name, page := range mine {
			visit(name, page, tab)
		}
		for _, said := range tab.Messages() {
			if !strings.Contains(said, "status of 4") { // the refusals that are looked at
				t.Errorf("%s: the console says %s", v, said)
			}
		}
	}
}
