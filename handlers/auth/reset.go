package auth

import (
	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/mail"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func resetForm(c *handlers.Call, email string) pages.Form {
	return pages.Form{
		Shell:  c.Shell("Reset your password", ""),
		Title:  "Reset your password",
		Text:   "We'll email you a link to set a new password.",
		Action: "/reset",
		Submit: "Send link",
		Fields: []components.FieldProps{emailField(email)},
		Links:  []pages.Link{{Label: "Back to sign in", Href: "/sign-in"}},
	}
}

func (a *auth) showReset(c *handlers.Call) error { return show(c, resetForm(c, "")) }

// reset sends a link to an address that has an account. An address without an account gets nothing, and the page says
// the same.
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
		return refuse(c, view, err)
	}
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		wait, err := accounts.Try(c.Ctx(), q, account.Mails, "mail", email)
		if err != nil {
			return err
		}
		person, err := accounts.Find(c.Ctx(), q, a.kind, email)
		if db.IsMissing(err) {
			// The same work as for an account: a link that nobody gets, and a write in place of its mail.
			_, err := accounts.MakeLink(c.Ctx(), q, accounts.NewLink{
				Purpose: accounts.LinkReset,
				Email:   email,
				Life:    account.ResetLife,
			})
			if err == nil && wait == 0 {
				_, err = accounts.Try(c.Ctx(), q, account.Mails, "no mail", email)
			}
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

// mailReset sends a person a link to set a new password. silent creates the link and sends nothing.
func (a *auth) mailReset(c *handlers.Call, q *db.Tx, p account.Account, silent bool) error {
	token, err := accounts.MakeLink(c.Ctx(), q, accounts.NewLink{
		Purpose: accounts.LinkReset,
		Person:  &p.ID,
		Email:   p.Email,
		Life:    account.ResetLife,
	})
	if err != nil || silent || p.Disabled {
		return err
	}
	return a.mail(c, q, mail.ResetPassword, p.Email, token, mail.ResetPasswordData{
		Name:    p.Name,
		Link:    a.link("/reset/new", token),
		Expires: a.until(account.ResetLife),
		Address: c.Actor.Address,
	})
}

func (a *auth) newPasswordForm(c *handlers.Call, token, email string) pages.Form {
	text := "For " + email + ". All sessions of this account are signed out."
	if a.operator() {
		text = "For signing in to the operator console as " + email + "."
	}
	return passwordForm(c, a.password, token, a.title, text)
}

// peekPassword reads a link that sets a password.
func (a *auth) peekPassword(c *handlers.Call, token string) (accounts.Link, error) {
	link, err := a.peek(c, accounts.PasswordLink(a.kind), token)
	switch {
	case err != nil:
	case link.Owner.IsZero():
		err = errLink
	case !a.passwordsWork(link.Email):
		err = errSetup
	}
	return link, err
}

func (a *auth) showNewPassword(c *handlers.Call) error {
	link, err := a.peekPassword(c, c.Query("token"))
	if err != nil {
		return err
	}
	return show(c, a.newPasswordForm(c, c.Query("token"), link.Email))
}

// setNewPassword uses up the link and ends every session. The next sign-in of a person asks for the second factor: a
// mail alone never opens an account that has one. An operator, whose second factor the link turned off, sets up another
// one next.
func (a *auth) setNewPassword(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	link, err := a.peekPassword(c, form.Get("token"))
	if err != nil {
		return err
	}
	if err := account.CheckPassword("password", form.Get("password"), link.Email); err != nil {
		return refuse(c, a.newPasswordForm(c, form.Get("token"), link.Email), err)
	}
	hash, err := a.passwords.Hash(c.Ctx(), form.Get("password"))
	if err != nil {
		return err
	}
	var who account.Account
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		if who, err = accounts.ResetPassword(c.Ctx(), q, a.self(c, link.Owner), form.Get("token"), hash); err != nil {
			return err
		}
		return a.alert(c, q, who, passwordChanged)
	})
	if db.IsMissing(err) {
		err = errLink
	}
	if err != nil {
		return err
	}
	if a.operator() {
		return a.begin(c, who, "")
	}
	if err := c.EndSession(a.kind); err != nil {
		return err
	}
	return c.Redirect("/sign-in?done=password")
}

// passwordChanged is the mail's sentence after it.
const passwordChanged = "The password of your account was changed."
