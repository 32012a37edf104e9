package auth

import (
	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func resetForm(c *handlers.Call, email string) pages.Form {
	return pages.Form{
		Shell: c.Shell("Reset the password", ""), Title: "Reset the password", Text: "A link to set a new one goes to your address.",
		Action: "/reset", Submit: "Send me a link", Fields: []components.FieldProps{emailField(email)},
		Links: []pages.Link{{Label: "Back to signing in", Href: "/sign-in"}},
	}
}

func (a *auth) showReset(c *handlers.Call) error { return show(c, resetForm(c, "")) }

// reset sends a link to an address that has an account. One that has none gets nothing, and the page says the same.
func (a *auth) reset(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	view := resetForm(c, form.Get("email"))
	email, err := account.Email(form.Get("email"))
	if err != nil {
		return refuse(c, view, err)
	}
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return refuseAs(c, view, fault.As(err))
	}
	err = a.DB.Account(c.Ctx(), func(q *sql.Queries) error {
		wait, err := accounts.Try(c.Ctx(), q, account.Mails, "mail", email)
		if err != nil {
			return err
		}
		person, err := q.FindPerson(c.Ctx(), email)
		if db.IsMissing(err) {
			// As much work as for an account: a link that nobody is told of, for nobody.
			_, err := accounts.MakeLink(c.Ctx(), q, accounts.NewLink{Purpose: accounts.LinkReset, Email: email, Life: account.ResetLife})
			return err
		}
		if err != nil {
			return err
		}
		return a.mailReset(c, q, person, wait > 0)
	})
	if err != nil {
		return err
	}
	return c.Redirect(sentTo("/reset/sent", email))
}

// mailReset sends a person a link to set a new password; silent makes the link and sends nothing.
func (a *auth) mailReset(c *handlers.Call, q *sql.Queries, p sql.Person, silent bool) error {
	token, err := accounts.MakeLink(c.Ctx(), q, accounts.NewLink{Purpose: accounts.LinkReset, Person: &p.ID, Email: p.Email, Life: account.ResetLife})
	if err != nil || silent || p.DisabledAt != nil {
		return err
	}
	return a.mail(c, q, mail.ResetPassword, p.Email, token, mail.ResetPasswordData{
		Name: p.Name, Link: a.link("/reset/new", token), Expires: a.until(account.ResetLife), Address: c.Actor.Address,
	})
}

func newPasswordForm(c *handlers.Call, token, email string) pages.Form {
	return passwordForm(c, "/reset/new", token, "Set a new password", "It is for "+email+", and ends all sessions of this account.")
}

func (a *auth) showNewPassword(c *handlers.Call) error {
	link, err := a.peek(c, accounts.LinkReset, c.Query("token"))
	if err != nil {
		return err
	}
	if link.PersonID == nil {
		return errLink
	}
	return show(c, newPasswordForm(c, c.Query("token"), link.Email))
}

// setNewPassword uses the link up and ends every session. The second factor, where there is one, is asked for at the next
// sign-in: a mail alone opens no account that has one.
func (a *auth) setNewPassword(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	link, err := a.peek(c, accounts.LinkReset, form.Get("token"))
	if err != nil {
		return err
	}
	if link.PersonID == nil {
		return errLink
	}
	if err := account.CheckPassword("password", form.Get("password"), link.Email); err != nil {
		return refuse(c, newPasswordForm(c, form.Get("token"), link.Email), err)
	}
	hash, err := a.passwords.Hash(c.Ctx(), form.Get("password"))
	if err != nil {
		return err
	}
	err = a.DB.Account(c.Ctx(), func(q *sql.Queries) error {
		link, err := q.UseLink(c.Ctx(), sql.UseLinkParams{Hash: accounts.HashToken(form.Get("token")), Purpose: accounts.LinkReset})
		if err != nil {
			return err
		}
		return a.changePassword(c, q, *link.PersonID, hash, id.UUID{})
	})
	if db.IsMissing(err) {
		err = errLink
	}
	if err != nil {
		return err
	}
	if err := c.EndSession(account.Person); err != nil {
		return err
	}
	return c.Redirect("/sign-in?done=password")
}

// changePassword sets a password, ends all sessions but one, and makes every link that would set another useless.
func (a *auth) changePassword(c *handlers.Call, q *sql.Queries, person id.UUID, hash string, but id.UUID) error {
	p, err := q.LockPerson(c.Ctx(), person)
	if err != nil {
		return err
	}
	if err := q.SetPersonPassword(c.Ctx(), sql.SetPersonPasswordParams{ID: p.ID, Password: hash}); err != nil {
		return err
	}
	if _, err := q.EndSessionsOfPerson(c.Ctx(), sql.EndSessionsOfPersonParams{PersonID: &p.ID, But: but}); err != nil {
		return err
	}
	if err := q.DeleteLinksOfPerson(c.Ctx(), sql.DeleteLinksOfPersonParams{PersonID: &p.ID, Purpose: accounts.LinkReset}); err != nil {
		return err
	}
	if err := accounts.Succeeded(c.Ctx(), q, "password", p.Email); err != nil {
		return err
	}
	if err := accounts.AuditPerson(c.Ctx(), q, p.ID, c.Actor.Address, "password.changed", nil); err != nil {
		return err
	}
	return a.alert(c, q, p, "The password of your account was changed.")
}
