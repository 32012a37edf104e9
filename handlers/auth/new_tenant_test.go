package auth_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/domain/access"
)

func TestWhoHasAnAccountCreatesAFurtherTenantSignedIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.person("ada@example.com")
	_, first := w.tenant("First", ada)
	b := w.signedIn("ada@example.com")
	b.get("/tenants").want(200, `href="/tenants/new"`)
	b.get(first+"/").want(200, `href="/tenants"`)
	b.get("/sign-up").to("/tenants/new")
	b.post("/tenants/new", url.Values{"name": {" "}}).want(http.StatusBadRequest, "aria-invalid")
	home := b.post("/tenants/new", url.Values{"name": {"Second"}}).to("/t/ten_")
	b.get(home).want(200, "Second created")
	if n := one[int](w, "SELECT count(*) FROM memberships WHERE person_id = $1 AND role = 'owner'", ada); n != 2 {
		t.Errorf("the owner of %d tenants", n)
	}
	if len(w.mails("ada@example.com")) > 0 {
		t.Error("a mail was sent")
	}
	b.get(first + "/").want(200) // no session has ended

	lonely := w.person("lonely@example.com")
	c := w.signedIn("lonely@example.com")
	c.get("/tenants").want(200, "You aren&#39;t a member of any tenant", `href="/tenants/new"`)
	c.post("/tenants/new", url.Values{"name": {"Own"}}).to("/t/ten_")
	if n := one[int](w, "SELECT count(*) FROM memberships WHERE person_id = $1", lonely); n != 1 {
		t.Errorf("a member of %d tenants", n)
	}
	w.browser().post("/tenants/new", url.Values{"name": {"X"}}).want(http.StatusUnauthorized)
	w.SQL(`UPDATE platform SET settings = '{"sign_up":"invite"}'`)
	b.post("/tenants/new", url.Values{"name": {"Third"}}).want(http.StatusForbidden, "Sign-up is closed")
}

// Signing up with the address of an account shows the same page. The mail links to where the tenant is created, with
// its name.
func TestSigningUpAgainLeadsToTheTenantThatWasAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenant("A", w.person("ada@example.com"))
	old := w.signedIn("ada@example.com")
	b := w.browser()
	sent := b.post("/sign-up", url.Values{"tenant": {"Second & <co>"}, "name": {"Ada"}, "email": {"ada@example.com"}}).to("/sign-up/sent")
	b.get(sent).want(200, "Check your email", "If ada@example.com is correct")
	m := w.lastMail("ada@example.com", "account_exists")
	path := strings.TrimPrefix(m.Link, base)
	u, err := url.Parse(m.Link)
	if err != nil {
		t.Fatal(err)
	}
	b.get(path).want(200, "Sign in")
	next := b.post("/sign-in", url.Values{"email": {"ada@example.com"}, "password": {goodPassword}, "next": {u.Query().Get("next")}}).to("/tenants/new?name=Second")
	b.get(next).want(200, `value="Second &amp; &lt;co&gt;"`)
	old.get("/account").want(200) // no session has ended
}

func TestWhatWasDoneSignedOutIsSaidOnTheSignInPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, _ := w.tenant("A", w.person("a@example.com"))
	w.join(tenant, w.person("b@example.com"), access.Viewer)
	b := w.browser()
	b.post("/reset", url.Values{"email": {"a@example.com"}}).to("/reset/sent?to=a%40example.com")
	m := w.lastMail("a@example.com", "reset_password")
	to := b.post("/reset/new", url.Values{"token": {m.Token}, "password": {"quite another thing"}}).to("/sign-in?done=password")
	b.get(to).want(200, "Your new password is set")
	b.get("/sign-in?done=nonsense").want(200)
	b.get("/reset/sent?to=%3Cb%3Enobody").want(200, "If the address is correct")

	mine := w.signedIn("b@example.com")
	mine.post("/account/email", url.Values{"email": {"c@example.com"}}).to("/account")
	change := w.lastMail("c@example.com", "verify_address")
	if !strings.Contains(change.Data, `"change":true`) {
		t.Errorf("the mail to the new address reads as at sign-up: %s", change.Data)
	}
	elsewhere := w.browser()
	elsewhere.get(elsewhere.post("/change-email", url.Values{"token": {change.Token}}).to("/sign-in?done=email")).want(200, "Your new email address is confirmed")
	w.browser().get("/sign-in/lost-device").want(200, "posthorn account reset-second-factor")
}
