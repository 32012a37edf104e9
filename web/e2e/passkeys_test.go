//go:build e2e && unix

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"posthorn/domain/id"
	"posthorn/tools/look"
)

// authenticator gives a tab's browser a device that verifies its person, and returns the device's id.
func authenticator(tab *look.Tab) (device webauthn.AuthenticatorID) {
	tab.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		if _, err := chromedp.Call(ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return err
		}
		made, err := chromedp.Call(
			ctx,
			webauthn.AddVirtualAuthenticator,
			webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
				Protocol:                    "ctap2",
				Transport:                   "internal",
				HasResidentKey:              true,
				HasUserVerification:         true,
				IsUserVerified:              true,
				AutomaticPresenceSimulation: true,
			}},
		)
		if err == nil {
			device = made.AuthenticatorID
		}
		return err
	}))
	return device
}

// doesNotVerify makes the device fail to verify its person from now on.
func doesNotVerify(tab *look.Tab, device webauthn.AuthenticatorID) {
	tab.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{
			AuthenticatorID: device,
			IsUserVerified:  false,
		})
		return err
	}))
}

// fits holds the open page against axe-core and the width of each view.
func fits(t *testing.T, tab *look.Tab, page string) {
	t.Helper()
	for _, v := range look.Views() {
		tab.Show(v)
		inspectOpen(t, tab)
		if wide := tab.Overflow(); wide != "" {
			t.Errorf("%s at %s: %s", page, v, wide)
		}
		tab.Picture("passkeys"+page, v)
	}
	tab.Show(look.View{})
}

// passkeySignsIn follows a passkey from the account page through sign-ins to its removal. Passkeys belong to a host
// name, so the server is reached as localhost.
func passkeySignsIn(t *testing.T, s *stage) {
	o := s.office(t, "Passkeys Ltd")
	here := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	tab := s.browser.Visitor(t, look.View{})
	device := authenticator(tab)
	tab.Open(here + "/sign-in")
	tab.Fill("Email address", o.owner.email)
	tab.Fill("Password", password)
	tab.Press("Sign in")
	tab.Arrives("/t/ten_")
	tab.Open(here + "/account")
	tab.Fill("Name optional", "Blue key")
	tab.Press("Add passkey")
	tab.Sees("Passkey added")
	inspectOpen(t, tab)
	for _, page := range []string{"/account", o.root + "/settings/sso"} {
		tab.Open(here + page)
		fits(t, tab, page)
	}
	tab.Open(here + "/account")
	// The same device has one already.
	tab.Press("Add passkey")
	tab.Sees("already has a passkey")
	out := func() {
		tab.Open(here + o.root)
		signOut(tab)
	}
	out()
	fits(t, tab, "/sign-in")
	tab.Press("Sign in with a passkey")
	tab.Arrives("/t/ten_")
	// It confirms who someone is, and is renamed.
	tab.Open(here + "/account/confirm?next=/account")
	tab.Press("Use a passkey")
	tab.Arrives("/account")
	look.Type(tab, chromedp.CSS(`input[aria-label^="Name of the passkey"]`), " two")
	tab.Press("Rename")
	tab.Sees("Passkey renamed")
	if name := look.Run(tab, chromedp.Value(chromedp.CSS(`input[aria-label^="Name of the passkey"]`))); !strings.Contains(name, "Blue key") || !strings.Contains(name, "two") {
		t.Errorf("the passkey is called %q", name)
	}
	// Removed, it opens nothing any more, and the person was told of both.
	tab.Press("Remove")
	tab.Sees("Passkey removed")
	out()
	tab.Press("Sign in with a passkey")
	tab.Sees("This passkey wasn't accepted")
	// A device that does not verify its person answers nothing.
	doesNotVerify(tab, device)
	tab.Press("Sign in with a passkey")
	tab.Sees("No passkey was used")
	var told int
	if err := s.sql.QueryRow(t.Context(), `SELECT count(*) FROM posthorn.mails WHERE recipient = $1 AND kind = 'sign_in_alert'`, o.owner.email).Scan(&told); err != nil || told < 2 {
		t.Errorf("%d mails tell of the passkey: %v", told, err)
	}
	var audited int
	tenant, err := id.Tenant.Parse(strings.TrimPrefix(o.root, "/t/"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.sql.QueryRow(t.Context(), `SELECT count(*) FROM posthorn.audit_log WHERE action IN ('passkey.added', 'passkey.removed') AND tenant_id = $1`, tenant.String()).Scan(&audited); err != nil || audited != 2 {
		t.Errorf("%d entries of the audit log tell of the passkey: %v", audited, err)
	}
}

// passkeyIsRequired follows a person who requires the passkey after the password, signs in with both, and with a
// recovery code when the device does not help.
func passkeyIsRequired(t *testing.T, s *stage) {
	o := s.office(t, "Second Factors Ltd")
	here := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	tab := s.browser.Visitor(t, look.View{})
	device := authenticator(tab)
	withPassword := func() {
		tab.Open(here + "/sign-in")
		tab.Fill("Email address", o.owner.email)
		tab.Fill("Password", password)
		tab.Press("Sign in")
	}
	out := func() {
		tab.Open(here + o.root)
		signOut(tab)
	}
	withPassword()
	tab.Arrives("/t/ten_")
	tab.Open(here + "/account")
	tab.Press("Add passkey")
	tab.Sees("Passkey added")
	tab.Sees("Your password alone still signs you in")
	tab.Press("Require a passkey")
	tab.Sees("Save your recovery codes")
	codes := strings.Fields(look.Run(tab, chromedp.Text(chromedp.ID("recovery-codes"))))
	tab.Press("I've saved them")
	tab.Arrives("/account")
	fits(t, tab, "/account-required")
	out()
	withPassword()
	tab.Arrives("/sign-in/code")
	fits(t, tab, "/sign-in/code-passkey")
	tab.Press("Use a passkey")
	tab.Arrives("/t/ten_")
	out()
	withPassword()
	tab.Arrives("/sign-in/code")
	doesNotVerify(tab, device)
	tab.Press("Use a passkey")
	tab.Sees("No passkey was used")
	tab.Fill("Recovery code", codes[0])
	tab.Press("Sign in")
	tab.Arrives("/t/ten_")
	tab.Open(here + "/account")
	tab.Press("Turn off")
	tab.Sees("Turn the second factor off?")
	tab.Press("Turn off") // of the dialog
	tab.Sees("Second factor turned off")
	out()
	withPassword()
	tab.Arrives("/t/ten_")
}

// operatorsPasskeySignsIn follows an operator's passkey from the console's account page through a sign-in to its
// removal. A member's passkey does not open the console.
func operatorsPasskeySignsIn(t *testing.T, s *stage) {
	desk := operator(t, s)
	here := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	tab := s.browser.Visitor(t, look.View{})
	authenticator(tab)
	inside := func() { tab.Until("the console is open", `location.pathname === "/console"`) }
	tab.Open(here + "/console/sign-in")
	fits(t, tab, "/console/sign-in")
	tab.Fill("Email address", desk.email)
	tab.Fill("Password", password)
	tab.Press("Sign in")
	inside()
	tab.Open(here + "/console/account")
	tab.Fill("Name optional", "Desk key")
	tab.Press("Add passkey")
	tab.Sees("Passkey added")
	fits(t, tab, "/console/account")
	signsOut := func() {
		tab.Open(here + "/console")
		tab.Do(chromedp.Click(chromedp.CSS(".person summary")))
		tab.Press("Sign out")
		tab.Arrives("/console/sign-in")
	}
	signsOut()
	tab.Press("Sign in with a passkey")
	inside()
	tab.Open(here + "/sign-in")
	tab.Press("Sign in with a passkey")
	tab.Sees("This passkey wasn't accepted")
	tab.Open(here + "/console/account")
	tab.Press("Remove")
	tab.Sees("Passkey removed")
	signsOut()
	tab.Press("Sign in with a passkey")
	tab.Sees("This passkey wasn't accepted")
	var audited int
	if err := s.sql.QueryRow(t.Context(), `SELECT count(*) FROM posthorn.audit_log WHERE action IN ('operator.passkey.added', 'operator.passkey.removed')`).Scan(&audited); err != nil || audited != 2 {
		t.Errorf("%d entries of the audit log tell of the operator's passkey: %v", audited, err)
	}
}
