package auth

import (
	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
)

var errPortal = fault.New(fault.Gone, "portal_link_gone", "This link was already opened, was revoked, or is older than ten minutes. Go back and open the dashboard from there again.")

// openPortal signs a provider's customer in. It is a GET that changes something: the provider redirects or frames the
// browser there, and the link works once.
func (a *auth) openPortal(c *handlers.Call) error {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return err
	}
	tenant, token, err := accounts.OpenPortalLink(c.Ctx(), a.DB, c.Query("token"), c.Actor.Address, c.Request.UserAgent())
	if db.IsMissing(err) {
		err = errPortal
	}
	if err != nil {
		return err
	}
	if err := c.SetSession(account.Portal, token); err != nil {
		return err
	}
	return c.Redirect("/t/" + id.Tenant.Format(tenant))
}
