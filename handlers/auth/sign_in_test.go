package auth_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/auth"
)

func TestSigningUpLeadsThroughAMailIntoATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	b.post("/sign-up", url.Values{"tenant": {"Acme"}, "name": {"Ada"}, "email": {" Ada@Example.com "}}).to("/sign-up/sent")
	m := w.lastMail("ada@example.com", "verify_address")
	if !strings.HasPrefix(m.Link, base+"/verify-email?token=") {
		t.Fatal(m.Link)
	}
	for range 2 { // opening it uses nothing up
		b.get("/verify-email?token="+m.Token).want(200, "ada@example.com")
	}
	b.post("/verify-email", url.Values{"token": {m.Token}, "password": {"acme1234"}}).want(400, "too common")
	b.post("/verify-email", url.Values{"token": {m.Token}, "password": {goodPassword}}).to("/")
	home := b.get("/").to("/t/ten_")
	b.get(home).want(200, "Acme", "Ada")
	b.post("/verify-email", url.Values{"token": {m.Token}, "password": {goodPassword}}).want(410, "link_used")
	b.post("/sign-out", nil).to("/sign-in")
	b.get(home).to("/sign-in?next=%2Ft%2F")
	b.post("/sign-in", url.Values{"email": {"ADA@example.com"}, "password": {goodPassword}, "next": {home}}).to(home)
	b.get(home).want(200, "Acme")
	if n := one[int](w, "SELECT count(*) FROM audit_log WHERE action = 'sign_in.succeeded' AND tenant_id IS NOT NULL"); n != 2 {
		t.Errorf("%d sign-ins in the audit log", n)
	}
}

func TestATenantLooksUnknownToNonMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenant("A", w.person("a@example.com"))
	_, theirs := w.tenant("Canary of B", w.person("b@example.com"))
	b := w.signedIn("a@example.com")
	first := ""
	for _, path := range []string{theirs, "/t/" + id.Tenant.Format(id.UUID{1}), "/t/nonsense", "/t/%00"} {
		got := b.get(path+"/", "X-Request-Id", "probe").want(http.StatusNotFound)
		if first == "" {
			first = got.Body
		}
		if got.Body != first || strings.Contains(got.Body, "Canary") {
			t.Errorf("%s: %s", path, got.Body)
		}
	}
}

func TestCookiesAreForThisHostAndHTTPSAlone(t *testing.T) {
	t.Parallel()
	for at, name := range map[string]string{
		"https://hooks.example.com": "__Host-posthorn",
		"http://hooks.example.com":  "__Host-posthorn",
		"":                          "__Host-posthorn",
		"http://127.0.0.1:8080":     "posthorn",
		"http://localhost:1":        "posthorn",
		"http://[::1]:8080":         "posthorn",
		"https://127.0.0.1":         "__Host-posthorn",
	} {
		w := newWorld(t, func(c *handlers.Config, _ *auth.Deps) { c.BaseURL = at })
		w.tenant("A", w.person("a@example.com"))
		got := w.browser().post("/sign-in", url.Values{"email": {"a@example.com"}, "password": {goodPassword}})
		if len(got.Cookies) != 1 {
			t.Fatalf("%s: %d cookies", at, len(got.Cookies))
		}
		c := got.Cookies[0]
		if c.Name != name || c.Secure != strings.HasPrefix(name, "__Host-") || !c.HttpOnly ||
			c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || len(c.Value) != 43 {
			t.Errorf("%s: %s", at, c)
		}
		if hsts := got.Header.Get("Strict-Transport-Security"); (hsts == "max-age=31536000") != strings.HasPrefix(at, "https://") || strings.Contains(hsts, "includeSubDomains") {
			t.Errorf("%s: HSTS %q", at, hsts)
		}
	}
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenant("A", w.person("a@example.com"))
	form := url.Values{"email": {"a@example.com"}, "password": {goodPassword}}
	for _, c := range []struct {
		site, origin string
		ok           bool
	}{
		{"same-origin", base, true},
		{"none", "", true},
		{"", "", true}, // no browser
		{"", base, true},
		{"same-site", "http://other.127.0.0.1", false},
		{"cross-site", "https://evil.example", false},
		{"", "https://evil.example", false},
		{"", "null", false},
		{"cross-site", "null", false},
	} {
		var header []string
		if c.site != "" {
			header = append(header, "Sec-Fetch-Site", c.site)
		}
		if c.origin != "" {
			header = append(header, "Origin", c.origin)
		}
		got := w.browser().post("/sign-in", form, header...)
		if c.ok && got.Status != http.StatusSeeOther || !c.ok && (got.Status != http.StatusForbidden ||
			!strings.Contains(got.Body, "cross_origin") || len(got.Cookies) > 0) {
			t.Errorf("%+v: %d", c, got.Status)
		}
	}
}
