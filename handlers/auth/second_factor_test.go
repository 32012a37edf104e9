package auth_test

import (
	"encoding/base32"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"posthorn/handlers"
	"posthorn/handlers/auth"
)

// app is an authenticator app that has scanned the page's seed.
type app struct {
	w    *world
	seed string
	used string // the code that turned it on
}

func (a app) code() string {
	a.w.t.Helper()
	code, err := totp.GenerateCode(a.seed, a.w.clock.now())
	if err != nil {
		a.w.t.Fatal(err)
	}
	return code
}

var seedOnPage = regexp.MustCompile(`id="seed">([A-Z2-7 ]{39})<`)

// enrol turns the second factor on and returns the app and the recovery codes.
func (b *browser) enrol() (app, []string) {
	b.w.t.Helper()
	b.post("/account/totp/start", nil).to("/account/totp")
	page := b.get("/account/totp").want(200, "<svg", "<path")
	m := seedOnPage.FindStringSubmatch(page.Body)
	if m == nil {
		b.w.t.Fatal(page.Body)
	}
	a := app{w: b.w, seed: strings.ReplaceAll(m[1], " ", "")}
	if _, err := base32.StdEncoding.DecodeString(a.seed); err != nil {
		b.w.t.Fatal(err)
	}
	b.post("/account/totp", url.Values{"code": {"000000"}}).want(400)
	a.used = a.code()
	b.post("/account/totp", url.Values{"code": {a.used}}).to("/account/recovery-codes")
	shown := b.get("/account/recovery-codes").want(200)
	codes := regexp.MustCompile(`[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}`).FindAllString(shown.Body, -1)
	if len(codes) < 10 {
		b.w.t.Fatal(shown.Body)
	}
	// Opened again, the pages of the setup redirect to the account, which says that the second factor is on.
	b.get("/account/recovery-codes").to("/account")
	b.get("/account/totp").to("/account")
	return a, codes[:10]
}

func TestASecondFactorIsAskedForAndTakenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, path := w.tenant("A", w.person("a@example.com"))
	first := w.signedIn("a@example.com")
	app, recovery := first.enrol()
	form := url.Values{"email": {"a@example.com"}, "password": {goodPassword}, "next": {path + "/"}}

	b := w.browser()
	b.post("/sign-in", form).to("/sign-in/code?next=")
	half := b.cookies["posthorn"]
	b.get(path + "/").to("/sign-in") // the password alone opens nothing
	b.get("/account").to("/sign-in")
	b.get("/sign-in/code").want(200, `href="/sign-in/lost-device"`)
	b.post("/sign-in/code", url.Values{"code": {app.used}}).want(400, "already used")
	w.clock.pass(30 * time.Second)
	code := app.code()
	b.post("/sign-in/code", url.Values{"code": {code}, "next": {path + "/"}}).to(path + "/")
	b.get(path + "/").want(200)
	if b.cookies["posthorn"].Value == half.Value {
		t.Error("the token that knew the password alone is the session's")
	}

	thief := w.browser()
	thief.post("/sign-in", form).to("/sign-in/code")
	thief.post("/sign-in/code", url.Values{"code": {code}}).want(400, "already used")
	thief.post("/sign-in/code", url.Values{"code": {"nonsense"}}).want(400)
	thief.post("/sign-in/code", url.Values{"code": {strings.ToUpper(recovery[3])}}).to("/")

	again := w.browser()
	again.post("/sign-in", form).to("/sign-in/code")
	again.post("/sign-in/code", url.Values{"code": {recovery[3]}}).want(400)
	for range 4 {
		again.post("/sign-in/code", url.Values{"code": {"111111"}}).want(400)
	}
	w.clock.pass(30 * time.Second)
	again.post("/sign-in/code", url.Values{"code": {app.code()}}).want(429, "Too many attempts")
	w.SQL("UPDATE account_limits SET until = now()")
	again.post("/sign-in/code", url.Values{"code": {app.code()}}).to("/")

	first.post("/account/totp/off", nil).to("/account")
	w.browser().post("/sign-in", form).to(path + "/")
	if n := one[int](w, "SELECT count(*) FROM recovery_codes"); n != 0 {
		t.Errorf("%d recovery codes are left", n)
	}
	if sealed := one[int](w, "SELECT count(*) FROM people WHERE totp IS NOT NULL"); sealed != 0 {
		t.Error("the seed is still there")
	}
}

func TestChangesOfTheSignInNeedAFreshSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenant("A", w.person("a@example.com"))
	b := w.signedIn("a@example.com")
	w.SQL("UPDATE sessions SET fresh_at = now() - interval '11 minutes'")
	for _, path := range []string{"/account/email", "/account/password", "/account/totp/start", "/account/totp", "/account/totp/off", "/account/recovery-codes", "/account/delete"} {
		b.post(path, url.Values{"email": {"b@example.com"}, "password": {"another good one"}}, "Referer", base+"/account").to("/account/confirm?next=%2Faccount")
	}
	b.get("/account").want(200)
	b.get("/account/confirm?next=%2Faccount").want(200, "a@example.com")
	old := b.cookies["posthorn"]
	b.post("/account/confirm", url.Values{"password": {"wrong"}}).want(400, "password is incorrect")
	b.post("/account/confirm", url.Values{"password": {goodPassword}, "next": {"//evil.example"}}).to("/account")
	if b.cookies["posthorn"].Value == old.Value {
		t.Error("the token stayed the same")
	}
	thief := w.browser()
	thief.cookies["posthorn"] = old
	thief.get("/account").to("/sign-in")
	b.post("/account/password", url.Values{"password": {"another good one"}}).to("/account")
	b.get("/account").want(200, "Password changed")
	w.browser().post("/sign-in", url.Values{"email": {"a@example.com"}, "password": {goodPassword}}).want(400)
	w.browser().post("/sign-in", url.Values{"email": {"a@example.com"}, "password": {"another good one"}}).to("/")
	w.lastMail("a@example.com", "sign_in_alert")
}

// Nobody is asked for a password that they don't have, and who forgot theirs finds the way out.
func TestNobodyIsAskedForAPasswordThatTheyDoNotHave(t *testing.T) {
	t.Parallel()
	for email, c := range map[string]struct {
		password     string
		wants, lacks []string
	}{
		"a@example.com": {"", []string{`type="password"`, `href="/reset"`, "Forgot password?"}, []string{"no password"}},
		"b@example.com": {"none", []string{"no password", "b@example.com", `href="/reset"`, "Set a password"}, []string{`type="password"`}},
		"you@localhost": {"none", []string{"no password", "posthorn open"}, []string{`type="password"`, "/reset"}},
	} {
		w := newWorld(t, func(_ *handlers.Config, d *auth.Deps) { d.Local = true })
		w.tenant("A", w.person("first@example.com"))
		b := w.signedIn("first@example.com")
		w.SQL("UPDATE people SET email = $1", email)
		if c.password != "" {
			w.SQL("UPDATE people SET password = $1", c.password)
		}
		page := b.get("/account/confirm?next=%2Faccount").want(200, append(c.wants, "Not now")...)
		for _, part := range c.lacks {
			if strings.Contains(page.Body, part) {
				t.Errorf("%s reads %q", email, part)
			}
		}
	}
}
