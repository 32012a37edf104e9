package admin

import (
	"slices"
	"strings"

	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/sso"
	"posthorn/handlers"
	"posthorn/handlers/openid"
	"posthorn/views/pages"
)

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
	errState = fault.New(fault.Gone, "sso_state_unknown", "This sign-in was started in another browser, is already finished, or has expired. Start again.")
	errOnly  = fault.New(fault.Invalid, "sso_required", "Operators of this server sign in with single sign-on.")
	errSetup = fault.New(fault.Forbidden, "sso_required", "Operators of this server sign in with single sign-on and have no passwords, except for the addresses in POSTHORN_OIDC_BREAK_GLASS.")
	errGroup = fault.New(fault.Forbidden, "sso_not_an_operator", "Your provider signed you in, but doesn't name you as an operator of this server. Ask its administrator.")
)

func (a *admin) ssoRoutes() []handlers.Route {
	if a.SSO == nil {
		return nil
	}
	return []handlers.Route{
		waiting("GET", ssoPath, a.startSSO),
		waiting("GET", ssoPath+"/callback", a.finishSSO),
		waiting("POST", ssoPath+"/logout", a.endByProvider),
	}
}

// waiting is a route that changes something and whose handler waits for the provider. It holds no place in the queue.
func waiting(method, path string, h handlers.Handler) handlers.Route {
	r := open(method, path, h)
	r.Queued, r.Changes = false, true
	return r
}

const ssoPath = Root + "/sso"

// passwordsWork reports whether an operator can sign in with a password.
func (a *admin) passwordsWork(email string) bool {
	return a.SSO == nil || !a.SSO.Only || slices.Contains(a.SSO.BreakGlass, email)
}

// startSSO sends the browser to the provider.
func (a *admin) startSSO(c *handlers.Call) error {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return err
	}
	browser, p := c.StartFlow(), a.SSO.Provider
	state, err := accounts.StartSSO(c.Ctx(), a.DB, accounts.SSOFlow{
		Browser: accounts.HashToken(browser), Issuer: p.Issuer, ClientID: p.ClientID, Next: handlers.Next(c.Query("next"),
			Root),
	})
	if err != nil {
		return err
	}
	there, err := a.SSO.Client.Start(c.Ctx(), p, openid.Flow{State: state, Browser: browser}, "", false)
	if err != nil {
		return a.failSSO(c, err)
	}
	return handlers.SendAway(c, there, Root+"/sign-in")
}

// finishSSO handles the provider's redirect.
func (a *admin) finishSSO(c *handlers.Call) error {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return err
	}
	flow, err := accounts.TakeSSO(c.Ctx(), a.DB, c.Query("state"), c.Flow())
	if fault.Is(err, fault.ErrNotFound.Code) || err == nil && !flow.Tenant.IsZero() {
		err = errState
	}
	if err != nil {
		return a.failSSO(c, err)
	}
	token, err := a.arrive(c)
	if err != nil {
		return a.failSSO(c, err)
	}
	if err := c.SetSession(account.Operator, token); err != nil {
		return err
	}
	if flow.Next != Root && !strings.HasPrefix(flow.Next, Root+"/") {
		flow.Next = Root
	}
	return c.Redirect(flow.Next)
}

func (a *admin) arrive(c *handlers.Call) (token string, err error) {
	p := a.SSO.Provider
	answer := openid.Answer{Code: c.Query("code"), Error: c.Query("error"), Issuer: c.Query("iss")}
	claims, err := a.SSO.Client.Finish(c.Ctx(), p, openid.Flow{State: c.Query("state"), Browser: c.Flow()}, answer)
	if err != nil {
		return "", err
	}
	named := p.RoleClaim != "" && slices.Contains(claims.Values, a.SSO.Value)
	if err := operatorRefusal(claims, named || p.RoleClaim == ""); err != nil {
		if err := accounts.RefuseSSO(c.Ctx(), a.DB, id.UUID{}, fault.As(err).Code, c.Actor.Address); err != nil {
			return "", err
		}
		return "", err
	}
	if claims.Gap != "" {
		a.Log.Warn("the provider did not tell the groups of an operator who signs in", "claim", p.RoleClaim, "gap", claims.Gap)
	}
	return accounts.SignInOperatorBySSO(c.Ctx(), a.DB, accounts.SSOSignIn{
		Issuer: p.Issuer, ClientID: p.ClientID, Claims: claims, Address: c.Actor.Address, Agent: c.Request.UserAgent(),
		Now: a.Now(),
	}, sso.Config{}.VerifiedEmail(claims), named)
}

// operatorRefusal rejects whom the provider does not name as an operator. Where it says that it left the groups out,
// who is linked to an operator stays one. A claim that is simply absent rejects everybody: some providers send none for
// a person whom they have removed from the last group.
func operatorRefusal(claims sso.Claims, named bool) error {
	switch {
	case claims.Gap == sso.Absent:
		return claims.Gap.Refusal()
	case !named && claims.Gap == "":
		return errGroup
	}
	return nil
}

// failSSO shows why the sign-in failed. The cause goes to the log, and a rejected token to the audit log.
func (a *admin) failSSO(c *handlers.Call, err error) error {
	e := fault.As(err)
	if e == nil || e.Kind == fault.Internal {
		return err
	}
	if e.Cause != nil {
		a.Log.Warn("single sign-on of an operator failed", "code", e.Code, "error", e.Cause)
	}
	if openid.Rejected(err) {
		if err := accounts.RefuseSSO(c.Ctx(), a.DB, id.UUID{}, e.Code, c.Actor.Address); err != nil {
			return err
		}
	}
	return c.Render(handlers.Status(e), pages.FormPage(pages.Form{
		Shell: c.Shell("Sign-in failed", ""), Title: "Sign-in failed", Wrong: e.Detail,
		Links: []pages.Link{{Label: "Try again", Href: ssoPath}, {Label: "Back to sign in", Href: Root + "/sign-in"}},
	}))
}

func (a *admin) endByProvider(c *handlers.Call) error {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return err
	}
	return openid.Receiver{DB: a.DB, Client: a.SSO.Client, Log: a.Log}.EndSessions(c, a.SSO.Provider, id.UUID{})
}
