package auth_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"posthorn/db"
	"posthorn/domain/account"
)

// asked is a ceremony that a browser's script started.
func (b *browser) asked(path string) (token string) {
	b.w.t.Helper()
	p := b.post(path, url.Values{}, "Accept", "application/json").want(http.StatusOK)
	var in struct {
		Token     string
		PublicKey struct {
			Challenge        string
			RPID             string `json:"rpId"`
			UserVerification string
			RP               struct{ ID string }
			Authenticator    struct{ UserVerification string } `json:"authenticatorSelection"`
		}
	}
	if err := json.Unmarshal([]byte(p.Body), &in); err != nil {
		b.w.t.Fatal(err)
	}
	if len(in.Token) < 40 || len(in.PublicKey.Challenge) < 20 || in.PublicKey.RPID+in.PublicKey.RP.ID != "localhost" ||
		in.PublicKey.UserVerification+in.PublicKey.Authenticator.UserVerification != "required" {
		b.w.t.Fatalf("%s answered %s", path, p.Body)
	}
	return in.Token
}

// The browser's part is in web/e2e/passkeys_test.go.
func TestAPasskeysCeremonyIsOneBrowsersAndWorksOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("a@example.com")
	b, other := w.browser(), w.browser()
	form := func(token string) url.Values { return url.Values{"token": {token}, "credential": {`{"id":"x"}`}} }
	token := b.asked("/sign-in/passkey/options")
	b.post("/sign-in/passkey", form(token)).want(http.StatusBadRequest, "wasn&#39;t accepted")
	b.post("/sign-in/passkey", form(token)).want(http.StatusBadRequest, "started in another browser")
	other.asked("/sign-in/passkey/options")
	other.post("/sign-in/passkey", form(b.asked("/sign-in/passkey/options"))).want(http.StatusBadRequest, "started in another browser")
	b.post("/sign-in/passkey", form("")).want(http.StatusBadRequest, "started in another browser")
	if n := one[int](w, "SELECT count(*) FROM audit_log WHERE action = 'sign_in.failed'"); n != 4 {
		t.Errorf("%d failures are in the audit log", n)
	}
	if n := one[int](w, "SELECT count(*) FROM sessions"); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

func TestPasskeysAreChangedAfterARecentSignInAndByTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("a@example.com")
	victim := w.person("b@example.com")
	w.SQL("INSERT INTO passkeys (id, person_id, credential_id, credential, name, created_at) VALUES ($1, $2, 'theirs', '{}', 'Theirs', now())", db.NewID(), victim)
	theirs := url.Values{"passkey": {(&account.Passkey{Credential: []byte("theirs")}).FormID()}, "name": {"Mine"}}
	paths := []string{"/account/passkeys", "/account/passkeys/rename", "/account/passkeys/remove"}
	for _, path := range paths {
		w.browser().post(path, theirs).want(http.StatusUnauthorized)
	}
	a := w.signedIn("a@example.com")
	token := a.asked("/account/passkeys/options")
	a.post("/account/passkeys", url.Values{"token": {token}, "credential": {"nonsense"}}).want(http.StatusBadRequest, "wasn&#39;t accepted")
	a.post("/account/passkeys/rename", theirs).want(http.StatusNotFound)
	a.post("/account/passkeys/remove", theirs).want(http.StatusNotFound)
	a.post("/account/passkeys/remove", url.Values{"passkey": {"%%"}}).want(http.StatusNotFound)
	if got := one[string](w, "SELECT string_agg(name, ',') FROM passkeys"); got != "Theirs" {
		t.Errorf("the passkeys are called %q", got)
	}
	w.SQL("UPDATE sessions SET fresh_at = now() - interval '11 minutes'")
	for _, path := range paths {
		a.post(path, theirs).to("/account/confirm")
	}
	a.post("/account/passkeys/options", url.Values{}, "Accept", "application/json").want(http.StatusForbidden, "sign_in_again")
	b := w.signedIn("b@example.com")
	b.get("/account").want(http.StatusOK, "Theirs")
	b.post("/account/passkeys/rename", url.Values{"passkey": theirs["passkey"], "name": {" "}}).want(http.StatusBadRequest, "Enter a name")
	b.post("/account/passkeys/remove", theirs).to("/account")
	w.lastMail("b@example.com", "sign_in_alert")
}
