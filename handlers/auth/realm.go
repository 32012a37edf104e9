package auth

import (
	"slices"

	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/handlers"
	"posthorn/handlers/openid"
)

// realm is what differs between the sign-ins of people and of operators. Everything else is one for both.
type realm struct {
	kind     account.Kind
	root     string // the beginning of the paths
	home     string // where a sign-in leads
	totp     string // the path of the setup of an authenticator app
	codes    string // where the page with the recovery codes leads
	password string // the path behind a link that sets a password
	title    string // of the page that sets a password
}

var (
	people = realm{
		kind:     account.Person,
		home:     "/",
		totp:     "/account/totp",
		codes:    "/account",
		password: "/reset/new",
		title:    "Set a new password",
	}
	operators = realm{
		kind:     account.Operator,
		root:     "/console",
		home:     "/console",
		totp:     "/console/setup/totp",
		codes:    "/console",
		password: "/console/setup",
		title:    "Set a password",
	}
)

// Console is what the sign-in of operators needs besides Deps.
type Console struct {
	// Development says that only this machine reaches the server. Operators then need no second factor.
	Development bool
	SSO         *SSO // nil: operators sign in here alone
}

// SSO is the identity provider of operators. It is configured in the environment, so nobody who is signed in to the
// console can change who has access to it.
type SSO struct {
	Client     *openid.Client
	Provider   openid.Provider // its RoleClaim says who is an operator; empty: only existing operators
	Value      string          // of the claim that operators have
	Only       bool            // passwords are rejected
	BreakGlass []string        // addresses of operators whose passwords work nevertheless
}

var (
	errOnly  = fault.New(fault.Invalid, "sso_required", "Operators of this server sign in with single sign-on.")
	errSetup = fault.New(fault.Forbidden, "sso_required", "Operators of this server sign in with single sign-on and have no passwords, except for the addresses in POSTHORN_OIDC_BREAK_GLASS.")
)

// passwordsWork reports whether the account with an address can sign in here, with a password or a passkey.
func (a *auth) passwordsWork(email string) bool {
	s := a.console.SSO
	return s == nil || !s.Only || slices.Contains(s.BreakGlass, email)
}

// value is the claim's value that operators have.
func (c Console) value() string {
	if c.SSO == nil {
		return ""
	}
	return c.SSO.Value
}

// operator reports whether this is the sign-in of operators.
func (a *auth) operator() bool { return a.kind == account.Operator }

// ConsoleRoutes is the route table of operators' sign-in and accounts.
func ConsoleRoutes(d Deps, console Console) []handlers.Route {
	if console.SSO != nil {
		d.OpenID = console.SSO.Client
	}
	a := newAuth(d, operators)
	a.console = console
	routes := append(
		a.shared(consolePage),
		open("GET", a.totp, a.showTOTP),
		open("POST", a.totp, a.confirmTOTP),
	)
	if console.SSO == nil {
		return routes
	}
	return append(routes, a.ssoRoutes("/console/sso")...)
}

// consolePage is a page of a signed-in operator.
func consolePage(method, path string, h handlers.Handler) handlers.Route {
	r := own(method, path, h)
	r.Access = handlers.Access{Operator: true}
	return r
}
