package auth_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/id"
)

// kinds are the accounts that sign in, and what differs between them.
var kinds = []struct {
	kind           account.Kind
	root           string // of the paths
	home           string // where a sign-in leads
	password, totp string // the paths of the page behind a link, and of the setup of an authenticator app
	reset          string // where a new password leads
	afterCodes     string // where the recovery codes lead
	cookie, audit  string // the session's cookie, and how actions begin in the audit log
	table          string
}{
	{account.Person, "", "/", "/reset/new", "/account/totp", "/sign-in?done=password", "/account", "posthorn", "", "people"},
	{
		account.Operator, "/console", "/console", "/console/setup", "/console/setup/totp", "/console/setup/totp", "/console",
		"posthorn-console", "operator.", "operators",
	},
}

var recoveryCode = regexp.MustCompile(`[a-z2-7]{4}(-[a-z2-7]{4}){3}`)

// newLink creates an account of a kind and returns the token of a link that sets its password.
func (w *world) newLink(kind account.Kind, email string) (token string) {
	w.t.Helper()
	err := w.db.Console(w.t.Context(), func(q *db.Tx) (err error) {
		link := accounts.NewLink{Purpose: accounts.PasswordLink(kind), Email: email, Life: time.Hour}
		var owner id.UUID
		if kind == account.Operator {
			owner, err = accounts.CreateOperator(w.t.Context(), q, email)
			link.Operator = &owner
		} else {
			owner, err = accounts.AddPerson(w.t.Context(), q, email, "Ada", "none")
			link.Person = &owner
		}
		if err != nil {
			return err
		}
		token, err = accounts.MakeLink(w.t.Context(), q, link)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

func TestPeopleAndOperatorsSignInByTheSameSteps(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(string(k.kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			const email = "a@example.com"
			signIn, code, page := k.root+"/sign-in", k.root+"/sign-in/code", k.root+"/account"
			right := url.Values{"email": {email}, "password": {goodPassword}}
			wrong := url.Values{"email": {email}, "password": {"wrong"}}

			// A link sets the password, once.
			b, token := w.browser(), w.newLink(k.kind, email)
			b.get(page).to(signIn)
			b.get(k.password+"?token="+token).want(200, email)
			b.post(k.password, url.Values{"token": {token}, "password": {"password1"}}).want(400, "too common")
			b.post(k.password, url.Values{"token": {token}, "password": {goodPassword}}).to(k.reset)
			b.post(k.password, url.Values{"token": {token}, "password": {goodPassword}}).want(410, "link_used")

			// An unknown address and a wrong password look the same.
			b = w.browser()
			unknown := b.post(signIn, url.Values{"email": {"b@example.com"}, "password": {"wrong"}}).want(400, "is incorrect").Body
			if known := b.post(signIn, wrong).want(400, "is incorrect").Body; strings.ReplaceAll(known, email, "b@example.com") != unknown {
				t.Error("the page tells whether there is an account")
			}

			// An authenticator app is set up; its recovery codes are shown once.
			b.post(signIn, right)
			if k.kind == account.Person {
				b.post("/account/totp/start", nil).to(k.totp)
			}
			a := app{w: w, seed: strings.ReplaceAll(seedOnPage.FindStringSubmatch(b.get(k.totp).want(200, "<svg").Body)[1], " ", "")}
			b.post(k.totp, url.Values{"code": {"000000"}}).want(400, "the app&#39;s current code")
			a.used = a.code()
			b.post(k.totp, url.Values{"code": {a.used}}).to(page + "/recovery-codes")
			recovery := recoveryCode.FindString(b.get(page + "/recovery-codes").want(200).Body)
			b.get(page + "/recovery-codes").to(k.afterCodes)
			b.get(page).want(200, email)
			b.post(k.root+"/sign-out", nil).to(signIn)
			b.get(page).to(signIn)

			// The password alone opens nothing; a code works once, and the session gets another token.
			b.post(signIn, right).to(code)
			half := b.cookies[k.cookie].Value
			b.get(page).to(signIn)
			b.get(k.totp).to(signIn)
			b.post(code, url.Values{"code": {a.used}}).want(400, "already used")
			b.post(code, url.Values{"code": {recovery}}).to(k.home)
			if b.cookies[k.cookie].Value == half {
				t.Error("the token that knew the password alone is the session's")
			}
			again := w.browser()
			again.post(signIn, right).to(code)
			again.post(code, url.Values{"code": {recovery}}).want(400, "already used")
			w.clock.pass(30 * time.Second)
			again.post(code, url.Values{"code": {a.code()}, "next": {page}}).to(page)

			// A change of the sign-in needs a recent one, and a passkey of another kind's ceremony is none.
			for _, other := range kinds {
				ceremony := w.browser()
				token := ceremony.asked(other.root + "/sign-in/passkey/options")
				form := url.Values{"token": {token}, "credential": {`{"id":"x"}`}}
				want := map[bool]string{true: "wasn&#39;t accepted", false: "started in another browser"}[other.kind == k.kind]
				ceremony.post(k.root+"/sign-in/passkey", form).want(400, want)
			}
			again.post(page+"/passkeys", url.Values{"token": {"none"}}).want(400, "started in another browser")
			w.SQL("UPDATE sessions SET fresh_at = now() - interval '11 minutes'")
			confirm := again.post(page+"/passkeys", url.Values{"token": {"none"}}, "Referer", base+page).to(k.root + "/")
			again.get(confirm).want(200, `type="password"`)

			// Too many tries of an account are limited, with the correct password too. A disabled one has no session.
			for range 10 {
				w.browser().post(signIn, wrong)
			}
			if limited := w.browser().post(signIn, right).want(429, "Too many attempts"); limited.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			w.SQL("DELETE FROM account_limits")
			w.SQL("UPDATE " + k.table + " SET disabled_at = now()")
			again.get(page).to(signIn)
			w.browser().post(signIn, right).want(400, "is incorrect")

			for action, n := range map[string]int{
				"password.changed":   1,
				"totp.enabled":       1,
				"recovery_code.used": 1,
				"sign_out":           1,
				"sign_in.succeeded":  3,
			} {
				got := one[int](w, "SELECT count(*) FROM audit_log WHERE action = $1", k.audit+action)
				if got != n {
					t.Errorf("the audit log has %d of %s, want %d", got, action, n)
				}
			}
			if failed := one[int](w, "SELECT count(*) FROM audit_log WHERE action = $1", k.audit+"sign_in.failed"); failed < 15 {
				t.Errorf("%d failures are in the audit log", failed)
			}
			if k.kind == account.Operator {
				if n := len(w.mails(email)); n != 0 {
					t.Errorf("an operator got %d mails", n)
				}
			} else {
				w.lastMail(email, "sign_in_alert")
			}
		})
	}
}

// A session of one kind opens nothing of the other.
func TestAKindOfSessionOpensNothingOfTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("a@example.com")
	b := w.signedIn("a@example.com")
	b.cookies["posthorn-console"] = &http.Cookie{Name: "posthorn-console", Value: b.cookies["posthorn"].Value}
	b.get("/console/account").to("/console/sign-in")
	b.get("/account").to("/sign-in") // the session that came under another name has ended
}
