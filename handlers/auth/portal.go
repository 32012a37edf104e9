package auth

import (
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// openPortal signs a provider's customer in. It is a GET that changes something: the provider redirects or frames the
// browser there, and the link works once. In the browser that it signed in it can be opened again, because a page that
// holds a frame is reloaded: then it leads to the same session. next is the page of the dashboard to open.
func (a *auth) openPortal(c *handlers.Call) error {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return err
	}
	link, token, err := accounts.OpenPortalLink(c.Ctx(), a.DB, c.Query("token"), c.Actor.Address, c.Request.UserAgent())
	switch {
	case db.IsMissing(err):
		if link, err = a.openedHere(c); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		if err := c.SetSession(account.Portal, token); err != nil {
			return err
		}
		c.RememberPortal(link.ID)
	}
	root := "/t/" + id.Tenant.Format(link.Tenant)
	if next := handlers.Next(c.Query("next"), root); strings.HasPrefix(next, root+"/") {
		return c.Redirect(next)
	}
	return c.Redirect(root)
}

// openedHere finds the link of a URL that opens nothing any more, if this browser's session came by it.
func (a *auth) openedHere(c *handlers.Call) (account.PortalAccess, error) {
	link, err := accounts.FindPortalByToken(c.Ctx(), a.DB, c.Query("token"))
	if db.IsMissing(err) {
		return link, handlers.ErrPortalLink
	}
	if err != nil {
		return link, err
	}
	c.VisitorOf(link)
	session, err := c.SignedInAs(account.Portal)
	if err == nil && (link.Revoked || session == nil || *session.Link != link.ID) {
		err = handlers.ErrPortalLink
	}
	return link, err
}
