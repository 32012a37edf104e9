package auth_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"posthorn/domain/id"
)

func TestATokenFromBeforeTheSignInIsInvalid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, path := w.tenant("A", w.person("a@example.com"))
	b := w.browser()
	planted := &http.Cookie{Name: "posthorn", Value: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}
	b.cookies["posthorn"] = planted
	form := url.Values{"email": {"a@example.com"}, "password": {goodPassword}}
	b.post("/sign-in", form).to("/")
	first := b.cookies["posthorn"]
	if first.Value == planted.Value {
		t.Fatal("the planted token was taken")
	}
	b.get(path + "/").want(200)
	b.post("/sign-in", form).to("/")
	if b.cookies["posthorn"].Value == first.Value {
		t.Fatal("a new sign-in kept the token")
	}
	for what, old := range map[string]*http.Cookie{"planted": planted, "older": first} {
		thief := w.browser()
		thief.cookies["posthorn"] = old
		if got := thief.get(path + "/"); got.Status != http.StatusSeeOther {
			t.Errorf("the %s token opens the tenant: %d", what, got.Status)
		}
	}
	last := b.cookies["posthorn"]
	b.post("/sign-out", nil).to("/sign-in")
	b.cookies["posthorn"] = last
	b.get(path + "/").to("/sign-in")
}

func TestSessionsEndUnusedAndAtTheirAge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	person := w.person("a@example.com")
	_, path := w.tenant("A", person)
	for what, c := range map[string]struct {
		change string
		alive  bool
	}{
		"used 7 h 59 min ago":     {"seen_at = now() - interval '7 hours 59 minutes'", true},
		"used 8 h ago":            {"seen_at = now() - interval '8 hours'", false},
		"a minute before its end": {"expires_at = now() + interval '1 minute'", true},
		"at its end":              {"expires_at = now()", false},
	} {
		b := w.signedIn("a@example.com")
		w.SQL("UPDATE sessions SET " + c.change)
		got := b.get(path + "/")
		if (got.Status == 200) != c.alive {
			t.Errorf("%s: %d", what, got.Status)
		}
		if n := one[int](w, "SELECT count(*) FROM sessions"); !c.alive && n != 0 {
			t.Errorf("%s: the session could be revived", what)
		}
		w.SQL("DELETE FROM sessions")
	}
	b := w.signedIn("a@example.com")
	if life := one[float64](w, "SELECT extract(epoch FROM expires_at - created_at) FROM sessions"); life != 14*24*3600 {
		t.Errorf("it lives %v s", life)
	}
	w.SQL("UPDATE sessions SET seen_at = now() - interval '2 minutes'")
	b.get(path + "/").want(200)
	if ago := one[float64](w, "SELECT extract(epoch FROM now() - seen_at) FROM sessions"); ago > 60 {
		t.Errorf("use %v s ago was not written down", ago)
	}
	w.clock.pass(-30 * 24 * time.Hour) // the web server's clock steps back: the database's clock decides
	w.SQL("UPDATE sessions SET expires_at = now()")
	b.get(path + "/").to("/sign-in")
}

func TestADisabledPersonIsSignedOutImmediately(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	person := w.person("a@example.com")
	_, path := w.tenant("A", person)
	b := w.signedIn("a@example.com")
	b.get(path + "/").want(200)
	w.SQL("UPDATE people SET disabled_at = now() WHERE id = $1", person)
	b.get(path + "/").to("/sign-in")
	w.browser().post("/sign-in", url.Values{"email": {"a@example.com"}, "password": {goodPassword}}).want(400, "is incorrect")
	w.SQL("UPDATE people SET disabled_at = NULL WHERE id = $1", person)
	b.get(path + "/").to("/sign-in") // the session is deleted, not inactive
}

func TestARemovedMemberLosesAccessImmediately(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	person := w.person("a@example.com")
	tenant, path := w.tenant("A", person)
	b := w.signedIn("a@example.com")
	b.get("/").to("/t/" + id.Tenant.Format(tenant))
	w.SQL("DELETE FROM memberships WHERE person_id = $1", person)
	b.get(path + "/").want(404)
	b.get("/").to("/tenants")
	b.get("/tenants").want(200, "You aren&#39;t a member of any tenant")
}
