package auth

import (
	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/handlers"
)

var errLocalLink = fault.New(fault.Gone, "local_link_gone", "This link was already opened, or is older than a day. Run `posthorn open` in a terminal on the same machine to get another one.")

// openLocally signs in the person who started the server on their own machine. It is a GET that changes something:
// the link was printed in their terminal, and works once.
func (a *auth) openLocally(c *handlers.Call) error {
	token, err := accounts.OpenLocally(c.Ctx(), a.DB, accounts.LocalSignIn{
		Link:    accounts.HashToken(c.Query("token")),
		Address: c.Actor.Address,
		Agent:   c.Request.UserAgent(),
	})
	if db.IsMissing(err) {
		err = errLocalLink
	}
	if err != nil {
		return err
	}
	if err := c.SetSession(account.Person, token); err != nil {
		return err
	}
	return c.Redirect("/")
}
