package auth_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"posthorn/db"
	"posthorn/domain/account"
)

// A passkey alone leaves the password sufficient, since another browser possibly lacks the passkey. If it is required,
// the password alone opens nothing, and a recovery code replaces a lost passkey. web/e2e/passkeys_test.go shows that a
// passkey works.
func TestARequiredPasskeyIsAskedForAfterThePassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	me := w.person("a@example.com")
	_, path := w.tenant("A", me)
	form := url.Values{"email": {"a@example.com"}, "password": {goodPassword}, "next": {path + "/"}}
	b := w.signedIn("a@example.com")
	b.post("/account/passkeys/require", nil).want(http.StatusConflict, "Add a passkey first")

	w.SQL("INSERT INTO passkeys (id, person_id, credential_id, credential, name, created_at) VALUES ($1, $2, 'mine', '{}', 'Mine', now())", db.NewID(), me)
	b.get("/account").want(200, "Your password alone still signs you in", "Require a passkey")
	w.browser().post("/sign-in", form).to(path + "/")

	b.post("/account/passkeys/require", nil).to("/account/recovery-codes")
	codes := regexp.MustCompile(`[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}`).FindAllString(b.get("/account/recovery-codes").want(200).Body, -1)
	if len(codes) < 10 {
		t.Fatalf("%d recovery codes", len(codes))
	}
	b.get("/account").want(200, "Your passkey", "10 recovery codes left")
	b.post("/account/passkeys/require", nil).want(http.StatusConflict)
	w.lastMail("a@example.com", "sign_in_alert")

	other := w.browser()
	other.post("/sign-in", form).to("/sign-in/code?next=")
	other.get(path + "/").to("/sign-in") // the password alone opens nothing
	other.get("/sign-in/code").want(200, "Use your passkey", "Use a passkey", "Recovery code")
	other.post("/sign-in/code", url.Values{"code": {"123456"}}).want(400, "Use your passkey")
	other.post("/sign-in/code", url.Values{"code": {codes[0]}, "next": {path + "/"}}).to(path + "/")
	if has := one[bool](w, "SELECT passkey_required_at IS NOT NULL FROM people"); !has {
		t.Error("a recovery code turned the second factor off")
	}
	b.post("/account/recovery-codes", nil).to("/account/recovery-codes")
	other.post("/account/passkeys/optional", nil).to("/account")
	w.browser().post("/sign-in", form).to(path + "/")
	if n := one[int](w, "SELECT count(*) FROM recovery_codes"); n != 0 {
		t.Errorf("%d recovery codes are left", n)
	}
	want := "passkey.required,recovery_code.used,recovery_codes.renewed,passkey.optional"
	if got := one[string](w, "SELECT string_agg(action, ',' ORDER BY id) FROM audit_log WHERE action LIKE 'passkey.%' OR action LIKE 'recovery%'"); got != want {
		t.Errorf("the audit log has %s", got)
	}
}

// A person without a passkey is not locked out, and turning off an app keeps what the passkey needs.
func TestTheLastPasskeyTakesTheRequirementWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	me := w.person("a@example.com")
	_, path := w.tenant("A", me)
	form := url.Values{"email": {"a@example.com"}, "password": {goodPassword}, "next": {path + "/"}}
	b := w.signedIn("a@example.com")
	for _, name := range []string{"one", "two"} {
		w.SQL("INSERT INTO passkeys (id, person_id, credential_id, credential, name, created_at) VALUES ($1, $2, $3, '{}', 'Mine', now())", db.NewID(), me, []byte(name))
	}
	b.post("/account/passkeys/require", nil).to("/account/recovery-codes")
	b.enrol()
	b.post("/account/totp/off", nil).to("/account")
	if n := one[int](w, "SELECT count(*) FROM recovery_codes"); n != 10 {
		t.Errorf("%d recovery codes are left for the passkey", n)
	}
	b.post("/account/passkeys/remove", url.Values{"passkey": {(&account.Passkey{Credential: []byte("one")}).FormID()}}).to("/account")
	w.browser().post("/sign-in", form).to("/sign-in/code")
	b.post("/account/passkeys/remove", url.Values{"passkey": {(&account.Passkey{Credential: []byte("two")}).FormID()}}).to("/account")
	w.browser().post("/sign-in", form).to(path + "/")
	if n := one[int](w, "SELECT count(*) FROM recovery_codes"); n != 0 {
		t.Errorf("%d recovery codes are left", n)
	}
}
