package auth

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/sso"
	"posthorn/handlers"
	"posthorn/handlers/openid"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// ssoParam names the tenant whose provider signs people in. It differs from the parameter that admits members: nobody
// is signed in yet.
const ssoParam = "sso_tenant"

var (
	errGroup = fault.New(fault.Forbidden, "sso_not_an_operator", "Your provider signed you in, but doesn't name you as an operator of this server. Ask its administrator.")
	errState = fault.New(fault.Gone, "sso_state_unknown", "This sign-in was started in another browser, is already finished, or has expired. Start again.")
)

func (a *auth) ssoForm(c *handlers.Call, email, next string) pages.Form {
	f := pages.Form{
		Shell:  c.Shell("Single sign-on", ""),
		Title:  "Sign in with SSO",
		Text:   "Your email address tells us which identity provider knows you.",
		Action: "/sign-in/sso",
		Hidden: map[string]string{"next": next},
		Submit: "Continue",
		Fields: []components.FieldProps{emailField(email)},
		Links:  []pages.Link{{Label: "Sign in with a password", Href: "/sign-in" + nextQuery(next)}},
	}
	f.Fields[0].Focus = true
	return f
}

func (a *auth) showSSO(c *handlers.Call) error {
	return show(c, a.ssoForm(c, "", handlers.Next(c.Query("next"), "")))
}

// findSSO finds the provider by the domain of an address.
func (a *auth) findSSO(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	typed, next := form.Get("email"), handlers.Next(form.Get("next"), "")
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return refuse(c, a.ssoForm(c, typed, next), err)
	}
	email, err := account.Email(typed)
	if err != nil {
		return refuse(c, a.ssoForm(c, typed, next), err)
	}
	tenant, err := accounts.TenantOfDomain(c.Ctx(), a.DB, sso.DomainOf(email))
	if fault.Is(err, fault.ErrNotFound.Code) {
		return refuse(c, a.ssoForm(c, typed, next), fault.InvalidField(
			"email",
			"sso_domain_unknown",
			"No tenant has set up single sign-on for "+account.Shown(sso.DomainOf(email))+". Sign in with a password, or open the sign-in link of your organization.",
		))
	}
	if err != nil {
		return err
	}
	return a.leave(c, departure{tenant: tenant, hint: email, next: next})
}

// departure is a sign-in that goes to a provider.
type departure struct {
	tenant id.UUID // whose provider it is; zero: the operators'
	hint   string  // an address, or empty
	next   string
	fresh  bool // the user must authenticate there again
	try    bool // it only says what a sign-in would do
}

func (a *auth) startSSO(c *handlers.Call) error { return a.depart(c, false) }

// signInAgain is startSSO for a person who must authenticate again.
func (a *auth) signInAgain(c *handlers.Call) error { return a.depart(c, true) }

func (a *auth) depart(c *handlers.Call, fresh bool) error {
	tenant, err := a.ssoTenant(c)
	if err != nil {
		return err
	}
	return a.leave(c, departure{
		tenant: tenant,
		next:   handlers.Next(c.Query("next"), ""),
		fresh:  fresh,
		try:    c.Query("test") == "true" && !a.operator(),
	})
}

// ssoTenant reads the tenant in the path, which the operators' provider does not have, and counts the try of the
// address. A text that is no id is a tenant without a provider.
func (a *auth) ssoTenant(c *handlers.Call) (tenant id.UUID, err error) {
	if !a.operator() {
		if tenant, err = id.Tenant.Parse(c.Param(ssoParam)); err != nil {
			return tenant, accounts.ErrSSOMissing
		}
	}
	return tenant, a.addresses.Take(c.Actor.Address)
}

// provider is the provider of a tenant or of the operators, ready for requests.
func (a *auth) provider(c *handlers.Call, tenant id.UUID) (openid.Provider, error) {
	if a.operator() {
		return a.console.SSO.Provider, nil
	}
	conn, _, err := accounts.FindSSO(c.Ctx(), a.DB, tenant)
	if err != nil {
		return openid.Provider{}, err
	}
	p := openid.Provider{
		Issuer:    conn.Issuer,
		ClientID:  conn.ClientID,
		RoleClaim: conn.RoleClaim,
		Callback:  a.BaseURL + handlers.SSOPath(tenant) + "/callback",
	}
	if conn.Secret != nil {
		plain, err := a.Keys.Open(conn.Secret, tenant, tenant)
		if err != nil {
			return p, err
		}
		p.Secret = string(plain)
	}
	return p, nil
}

// leave sends the browser to a provider. The page does it by its Refresh header and also has a link: the content
// security policy lets no form end on another site.
func (a *auth) leave(c *handlers.Call, to departure) error {
	p, err := a.provider(c, to.tenant)
	if err != nil {
		return err
	}
	browser := c.StartFlow()
	state, err := accounts.StartSSO(c.Ctx(), a.DB, accounts.SSOFlow{
		Browser:  accounts.HashToken(browser),
		Tenant:   to.tenant,
		Issuer:   p.Issuer,
		ClientID: p.ClientID,
		Next:     to.next,
		Fresh:    to.fresh,
		Try:      to.try,
	})
	if err != nil {
		return err
	}
	there, err := a.OpenID.Start(c.Ctx(), p, openid.Flow{State: state, Browser: browser}, to.hint, to.fresh)
	if err != nil {
		return a.failSSO(c, to.tenant, err)
	}
	return handlers.SendAway(c, there, a.root+"/sign-in")
}

// finishSSO handles a provider's redirect.
func (a *auth) finishSSO(c *handlers.Call) error {
	tenant, err := a.ssoTenant(c)
	if err != nil {
		return err
	}
	flow, err := accounts.TakeSSO(c.Ctx(), a.DB, c.Query("state"), c.Flow())
	if fault.Is(err, fault.ErrNotFound.Code) || err == nil && flow.Tenant != tenant {
		err = errState
	}
	if err != nil {
		return a.failSSO(c, tenant, err)
	}
	if flow.Try {
		return a.trySSO(c, flow)
	}
	token, err := a.arrive(c, flow)
	if err != nil {
		return a.failSSO(c, tenant, err)
	}
	if err := c.SetSession(a.kind, token); err != nil {
		return err
	}
	home := a.home
	if !a.operator() {
		home = "/t/" + id.Tenant.Format(tenant)
	}
	if flow.Next != home && !strings.HasPrefix(flow.Next, home+"/") {
		flow.Next = home
	}
	return c.Redirect(flow.Next)
}

// trySSO shows what the sign-in would have done. Nobody is signed in or out.
func (a *auth) trySSO(c *handlers.Call, flow accounts.SSOFlow) error {
	_, signIn, err := a.told(c, flow)
	if err != nil {
		return a.failSSO(c, flow.Tenant, err)
	}
	email, decision, err := accounts.TryBySSO(c.Ctx(), a.DB, signIn)
	if err != nil {
		return a.failSSO(c, flow.Tenant, err)
	}
	does := " signs in with the role "
	if decision.Join {
		does = " becomes a member with the role "
	}
	return c.Render(http.StatusOK, pages.FormPage(pages.Form{
		Shell: c.Shell("Test sign-in", ""),
		Title: "The test sign-in works",
		Text:  account.Shown(email) + does + string(decision.Role) + ". This was a test: nobody was signed in, and nothing changed.",
		Links: []pages.Link{{Label: "Back to the settings", Href: "/t/" + id.Tenant.Format(flow.Tenant) + "/settings/sso"}},
	}))
}

// told verifies the provider's response, and returns what it says of who signs in.
func (a *auth) told(c *handlers.Call, flow accounts.SSOFlow) (p openid.Provider, signIn accounts.SSOSignIn, err error) {
	if p, err = a.provider(c, flow.Tenant); err != nil {
		return p, signIn, err
	}
	answer := openid.Answer{Code: c.Query("code"), Error: c.Query("error"), Issuer: c.Query("iss")}
	claims, err := a.OpenID.Finish(c.Ctx(), p, openid.Flow{State: c.Query("state"), Browser: c.Flow()}, answer)
	return p, accounts.SSOSignIn{
		Tenant:   flow.Tenant,
		Issuer:   flow.Issuer,
		ClientID: flow.ClientID,
		Claims:   claims,
		Address:  c.Actor.Address,
		Agent:    c.Request.UserAgent(),
		Now:      a.Now(),
	}, err
}

// arrive verifies the provider's response and starts the session.
func (a *auth) arrive(c *handlers.Call, flow accounts.SSOFlow) (token string, err error) {
	p, signIn, err := a.told(c, flow)
	if err != nil {
		return "", err
	}
	claims := signIn.Claims
	named := p.RoleClaim != "" && slices.Contains(claims.Values, a.console.value())
	if a.operator() {
		if refused := operatorRefusal(claims, named || p.RoleClaim == ""); refused != nil {
			return "", cmp.Or(a.auditRefusal(c, flow.Tenant, refused), refused)
		}
	}
	if claims.Gap != "" {
		a.Log.Warn("the provider did not tell the groups of somebody who signs in",
			"tenant", tenantName(flow.Tenant), "claim", p.RoleClaim, "gap", claims.Gap)
	}
	if a.operator() {
		return accounts.SignInOperatorBySSO(c.Ctx(), a.DB, signIn, sso.Config{}.VerifiedEmail(claims), named)
	}
	return accounts.SignInBySSO(c.Ctx(), a.DB, signIn)
}

// tenantName is a tenant in the log; empty: operators.
func tenantName(tenant id.UUID) string {
	if tenant.IsZero() {
		return ""
	}
	return id.Tenant.Format(tenant)
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

// auditRefusal audits a sign-in that failed before its user was known.
func (a *auth) auditRefusal(c *handlers.Call, tenant id.UUID, why error) error {
	return accounts.RefuseSSO(c.Ctx(), a.DB, tenant, fault.As(why).Code, c.Actor.Address)
}

// failSSO shows why a provider's sign-in failed. The cause goes to the log, and a rejected token to the audit log.
func (a *auth) failSSO(c *handlers.Call, tenant id.UUID, err error) error {
	e := fault.As(err)
	if e == nil || e.Kind == fault.Internal || e.Code == accounts.ErrSSOMissing.Code {
		return err
	}
	if e.Cause != nil {
		a.Log.Warn("single sign-on failed", "tenant", tenantName(tenant), "code", e.Code, "error", e.Cause)
	}
	if openid.Rejected(err) {
		if err := a.auditRefusal(c, tenant, err); err != nil {
			return err
		}
	}
	links := []pages.Link{{Label: "Try again", Href: handlers.SSOPath(tenant)}, {Label: "Sign in with a password", Href: "/sign-in"}}
	if a.operator() {
		links = []pages.Link{{Label: "Try again", Href: "/console/sso"}, {Label: "Back to sign in", Href: "/console/sign-in"}}
	}
	return c.Render(handlers.Status(e), pages.FormPage(pages.Form{
		Shell: c.Shell("Sign-in failed", ""),
		Title: "Sign-in failed",
		Wrong: e.Detail,
		Links: links,
	}))
}

// endByProvider accepts a provider's logout token (OpenID Connect Back-Channel Logout 1.0, sections 2.5 to 2.8).
func (a *auth) endByProvider(c *handlers.Call) error {
	tenant, err := a.ssoTenant(c)
	if err != nil {
		return err
	}
	p, err := a.provider(c, tenant)
	if err != nil {
		return err
	}
	return openid.Receiver{DB: a.DB, Client: a.OpenID, Log: a.Log}.EndSessions(c, p, tenant)
}
