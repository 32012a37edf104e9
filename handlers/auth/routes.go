// Package auth holds the pages outside of a tenant: signing up, in, and out, invitations, and the pages of the account.
package auth

import (
	"log/slog"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/domain/account"
	"posthorn/handlers"
	"posthorn/handlers/credential"
	"posthorn/handlers/openid"
	"posthorn/handlers/passkey"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	DB      *db.DB
	Keys    *seal.Ring // seals links in mails and seeds of second factors
	BaseURL string     // the public URL, without a slash at its end
	Signup  bool       // anybody can create a tenant
	OpenID  *openid.Client
	// MailIsShown says that mails are not sent but shown at /dev/mail. Pages then link there.
	MailIsShown bool
	// Local says that only this machine reaches the server. The person who started it opens it by a link, without a
	// password.
	Local bool
	Log   *slog.Logger
	Now   func() time.Time
}

// auth holds the handlers.
type auth struct {
	Deps
	passwords *credential.Passwords
	passkeys  *passkey.Service // nil: none on this host
	addresses *handlers.Addresses
}

// Routes is the route table of accounts.
func Routes(d Deps) []handlers.Route {
	a := &auth{
		Deps: d, passwords: credential.NewPasswords(), addresses: handlers.NewAddresses(d.Now),
		passkeys: passkey.New(d.DB, d.BaseURL, account.Person),
	}
	routes := []handlers.Route{
		open("GET", "/", a.start),
		open("GET", "/sign-in", a.showSignIn),
		open("POST", "/sign-in", a.signIn),
		open("GET", "/sign-in/code", a.showCode),
		open("POST", "/sign-in/code", a.signInCode),
		open("POST", "/sign-in/passkey/options", a.passkeyOptions),
		withCredential(open("POST", "/sign-in/passkey", a.signInPasskey)),
		open("GET", "/sign-in/lost-device", a.showLostDevice),
		open("POST", "/sign-out", a.signOut),
		open("GET", "/sign-up", a.showSignUp),
		open("POST", "/sign-up", a.signUp),
		open("GET", "/sign-up/sent", a.showSent),
		open("GET", "/verify-email", a.showVerify),
		open("POST", "/verify-email", a.verify),
		open("GET", "/reset", a.showReset),
		open("POST", "/reset", a.reset),
		open("GET", "/reset/sent", a.showSent),
		open("GET", "/reset/new", a.showNewPassword),
		open("POST", "/reset/new", a.setNewPassword),
		open("GET", "/change-email", a.showChangeEmail),
		open("POST", "/change-email", a.confirmEmail),
		open("GET", "/invitations/accept", a.showInvitation),
		open("POST", "/invitations/accept", a.acceptInvitation),
		changing(open("GET", "/portal/open", a.openPortal)),

		open("GET", "/sign-in/sso", a.showSSO),
		waiting(open("POST", "/sign-in/sso", a.findSSO)),
		waiting(changing(open("GET", "/sso/:"+ssoParam, a.startSSO))),
		waiting(changing(open("GET", "/sso/:"+ssoParam+"/again", a.signInAgain))),
		waiting(changing(open("GET", "/sso/:"+ssoParam+"/callback", a.finishSSO))),
		waiting(open("POST", "/sso/:"+ssoParam+"/logout", a.endByProvider)),

		anySession(own("GET", "/tenants", a.listTenants)),
		own("GET", "/tenants/new", a.showNewTenant),
		own("POST", "/tenants/new", a.createTenant),
		own("GET", "/account", a.showAccount),
		own("POST", "/account/name", a.rename),
		own("GET", "/account/confirm", a.showConfirm),
		own("POST", "/account/confirm", a.confirm),
		withCredential(own("POST", "/account/confirm/passkey", a.confirmPasskey)),
		fresh("POST", "/account/passkeys/options", a.newPasskeyOptions),
		withCredential(fresh("POST", "/account/passkeys", a.addPasskey)),
		fresh("POST", "/account/passkeys/rename", a.renamePasskey),
		fresh("POST", "/account/passkeys/remove", a.removePasskey),
		fresh("POST", "/account/passkeys/require", a.requirePasskey),
		fresh("POST", "/account/passkeys/optional", a.stopRequiringPasskey),
		own("GET", codesPage, a.showCodes),
		own("POST", "/account/sessions/:session_id/end", a.endSession),
		own("POST", "/account/sessions/end-others", a.endOtherSessions),
		fresh("POST", "/account/email", a.changeEmail),
		fresh("POST", "/account/password", a.setPassword),
		fresh("POST", "/account/totp/start", a.startTOTP),
		fresh("GET", "/account/totp", a.showTOTP),
		fresh("POST", "/account/totp", a.confirmTOTP),
		fresh("POST", "/account/totp/off", a.stopTOTP),
		fresh("POST", codesPage, a.renewRecoveryCodes),
		fresh("POST", "/account/delete", a.deleteAccount),
	}
	if d.Local {
		routes = append(routes, changing(open("GET", "/sign-in/link", a.openLocally)))
	}
	return routes
}

// maxForm bounds the body of a form.
const maxForm = 16 << 10

// withCredential is a route whose form holds a passkey's response: an authenticator can add certificates to it.
func withCredential(r handlers.Route) handlers.Route {
	r.MaxBody = 64 << 10
	return r
}

// waiting is a route whose handler waits for a server outside. It holds no place in the queue.
func waiting(r handlers.Route) handlers.Route {
	r.Queued = false
	return r
}

// changing is a link that changes something: it is used up, or starts a sign-in. It waits in the queue as forms do.
func changing(r handlers.Route) handlers.Route {
	r.Changes, r.Queued = true, true
	return r
}

// open is a page for everybody. Forms wait in the queue of strangers.
func open(method, path string, h handlers.Handler) handlers.Route {
	return handlers.Route{
		Method: method, Path: path, Access: handlers.Access{Public: true}, MaxBody: maxForm, Handler: h,
		Queued: method == "POST",
	}
}

// own is a page of the signed-in person's account.
func own(method, path string, h handlers.Handler) handlers.Route {
	return handlers.Route{
		Method: method, Path: path, Access: handlers.Access{Session: true}, MaxBody: maxForm, Handler: h,
	}
}

// anySession opens a page for a session that a tenant's identity provider started too.
func anySession(r handlers.Route) handlers.Route {
	r.Access.Any = true
	return r
}

// fresh is a change of how the account is opened: the person must have signed in within the last minutes.
func fresh(method, path string, h handlers.Handler) handlers.Route {
	r := own(method, path, h)
	r.Access.Fresh = true
	return r
}
