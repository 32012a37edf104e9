// Package auth holds the pages outside of a tenant: signing up, in, and out, invitations, and the pages of the account.
package auth

import (
	"log/slog"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
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

// auth holds the handlers of one realm.
type auth struct {
	Deps
	realm
	console   Console // of operators
	passwords *credential.Passwords
	passkeys  *passkey.Service // nil: none on this host
	addresses *handlers.Addresses
}

func newAuth(d Deps, of realm) *auth {
	return &auth{
		Deps:      d,
		realm:     of,
		passwords: credential.NewPasswords(),
		passkeys:  passkey.New(d.DB, d.BaseURL, of.kind),
		addresses: handlers.NewAddresses(d.Now),
	}
}

// Routes is the route table of people's accounts.
func Routes(d Deps) []handlers.Route {
	a := newAuth(d, people)
	routes := append(
		a.shared(own),
		open("GET", "/", a.start),
		open("GET", "/sign-in/lost-device", a.showLostDevice),
		open("GET", "/sign-up", a.showSignUp),
		open("POST", "/sign-up", a.signUp),
		open("GET", "/sign-up/sent", a.showSent),
		open("GET", "/verify-email", a.showVerify),
		open("POST", "/verify-email", a.verify),
		open("GET", "/reset", a.showReset),
		open("POST", "/reset", a.reset),
		open("GET", "/reset/sent", a.showSent),
		open("GET", "/change-email", a.showChangeEmail),
		open("POST", "/change-email", a.confirmEmail),
		open("GET", "/invitations/accept", a.showInvitation),
		open("POST", "/invitations/accept", a.acceptInvitation),
		changing(open("GET", "/portal/open", a.openPortal)),

		open("GET", "/sign-in/sso", a.showSSO),
		waiting(open("POST", "/sign-in/sso", a.findSSO)),
		waiting(changing(open("GET", "/sso/:"+ssoParam+"/again", a.signInAgain))),

		anySession(own("GET", "/tenants", a.listTenants)),
		own("GET", "/tenants/new", a.showNewTenant),
		own("POST", "/tenants/new", a.createTenant),
		own("POST", "/account/name", a.rename),
		own("GET", "/account/confirm", a.showConfirm),
		own("POST", "/account/confirm", a.confirm),
		withCredential(own("POST", "/account/confirm/passkey", a.confirmPasskey)),
		fresh(own("POST", "/account/passkeys/require", a.requirePasskey)),
		fresh(own("POST", "/account/passkeys/optional", a.stopRequiringPasskey)),
		own("POST", "/account/sessions/:session_id/end", a.endSession),
		own("POST", "/account/sessions/end-others", a.endOtherSessions),
		fresh(own("POST", "/account/email", a.changeEmail)),
		fresh(own("POST", "/account/password", a.setPassword)),
		fresh(own("POST", "/account/totp/start", a.startTOTP)),
		fresh(own("GET", a.totp, a.showTOTP)),
		fresh(own("POST", a.totp, a.confirmTOTP)),
		fresh(own("POST", "/account/totp/off", a.stopTOTP)),
		fresh(own("POST", "/account/recovery-codes", a.renewRecoveryCodes)),
		fresh(own("POST", "/account/delete", a.deleteAccount)),
	)
	routes = append(routes, a.ssoRoutes("/sso/:"+ssoParam)...)
	if d.Local {
		routes = append(routes, changing(open("GET", "/sign-in/link", a.openLocally)))
	}
	return routes
}

// shared are the routes that people and operators both have. own is a page of a signed-in user.
func (a *auth) shared(own func(method, path string, h handlers.Handler) handlers.Route) []handlers.Route {
	return []handlers.Route{
		open("GET", a.root+"/sign-in", a.showSignIn),
		open("POST", a.root+"/sign-in", a.signIn),
		open("GET", a.root+"/sign-in/code", a.showCode),
		open("POST", a.root+"/sign-in/code", a.signInCode),
		open("POST", a.root+"/sign-in/passkey/options", a.passkeyOptions),
		withCredential(open("POST", a.root+"/sign-in/passkey", a.signInPasskey)),
		open("POST", a.root+"/sign-out", a.signOut),
		open("GET", a.password, a.showNewPassword),
		open("POST", a.password, a.setNewPassword),
		own("GET", a.root+"/account", a.showAccount),
		own("GET", a.codesPage(), a.showCodes),
		fresh(own("POST", a.root+"/account/passkeys/options", a.newPasskeyOptions)),
		fresh(withCredential(own("POST", a.root+"/account/passkeys", a.addPasskey))),
		fresh(own("POST", a.root+"/account/passkeys/rename", a.renamePasskey)),
		fresh(own("POST", a.root+"/account/passkeys/remove", a.removePasskey)),
	}
}

// ssoRoutes are the routes of a sign-in at an identity provider.
func (a *auth) ssoRoutes(path string) []handlers.Route {
	return []handlers.Route{
		waiting(changing(open("GET", path, a.startSSO))),
		waiting(changing(open("GET", path+"/callback", a.finishSSO))),
		waiting(open("POST", path+"/logout", a.endByProvider)),
	}
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
		Method:  method,
		Path:    path,
		Access:  handlers.Access{Public: true},
		MaxBody: maxForm,
		Handler: h,
		Queued:  method == "POST",
	}
}

// own is a page of the signed-in person's account.
func own(method, path string, h handlers.Handler) handlers.Route {
	return handlers.Route{
		Method:  method,
		Path:    path,
		Access:  handlers.Access{Session: true},
		MaxBody: maxForm,
		Handler: h,
	}
}

// anySession opens a page for a session that a tenant's identity provider started too.
func anySession(r handlers.Route) handlers.Route {
	r.Access.Any = true
	return r
}

// fresh is a change of how the account is opened: its user must have signed in within the last minutes.
func fresh(r handlers.Route) handlers.Route {
	r.Access.Fresh = true
	return r
}
