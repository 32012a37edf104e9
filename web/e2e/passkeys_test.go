//go:build e2e && unix

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"posthorn/tools/look"
)

// authenticator gives a tab's browser a device that verifies its person, and returns the device's id.
func authenticator(tab *look.Tab) (device webauthn.AuthenticatorID) {
	tab.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		if _, err := chromedp.Call(ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
			return err
		}
		made, err := chromedp.Call(ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: "ctap2", Transport: "internal", HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		}})
		if err == nil {
			device = made.AuthenticatorID
		}
		return err
	}))
	return device
}

// verifies says whether the device verifies its person.
func verifies(tab *look.Tab, device webauthn.AuthenticatorID, yes bool) {
	tab.Do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: device, IsUserVerified: yes})
		return err
	}))
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
	// The same device has one already.
	tab.Press("Add passkey")
	tab.Sees("already has a passkey")
	out := func() {
		tab.Open(here + o.root)
		signOut(tab)
	}
	out()
	inspectOpen(t, tab)
	tab.Press("Sign in with a passkey")
	tab.Arrives("/t/ten_")
	// A device that does not verify its person opens nothing.
	out()
	verifies(tab, device, false)
	tab.Press("Sign in with a passkey")
	tab.Sees("No passkey was used")
	tab.Arrives("/sign-in")
	verifies(tab, device, true)
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
	var told int
	if err := s.sql.QueryRow(t.Context(), `SELECT count(*) FROM posthorn.mails WHERE recipient = $1 AND kind = 'sign_in_alert'`, o.owner.email).Scan(&told); err != nil || told < 2 {
		t.Errorf("%d mails tell of the passkey: %v", told, err)
	}
	var audited int
	if err := s.sql.QueryRow(t.Context(), `SELECT count(*) FROM posthorn.audit_log WHERE action IN ('passkey.added', 'passkey.removed') AND tenant_id IS NOT NULL`).Scan(&audited); err != nil || audited != 2 {
		t.Errorf("%d entries of the audit log tell of the passkey: %v", audited, err)
	}
}
