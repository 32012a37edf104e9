package admin_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/handlers/admin"
	"posthorn/handlers/auth"
	"posthorn/handlers/credential"
	"posthorn/handlers/openid"
	"posthorn/tools/optest"
	"posthorn/worker/send"
)

// ssoWorld is a console whose operators have a provider, and its server.
func ssoWorld(t *testing.T, change func(*auth.SSO)) (*world, *optest.Provider) {
	t.Helper()
	const base = "https://hooks.example.com"
	op := optest.New(t, base+"/console/sso/callback")
	w := newWorld(t, base, func(d *admin.Deps) {
		d.SSO = &auth.SSO{
			Client:   openid.New(send.NewTrustedClient(), d.Now),
			Provider: openid.Provider{Issuer: op.URL, ClientID: op.ClientID, Secret: op.Secret, Callback: base + "/console/sso/callback"},
		}
		change(d.SSO)
	})
	return w, op
}

// departs starts a sign-in at the provider and returns the redirect URI to which it leads.
func (w *world) departs(op *optest.Provider, path string) *url.URL {
	w.t.Helper()
	got := w.send("GET", path, nil)
	to, found := strings.CutPrefix(got.Header().Get("Refresh"), "0; url=")
	if got.Code != http.StatusOK || !found {
		w.t.Fatalf("%s answered %d: %s", path, got.Code, got.Body)
	}
	return op.Follow(to)
}

func (w *world) signIn(op *optest.Provider, u optest.User, status int, part string) {
	w.t.Helper()
	op.SignIn(u)
	w.want("GET", w.departs(op, "/console/sso").RequestURI(), nil, status, part)
}

func (w *world) forget() { w.cookies = map[string]*http.Cookie{} }

func TestAnOperatorSignsInByTheProvider(t *testing.T) {
	t.Parallel()
	w, op := ssoWorld(t, func(*auth.SSO) {})
	w.want("GET", "/console/sign-in", nil, 200, "Sign in with SSO")
	known := optest.User{Subject: "1", Email: "op@example.com"}
	w.signIn(op, optest.User{Subject: "2", Email: "nobody@example.com"}, 403, "aren&#39;t an operator")
	w.signIn(op, optest.User{Subject: "1", Email: "op@example.com", Unverified: true}, 403, "is verified")
	op.Change(func(s map[string]any) { s["aud"] = "another" })
	w.signIn(op, known, 403, "isn&#39;t valid")
	op.Change(nil)
	w.want("GET", "/console", nil, 303, "/console/sign-in?next=%2Fconsole")
	w.signIn(op, known, 303, "/console")
	w.want("GET", "/console", nil, 200, "op@example.com") // the provider asked for the second factor
	// The callback in another browser, and a second time.
	back := w.departs(op, "/console/sso?next=/console/audit")
	mine := w.cookies
	w.forget()
	w.want("GET", back.RequestURI(), nil, 410, "another browser")
	w.cookies = mine
	w.want("GET", back.RequestURI(), nil, 303, "/console/audit")
	w.want("GET", back.RequestURI(), nil, 410, "already finished")
	// Another account with the operator's address is another person.
	w.signIn(op, optest.User{Subject: "9", Email: "op@example.com"}, 403, "another account")
	// The provider ends the session; a token of another client does not.
	bad := op.LogoutToken("a", "1", "", func(s map[string]any) { s["aud"] = "another" })
	w.want("POST", "/console/sso/logout", url.Values{"logout_token": {bad}}, 400, "invalid_request")
	w.want("GET", "/console", nil, 200, "op@example.com")
	w.want("POST", "/console/sso/logout", url.Values{"logout_token": {op.LogoutToken("b", "1", "", nil)}}, 200, "{}")
	w.want("GET", "/console", nil, 303, "/console/sign-in?next=%2Fconsole")
	// The session ends with the provider's.
	op.Change(func(s map[string]any) { s["session_expiry"] = time.Now().Add(-time.Second).Unix() })
	w.signIn(op, known, 403, "is over")
}

func TestTheProviderNamesOperators(t *testing.T) {
	t.Parallel()
	w, op := ssoWorld(t, func(s *auth.SSO) {
		s.Provider.RoleClaim, s.Value, s.Only, s.BreakGlass = "groups", "ops", true, []string{"glass@example.com"}
	})
	ops := map[string]any{"groups": []string{"ops"}}
	none := map[string]any{"groups": []string{}}
	w.signIn(op, optest.User{Subject: "1", Email: "op@example.com", Claims: none}, 403, "name you as an operator") // who is one by the command line alone
	w.signIn(op, optest.User{Subject: "2", Email: "new@example.com", Claims: ops}, 303, "/console")
	w.want("GET", "/console", nil, 200, "new@example.com")
	w.forget()
	w.signIn(op, optest.User{Subject: "2", Email: "new@example.com", Claims: none}, 403, "name you as an operator") // no longer
	// An object's false is no group.
	for _, value := range []any{false, nil, "", "false", 0, []any{}, map[string]any{}} {
		claims := map[string]any{"groups": map[string]any{"ops": value}}
		w.signIn(op, optest.User{Subject: "2", Email: "new@example.com", Claims: claims}, 403, "name you as an operator")
		w.signIn(op, optest.User{Subject: "3", Email: "stranger@example.com", Claims: claims}, 403, "name you as an operator")
	}
	// A password opens the console for the break-glass account alone.
	w.want("POST", "/console/setup", url.Values{"token": {w.link}, "password": {password}}, 403, "single sign-on")
	if err := w.db.Console(t.Context(), func(q *db.Tx) error {
		for _, email := range []string{"op@example.com", "glass@example.com"} {
			hash, err := credential.NewPasswords().Hash(t.Context(), password)
			if err != nil {
				return err
			}
			if email != "op@example.com" {
				if _, err := q.InsertOperator(t.Context(), sql.InsertOperatorParams{
					ID:        db.NewID(),
					Email:     email,
					CreatedAt: time.Now(),
				}); err != nil {
					return err
				}
			}
			row, err := q.FindOperator(t.Context(), email)
			if err != nil {
				return err
			}
			if err := q.SetOperatorPassword(t.Context(), &hash, row.ID); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	w.want("POST", "/console/sign-in", url.Values{"email": {"op@example.com"}, "password": {password}}, 400, "sign in with single sign-on")
	w.want("POST", "/console/sign-in", url.Values{"email": {"glass@example.com"}, "password": {password}}, 303, "/console/setup/totp")
}

func TestAnOperatorWhoseGroupsAreLeftOutStaysOne(t *testing.T) {
	t.Parallel()
	w, op := ssoWorld(t, func(s *auth.SSO) { s.Provider.RoleClaim, s.Value = "groups", "ops" })
	known := optest.User{Subject: "2", Email: "new@example.com"}
	tooMany := func(s map[string]any) { s["hasgroups"] = true }
	// Someone new, and an operator of the command line who has no account of the provider yet.
	op.Change(tooMany)
	w.signIn(op, known, 403, "because there are too many")
	w.signIn(op, optest.User{Subject: "1", Email: "op@example.com"}, 403, "because there are too many")
	op.Change(nil)
	named := known
	named.Claims = map[string]any{"groups": []string{"ops"}}
	w.signIn(op, named, 303, "/console")
	w.forget()
	op.Change(tooMany)
	w.signIn(op, known, 303, "/console")
	w.want("GET", "/console/audit", nil, 200, "because there are too many")
	w.forget()
	// A claim that is absent is what some providers send for a person without groups.
	op.Change(nil)
	w.signIn(op, known, 403, "send the claim")
}

func TestAnOperatorIsUnlinked(t *testing.T) {
	t.Parallel()
	w, op := ssoWorld(t, func(*auth.SSO) {})
	w.signIn(op, optest.User{Subject: "1", Email: "op@example.com"}, 303, "/console")
	w.signIn(op, optest.User{Subject: "2", Email: "op@example.com"}, 403, "posthorn operator unlink-sso")
	by := db.Author{Kind: "command", ID: "root"}
	if was, err := accounts.UnlinkSSO(t.Context(), w.db, account.Operator, "op@example.com", "the realm was rebuilt", by); err != nil || was != 1 {
		t.Fatalf("unlinked: %d, %v", was, err)
	}
	w.want("GET", "/console", nil, 303, "/console/sign-in?next=%2Fconsole")
	w.signIn(op, optest.User{Subject: "2", Email: "op@example.com"}, 303, "/console")
	w.want("GET", "/console/audit", nil, 200, "the realm was rebuilt")
	w.signIn(op, optest.User{Subject: "1", Email: "op@example.com"}, 403, "another account")
	if was, err := accounts.UnlinkSSO(t.Context(), w.db, account.Operator, "nobody@example.com", "why", by); was != 0 || !db.IsMissing(err) {
		t.Errorf("nobody was unlinked: %d, %v", was, err)
	}
}
