package auth

import (
	"errors"
	"net/http"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// listTenants is the page on which people switch between their tenants.
func (a *auth) listTenants(c *handlers.Call) error {
	v := pages.TenantsView{Shell: c.Shell("Your tenants", ""), Signup: a.signupIsOpen(c) && c.Actor.Session.Only == nil}
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		tenants, err := accounts.TenantsOf(c.Ctx(), q, c.Actor.Person.ID, c.Actor.Session.Only)
		v.Tenants = tenants
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Tenants(v))
}

// view is the page of an account. An operator's has no profile: the command line manages operators.
func (a *auth) view(c *handlers.Call) (v pages.AccountView, err error) {
	user := c.Actor.Session.User
	v = pages.AccountView{
		User:          user,
		Session:       c.Actor.Session.ID,
		Email:         emailField(account.Shown(user.Email)),
		Password:      newPasswordField(),
		MayAddPasskey: a.passkeys != nil,
		Name:          nameField("Name", user.Name),
		PasskeyName: components.FieldProps{
			ID:          "passkey-name",
			Name:        "name",
			Label:       "Name",
			Optional:    true,
			MaxLength:   account.MaxName,
			Placeholder: "Work laptop",
			Width:       "medium",
		},
	}
	v.Email.Complete = "email"
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) (err error) {
		if v.Security, err = accounts.ReadSecurity(c.Ctx(), q, user); err != nil || a.operator() {
			return err
		}
		v.Sessions, err = accounts.Sessions(c.Ctx(), q, user.ID)
		return err
	})
	title, active := "Account", ""
	if a.operator() {
		title, active = "Your account", "account"
	}
	v.Shell = c.Shell(title, active) // once: a message for this page is shown once
	return v, err
}

func (a *auth) showAccount(c *handlers.Call) error {
	v, err := a.view(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Account(v))
}

// refuseAccount shows the account's page again, with the error beside its field.
func (a *auth) refuseAccount(c *handlers.Call, err error, typed string, of func(*pages.AccountView) *components.FieldProps) error {
	if err := handlers.NotInput(err); err != nil {
		return err
	}
	v, failed := a.view(c)
	if failed != nil {
		return failed
	}
	f := of(&v)
	f.Value, f.Error = typed, fault.As(err).Detail
	return c.Render(handlers.Status(err), pages.Account(v))
}

func (a *auth) rename(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	name, err := account.Name("name", form.Get("name"))
	if err != nil {
		return a.refuseAccount(c, err, form.Get("name"), func(v *pages.AccountView) *components.FieldProps { return &v.Name })
	}
	if err := accounts.RenamePerson(c.Ctx(), a.DB, c.Actor.Person.ID, name); err != nil {
		return err
	}
	return c.Done("/account", "Name saved.")
}

// changeEmail sends a link to the new address. The address of another account gets no link, and the page says the
// same.
func (a *auth) changeEmail(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	email, err := account.Mailbox(form.Get("email"))
	if err != nil {
		return a.refuseAccount(c, err, form.Get("email"), func(v *pages.AccountView) *components.FieldProps { return &v.Email })
	}
	p := c.Actor.Person
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		wait, err := accounts.Try(c.Ctx(), q, account.Mails, "mail", email)
		if err != nil {
			return err
		}
		if err := accounts.DropLinks(c.Ctx(), q, p.ID, accounts.LinkEmail); err != nil {
			return err
		}
		_, err = accounts.Find(c.Ctx(), q, a.kind, email)
		if err == nil || !db.IsMissing(err) {
			return err
		}
		token, err := accounts.MakeLink(c.Ctx(), q, accounts.NewLink{
			Purpose: accounts.LinkEmail,
			Person:  &p.ID,
			Email:   email,
			Life:    account.EmailLife,
		})
		if err != nil || wait > 0 {
			return err
		}
		return a.mail(c, q, mail.VerifyAddress, email, token, mail.VerifyAddressData{
			Name:    p.Name,
			Link:    a.link("/change-email", token),
			Expires: a.until(account.EmailLife),
			Change:  true,
		})
	})
	if err == nil && email != p.Email {
		err = a.alertRequested(c, email)
	}
	if err != nil {
		return err
	}
	return c.Done("/account", "If "+email+" is available, we've emailed it a link. Your address changes when you open the link.")
}

// alertRequested tells the old address about the request, whether the new one is available or not.
func (a *auth) alertRequested(c *handlers.Call, to string) error {
	return a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		wait, err := accounts.Try(c.Ctx(), q, account.Mails, "change", c.Actor.Person.ID.String())
		if err != nil || wait > 0 {
			return err
		}
		p, err := accounts.Get(c.Ctx(), q, a.kind, c.Actor.Person.ID)
		if err != nil {
			return err
		}
		return a.alert(c, q, p, "Someone asked to change the email address of your account to "+to+". It changes when the link in our email to that address is opened.")
	})
}

func (a *auth) showChangeEmail(c *handlers.Call) error {
	link, err := a.peek(c, accounts.LinkEmail, c.Query("token"))
	if err != nil {
		return err
	}
	return show(c, pages.Form{
		Shell:  c.Shell("New address", ""),
		Title:  "Use this address?",
		Text:   "You will sign in with " + account.Shown(link.Email) + " from now on.",
		Action: "/change-email",
		Hidden: map[string]string{"token": c.Query("token")},
		Submit: "Use this address",
	})
}

func (a *auth) confirmEmail(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	var changed id.UUID
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		p, email, err := accounts.ChangeEmail(c.Ctx(), q, form.Get("token"), c.Actor.Address)
		if err != nil {
			return err
		}
		changed = p.ID
		// Neither signing in nor a reset works with the old address any longer: only people can help.
		return a.alertWith(c, q, p, "The email address of your account was changed to "+email, "you can no longer sign in with this address, "+
			"or reset the password with it. Contact an owner of your tenants, or the operator of this Posthorn server, immediately. Ask them to remove "+email+".")
	})
	if db.IsMissing(err) || fault.Is(err, "already_exists") {
		err = errLink
	}
	if err != nil {
		return err
	}
	session, err := c.SignedInHere()
	if err != nil {
		return err
	}
	if session == nil || session.User.ID != changed {
		return c.Redirect("/sign-in?done=email")
	}
	if err := c.FlashTo(session, "Your new email address is confirmed. Use it to sign in from now on."); err != nil {
		return err
	}
	return c.Redirect("/account")
}

func (a *auth) setPassword(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	p := c.Actor.Person
	if err := account.CheckPassword("password", form.Get("password"), p.Email, p.Name); err != nil {
		return a.refuseAccount(c, err, "", func(v *pages.AccountView) *components.FieldProps { return &v.Password })
	}
	hash, err := a.passwords.Hash(c.Ctx(), form.Get("password"))
	if err != nil {
		return err
	}
	err = a.rotate(c, c.Actor.Session.ID, func(q *db.Tx) error {
		was, err := accounts.ChangePassword(c.Ctx(), q, a.me(c), hash, c.Actor.Session.ID)
		if err != nil {
			return err
		}
		return a.alert(c, q, was, passwordChanged)
	})
	if err != nil {
		return err
	}
	return c.Done("/account", "Password changed. All other sessions were signed out.")
}

func (a *auth) endSession(c *handlers.Call) error {
	sessionID := c.PathID("session_id")
	return ended(c, accounts.EndSessionOf(c.Ctx(), a.DB, a.me(c), sessionID))
}

func (a *auth) endOtherSessions(c *handlers.Call) error {
	return ended(c, accounts.EndOtherSessions(c.Ctx(), a.DB, a.me(c), c.Actor.Session.ID))
}

func ended(c *handlers.Call, err error) error {
	if err != nil {
		return err
	}
	return c.Done("/account#sessions", "Session signed out.")
}

func (a *auth) deleteAccount(c *handlers.Call) error {
	if err := accounts.DeleteAccount(c.Ctx(), a.DB, c.Actor.Person.ID, c.Actor.Address); err != nil {
		return err
	}
	if err := c.EndSession(account.Person); err != nil {
		return err
	}
	return c.Redirect("/sign-in?done=deleted")
}

// confirmForm asks for what the person signs in with. Nobody is asked for a password that they don't have.
func (a *auth) confirmForm(c *handlers.Call, next string) (v pages.Form, err error) {
	var p account.Account
	if err := a.DB.Account(c.Ctx(), func(q *db.Tx) (err error) {
		p, err = accounts.Get(c.Ctx(), q, account.Person, c.Actor.Person.ID)
		return err
	}); err != nil {
		return v, err
	}
	v = pages.Form{
		Shell:   c.Shell("Confirm your identity", ""),
		Title:   "Confirm your identity",
		Links:   []pages.Link{{Label: "Not now", Href: "/account"}},
		Passkey: a.passkeyWay("Use a passkey", "/account/confirm/passkey", next),
	}
	switch {
	case p.HasPassword():
		v.Text = "This changes how you sign in to your account. Sign in again as " + account.Shown(p.Email) + "."
		v.Action, v.Submit = "/account/confirm", "Continue"
		v.Hidden = map[string]string{"next": next, "email": p.Email}
		v.Fields = []components.FieldProps{passwordField()}
		v.Fields[0].Focus = true
		v.Links = append([]pages.Link{{Label: "Forgot password?", Href: "/reset"}}, v.Links...)
	case a.Local && accounts.IsLocal(p):
		v.Text = "Your account has no password. Run this command on the machine where Posthorn runs, and open the link that it prints:"
		v.Command, v.More = "posthorn open", "In the folder of the source, it is bin/posthorn open. The link signs you in again; then repeat the action."
		v.Passkey = nil
	default:
		v.Text = "Your account has no password. Set one with a link that we send to " + account.Shown(p.Email) + ", or use a passkey."
		v.Links = append([]pages.Link{{Label: "Set a password", Href: "/reset"}}, v.Links...)
	}
	if p.TOTP && p.HasPassword() {
		code := codeField()
		code.Focus = false
		v.Fields = append(v.Fields, code)
	}
	return v, nil
}

func (a *auth) showConfirm(c *handlers.Call) error {
	v, err := a.confirmForm(c, handlers.Next(c.Query("next"), "/account"))
	if err != nil {
		return err
	}
	return show(c, v)
}

// refuseConfirm shows the form again, with what was wrong.
func (a *auth) refuseConfirm(c *handlers.Call, next string, wrong error) error {
	v, err := a.confirmForm(c, next)
	if err != nil {
		return err
	}
	return refuse(c, v, wrong)
}

// confirm authenticates the person again. The session gets a new token.
func (a *auth) confirm(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	p, next := c.Actor.Person, handlers.Next(form.Get("next"), "/account")
	_, err = a.checkPassword(c, p.Email, form.Get("password"))
	if errors.Is(err, errWrong) {
		err = fault.InvalidField("password", errWrong.Code, "The password is incorrect.")
	}
	if err == nil && p.TOTP {
		err = a.takeCode(c, p.ID, form.Get("code"))
	}
	if err != nil {
		return a.refuseConfirm(c, next, err)
	}
	err = a.rotate(c, c.Actor.Session.ID, func(q *db.Tx) error {
		return accounts.Succeeded(c.Ctx(), q, accounts.PasswordTries(a.kind), p.Email)
	})
	if err != nil {
		return err
	}
	return c.Redirect(next)
}
