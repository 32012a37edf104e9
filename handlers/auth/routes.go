// Package auth is what people do before and beside a tenant: signing up, in and out, invitations, and the account's pages.
package auth

import (
	"log/slog"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/handlers"
	"posthorn/handlers/credential"
)

// Deps is what the handlers work with.
type Deps struct {
	DB      *db.DB
	Keys    *seal.Ring // seals links in mails and seeds of second factors
	BaseURL string     // the public URL, without a slash at its end
	Signup  bool       // anybody may create a tenant
	// MailIsLogged says that mails go to the server's log: who tries Posthorn out is told to look there.
	MailIsLogged bool
	Log          *slog.Logger
	Now          func() time.Time
}

// auth holds the handlers.
type auth struct {
	Deps
	passwords *credential.Passwords
	addresses *handlers.Addresses
}

// Routes is the route table of accounts.
func Routes(d Deps) []handlers.Route {
	a := &auth{Deps: d, passwords: credential.NewPasswords(), addresses: handlers.NewAddresses(d.Now)}
	return []handlers.Route{
		open("GET", "/", a.start),
		open("GET", "/sign-in", a.showSignIn),
		open("POST", "/sign-in", a.signIn),
		open("POST", "/sign-out", a.signOut),
		open("GET", "/sign-up", a.showSignUp),
		open("POST", "/sign-up", a.signUp),
		open("GET", "/sign-up/sent", a.showSent),
		open("GET", "/verify-email", a.showVerify),
		open("POST", "/verify-email", a.verify),

		own("GET", "/tenants", a.listTenants),
	}
}

// maxForm bounds the body of a form.
const maxForm = 16 << 10

func open(method, path string, h handlers.Handler) handlers.Route {
	return handlers.Route{Method: method, Path: path, Access: handlers.Access{Public: true}, MaxBody: maxForm, Handler: h}
}

// start leads to the tenant that the person looked at last, or to where one signs in.
func (a *auth) start(c *handlers.Call) error {
	session, person, err := c.SignedIn()
	if err != nil {
		return err
	}
	if session == nil || session.Pending {
		return c.Redirect("/sign-in")
	}
	to, err := a.home(c, person.ID)
	if err != nil {
		return err
	}
	return c.Redirect(to)
}

// own is a page of the account of whoever is signed in.
func own(method, path string, h handlers.Handler) handlers.Route {
	return handlers.Route{Method: method, Path: path, Access: handlers.Access{Session: true}, MaxBody: maxForm, Handler: h}
}
