// Package admin is the operators' console: how they sign in, with a session and a cookie of their own.
package admin

import (
	"log/slog"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/handlers"
	"posthorn/handlers/credential"
	"posthorn/views/pages"
)

// Deps is what the handlers work with.
type Deps struct {
	DB   *db.DB
	Keys *seal.Ring // seals seeds of second factors
	// Development says that only this machine reaches the server: operators may go without a second factor then.
	Development bool
	Log         *slog.Logger
	Now         func() time.Time
}

// admin holds the handlers.
type admin struct {
	Deps
	passwords *credential.Passwords
	addresses *handlers.Addresses
}

// Routes is the route table of the console.
func Routes(d Deps) []handlers.Route {
	a := &admin{Deps: d, passwords: credential.NewPasswords(), addresses: handlers.NewAddresses(d.Now)}
	return []handlers.Route{
		open("GET", "/console/sign-in", a.showSignIn),
		open("POST", "/console/sign-in", a.signIn),
		open("GET", "/console/sign-in/code", a.showCode),
		open("POST", "/console/sign-in/code", a.signInCode),
		open("GET", "/console/setup", a.showSetup),
		open("POST", "/console/setup", a.setPassword),
		open("GET", "/console/setup/totp", a.showTOTP),
		open("POST", "/console/setup/totp", a.confirmTOTP),
		open("POST", "/console/sign-out", a.signOut),

		{Method: http.MethodGet, Path: "/console", Access: handlers.Access{Operator: true}, Handler: a.home},
	}
}

// maxForm bounds the body of a form.
const maxForm = 16 << 10

func open(method, path string, h handlers.Handler) handlers.Route {
	return handlers.Route{Method: method, Path: path, Access: handlers.Access{Public: true}, MaxBody: maxForm, Handler: h}
}

// home says who is signed in, and how well the account is guarded.
func (a *admin) home(c *handlers.Call) error {
	return c.Render(http.StatusOK, pages.ConsoleHome(pages.ConsoleHomeView{
		Shell: c.Shell("Console", "overview"), Email: c.Actor.Operator.Email, TOTP: c.Actor.Operator.TOTP,
	}))
}
