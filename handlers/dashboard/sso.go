package dashboard

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/sso"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// ssoRoutes require a recent sign-in: the configuration of the provider decides who has access.
func (a *dashboard) ssoRoutes() []handlers.Route {
	return []handlers.Route{
		fresh("GET", "/settings/sso", access.ManageSSO, a.showSSO),
		fresh("POST", "/settings/sso", access.ManageSSO, a.changeSSO),
		fresh("POST", "/settings/sso/remove", access.ManageSSO, a.removeSSO),
		fresh("POST", "/settings/sso/domains", access.ManageSSO, a.addDomain),
		fresh("POST", "/settings/sso/domains/verify", access.ManageSSO, a.verifyDomain),
		fresh("POST", "/settings/sso/domains/remove", access.ManageSSO, a.removeDomain),
	}
}

// ssoView is the page as stored. A tenant without a provider sees the usual values.
func (a *dashboard) ssoView(c *handlers.Call) (v pages.SSOView, conn accounts.Connection, err error) {
	v.Settings = path(c, "/settings")
	err = c.Tx(func(q *db.Tx) error {
		conn, err = accounts.ReadSSO(c.Ctx(), q, c.Actor.Tenant)
		if v.On = err == nil; errors.Is(err, accounts.ErrSSOMissing) {
			conn.Tenant, conn.Config, err = c.Actor.Tenant, sso.Default(), nil
		}
		if err != nil {
			return err
		}
		v.Domains, err = accounts.ListDomains(c.Ctx(), q, c.Actor.Tenant)
		return err
	})
	if err != nil {
		return v, conn, err
	}
	owners, err := accounts.BreakGlassOwners(c.Ctx(), a.DB, c.Actor.Tenant)
	if err != nil {
		return v, conn, err
	}
	v.Root = path(c, "/settings/sso")
	there := a.BaseURL + handlers.SSOPath(c.Actor.Tenant)
	v.Callback, v.Logout, v.SignIn = there+"/callback", there+"/logout", there
	fillSSO(&v, conn)
	v.Owners = []components.Option{{Value: "", Label: "None"}}
	for _, o := range owners {
		v.Owners = append(v.Owners, components.Option{
			Value: id.Member.Format(o.ID),
			Label: o.Name + " (" + account.Shown(o.Email) + ")",
		})
	}
	v.Domain = components.FieldProps{Name: "domain", Label: "Domain", Placeholder: "example.com", Required: true, Width: "medium"}
	v.Shell = c.Shell("Single sign-on", "settings")
	return v, conn, nil
}

// fillSSO fills in the fields of the form.
func fillSSO(v *pages.SSOView, conn accounts.Connection) {
	secretHint := "Leave it empty for a public client, which has PKCE only."
	if conn.Secret != nil {
		secretHint = "A secret is stored. Leave this empty to keep it."
	}
	v.Issuer = components.FieldProps{
		Name:        "issuer",
		Label:       "Issuer",
		Value:       conn.Issuer,
		Placeholder: "https://login.example.com",
		Required:    true,
		Mono:        true,
		Hint:        "The URL below which the provider has /.well-known/openid-configuration.",
	}
	v.ClientID = components.FieldProps{
		Name:      "client_id",
		Label:     "Client ID",
		Value:     conn.ClientID,
		Required:  true,
		Mono:      true,
		MaxLength: sso.MaxClientID,
	}
	v.Secret = components.FieldProps{Name: "client_secret", Label: "Client secret", Type: "password", Complete: "off", Optional: true, Hint: secretHint}
	v.Session = components.FieldProps{
		Name:     "session_hours",
		Label:    "Sessions end after",
		Type:     "number",
		Unit:     "hours",
		Width:    "medium",
		Min:      "0.25",
		Max:      "336",
		Step:     "any",
		Required: true,
		Value:    strconv.FormatFloat(conn.Session.Hours(), 'f', -1, 64),
		Hint:     "Earlier if the provider says so, by the claim session_expiry or a logout token.",
	}
	v.Claim = components.FieldProps{
		Name:        "role_claim",
		Label:       "Claim",
		Value:       conn.RoleClaim,
		Placeholder: "groups",
		Optional:    true,
		Mono:        true,
		Width:       "medium",
		Hint:        "Its values set the members' roles at every sign-in. Owners stay owners. Leave it empty to set roles in Posthorn only.",
	}
	v.Roles = components.FieldProps{
		Name:        "role_map",
		Label:       "Roles by value",
		Value:       strings.TrimSpace(conn.Roles.Text()),
		Rows:        max(3, len(conn.Roles)+1),
		Optional:    true,
		Mono:        true,
		Placeholder: "webhooks-admins = admin\nengineering = developer",
		Hint:        "One per line. The highest role counts.",
	}
	v.Default = components.FieldProps{Name: "default_role", Label: "Role of everyone else", Value: string(conn.Default), Hint: "For new members, and for members without a mapped value."}
	v.Glass = components.FieldProps{
		Name:  "break_glass",
		Label: "Break-glass account",
		Hint:  "This owner can still sign in without your provider, for example when it is down. Select one if you require single sign-on.",
	}
	if conn.BreakGlass != nil {
		v.Glass.Value = id.Member.Format(*conn.BreakGlass)
	}
	v.Join, v.Trust, v.Only = conn.Join, conn.TrustEmail, conn.Only
}

func (a *dashboard) showSSO(c *handlers.Call) error {
	v, _, err := a.ssoView(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.SSO(v))
}

// changeSSO saves the connection after the provider responded with a valid configuration.
func (a *dashboard) changeSSO(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	v, was, err := a.ssoView(c)
	if err != nil {
		return err
	}
	to, err := readSSO(form, was)
	if err == nil {
		to.Keys = a.Keys
		err = a.OpenID.CheckIssuer(c.Ctx(), a.Egress, to.Issuer, a.Log.With("tenant", id.Tenant.Format(c.Actor.Tenant)))
	}
	if err == nil {
		err = accounts.ChangeSSO(c.Ctx(), a.DB, to, c.Author())
	}
	if err != nil {
		fillSSO(&v, to.Connection)
		v.Roles.Value = form.Get("role_map")
		v.Session.Value = form.Get("session_hours")
		return a.refuseSSO(c, v, err)
	}
	return c.Done(v.Root, "Saved. Test it in another browser before you close this one.")
}

// refuseSSO shows the page again with errors.
func (a *dashboard) refuseSSO(c *handlers.Call, v pages.SSOView, err error) error {
	if err := handlers.NotInput(err); err != nil {
		return err
	}
	for name, detail := range handlers.WrongFields(err) {
		wrong := &v.Wrong
		for _, f := range []*components.FieldProps{
			&v.Issuer, &v.ClientID, &v.Secret, &v.Claim, &v.Roles, &v.Default,
			&v.Session, &v.Glass, &v.Domain,
		} {
			if f.Name == name {
				wrong = &f.Error
			}
		}
		*wrong = detail
	}
	return c.Render(handlers.Status(err), pages.SSO(v))
}

// readSSO reads the form. A value that it can't read is returned as typed, with the error.
func readSSO(form url.Values, was accounts.Connection) (accounts.NewSSO, error) {
	to := accounts.NewSSO{Connection: was}
	to.Issuer, to.ClientID = strings.TrimSpace(form.Get("issuer")), strings.TrimSpace(form.Get("client_id"))
	to.RoleClaim, to.Default = strings.TrimSpace(form.Get("role_claim")), access.Role(form.Get("default_role"))
	to.Join, to.TrustEmail, to.Only = form.Get("join") == "true", form.Get("trust_email") == "true", form.Get("sso_only") == "true"
	to.BreakGlass, to.Session = nil, 0
	if member, err := id.Member.Parse(form.Get("break_glass")); err == nil {
		to.BreakGlass = &member
	}
	if hours, err := strconv.ParseFloat(strings.TrimSpace(form.Get("session_hours")), 64); err == nil && hours > 0 && hours < 1e6 {
		to.Session = time.Duration(hours * float64(time.Hour))
	}
	secret := strings.TrimSpace(form.Get("client_secret"))
	if secret != "" {
		to.Plain = &secret
	}
	roles, err := sso.ParseMapping(form.Get("role_map"))
	if err != nil {
		return to, err
	}
	to.Roles = roles
	return to, to.Check(secret)
}

func (a *dashboard) removeSSO(c *handlers.Call) error {
	if err := accounts.RemoveSSO(c.Ctx(), a.DB, c.Actor.Tenant, c.Author()); err != nil {
		return err
	}
	if only := c.Actor.Session.Only; only != nil {
		return c.Redirect("/sign-in") // this session ended too
	}
	return c.Done(path(c, "/settings"), "Single sign-on removed.")
}

// domainForm reads the domain in a form.
func domainForm(c *handlers.Call) (string, string, error) {
	form, err := c.Form()
	if err != nil {
		return "", "", err
	}
	domain, err := sso.Domain(form.Get("domain"))
	return domain, form.Get("domain"), err
}

func (a *dashboard) addDomain(c *handlers.Call) error {
	domain, typed, err := domainForm(c)
	if err == nil {
		err = c.Tx(func(q *db.Tx) error {
			return accounts.AddDomain(c.Ctx(), q, c.Actor.Tenant, domain, c.Author())
		})
	}
	return a.domainDone(c, typed, err, "Domain added. Add its TXT record to your DNS, then verify it.")
}

func (a *dashboard) domainDone(c *handlers.Call, typed string, err error, done string) error {
	if err == nil {
		return c.Done(path(c, "/settings/sso#domains"), done)
	}
	v, _, failed := a.ssoView(c)
	if failed != nil {
		return failed
	}
	v.Domain.Value = typed
	return a.refuseSSO(c, v, err)
}

// verifyDomain looks the domain's record up in the DNS.
func (a *dashboard) verifyDomain(c *handlers.Call) error {
	domain, _, err := domainForm(c)
	if err != nil {
		return a.domainDone(c, "", err, "")
	}
	var d show.Domain
	err = c.Tx(func(q *db.Tx) error {
		d, err = accounts.ReadDomain(c.Ctx(), q, c.Actor.Tenant, domain)
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Ctx(), dnsWithin)
	defer cancel()
	texts, err := a.LookupTXT(ctx, d.Record+".")
	var dns *net.DNSError
	if err != nil && !errors.As(err, &dns) && ctx.Err() == nil {
		return err
	}
	if !sso.HasRecord(texts, d.Proof) {
		return a.domainDone(c, "", fault.InvalidField(
			"",
			"sso_domain_unverified",
			"The TXT record of "+domain+" isn't there yet. DNS changes can take an hour. The record is "+d.Record+" with the text "+d.Text,
		), "")
	}
	err = accounts.VerifyDomain(c.Ctx(), a.DB, c.Actor.Tenant, domain, texts, c.Author())
	return a.domainDone(c, "", err, domain+" is verified.")
}

// dnsWithin is how long the DNS can take to respond.
const dnsWithin = 3 * time.Second

func (a *dashboard) removeDomain(c *handlers.Call) error {
	domain, _, err := domainForm(c)
	if err == nil {
		err = c.Tx(func(q *db.Tx) error {
			return accounts.RemoveDomain(c.Ctx(), q, c.Actor.Tenant, domain, c.Author())
		})
	}
	return a.domainDone(c, "", err, "Domain removed.")
}
