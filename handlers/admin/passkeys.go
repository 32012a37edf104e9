package admin

import (
	"net/url"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/handlers"
	"posthorn/handlers/passkey"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// ways adds the alternatives to a password to the sign-in form. With single sign-on only, a passkey opens the console
// for the break-glass accounts alone, as a password does.
func (a *admin) ways(f pages.Form, next string) pages.Form {
	if a.SSO != nil {
		f.Ways = append(f.Ways, pages.Link{Label: "Sign in with SSO", Href: ssoPath + nextQuery(next)})
	}
	f.Passkey = a.passkeyWay("Sign in with a passkey", next)
	return f
}

// passkeyWay is the button that signs in with a passkey. A server without a host name has none.
func (a *admin) passkeyWay(label, next string) *pages.PasskeyWay {
	if a.passkeys == nil {
		return nil
	}
	return &pages.PasskeyWay{Label: label, Action: Root + "/sign-in/passkey", Options: Root + "/sign-in/passkey/options", Next: next}
}

func (a *admin) passkeyOptions(c *handlers.Call) error {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return err
	}
	return a.passkeys.ForSignIn(c)
}

// signInPasskey signs in with a passkey, which is both factors.
func (a *admin) signInPasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	next := handlers.Next(form.Get("next"), Root)
	operator, err := a.verifyPasskey(c, form)
	if e := fault.As(err); e != nil && (passkey.IsRejected(err) || e == errOnly || e.Kind == fault.Limited) {
		return render(c, a.ways(signInForm(c, "", next), next), e)
	}
	if err != nil {
		return err
	}
	var token string
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		token, err = accounts.StartSession(c.Ctx(), q, accounts.NewSession{
			Operator: &operator.ID, Life: account.Operator.Life(), Address: c.Actor.Address,
			Agent: c.Request.UserAgent(),
		})
		if err != nil {
			return err
		}
		return accounts.AuditOperator(c.Ctx(), q, operator.ID, c.Actor.Address, "operator.sign_in.succeeded")
	})
	if err != nil {
		return err
	}
	if err := c.SetSession(account.Operator, token); err != nil {
		return err
	}
	return c.Redirect(next)
}

// verifyPasskey returns the operator whose passkey the form shows, and audits a passkey that is rejected.
func (a *admin) verifyPasskey(c *handlers.Call, form url.Values) (operator sql.Operator, err error) {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return operator, err
	}
	of, err := a.passkeys.Verify(c, form)
	if err == nil {
		err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
			operator, err = q.GetOperator(c.Ctx(), of)
			return err
		})
	}
	if err == nil && operator.DisabledAt != nil {
		err = passkey.ErrRejected
	}
	if err == nil && !a.passwordsWork(operator.Email) {
		err = errOnly
	}
	if e := fault.As(err); passkey.IsRejected(err) || e != nil && e == errOnly {
		failed := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
			return accounts.AuditOperator(c.Ctx(), q, operator.ID, c.Actor.Address, "operator.sign_in.failed")
		})
		if failed != nil {
			return operator, failed
		}
	}
	return operator, err
}

// renderHome shows the operator's account, with the error in the name of a new passkey.
func (a *admin) renderHome(c *handlers.Call, status int, typed, wrong string) error {
	keys, err := accounts.Passkeys(c.Ctx(), a.DB, c.Actor.Operator.ID)
	if err != nil {
		return err
	}
	v := pages.ConsoleHomeView{
		Shell: c.Shell("Your account", "account"), Email: account.Shown(c.Actor.Operator.Email), TOTP: c.Actor.Operator.TOTP,
		MayAddPasskey: a.passkeys != nil,
		PasskeyName: components.FieldProps{
			ID: "passkey-name", Name: "name", Label: "Name", Optional: true, MaxLength: account.MaxName, Placeholder: "Security key", Width: "medium", Value: typed,
			Error: wrong,
		},
	}
	for _, r := range keys {
		v.Passkeys = append(v.Passkeys, pages.PasskeyLine{
			ID: passkey.Text(r.CredentialID), Name: r.Name,
			Created: r.CreatedAt, Used: r.UsedAt,
		})
	}
	return c.Render(status, pages.ConsoleHome(v))
}

func (a *admin) newPasskeyOptions(c *handlers.Call) error {
	return a.passkeys.ForNew(c, c.Actor.Operator.ID, c.Actor.Operator.Email)
}

func (a *admin) refusePasskey(c *handlers.Call, typed string, err error) error {
	if err := handlers.NotInput(err); err != nil {
		return err
	}
	return a.renderHome(c, handlers.Status(err), typed, fault.As(err).Detail)
}

func (a *admin) addPasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	name := "Passkey"
	if form.Get("name") != "" {
		if name, err = account.Name("name", form.Get("name")); err != nil {
			return a.refusePasskey(c, form.Get("name"), err)
		}
	}
	operator := c.Actor.Operator
	added, err := a.passkeys.Register(c, form, operator.ID, operator.Email)
	if err == nil {
		err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
			return accounts.AddOperatorPasskey(c.Ctx(), q, operator.ID, accounts.NewPasskey{
				ID:         added.ID,
				Credential: added.Credential, Name: name, Address: c.Actor.Address,
			})
		})
	}
	if err != nil {
		return a.refusePasskey(c, form.Get("name"), err)
	}
	c.Flash("Passkey added. Use it the next time you sign in.")
	return c.Redirect(Root + "/account")
}

func (a *admin) renamePasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	name, err := account.Name("name", form.Get("name"))
	if err != nil {
		return a.refusePasskey(c, form.Get("name"), err)
	}
	if err := accounts.RenamePasskey(c.Ctx(), a.DB, c.Actor.Operator.ID, passkey.Parse(form.Get("passkey")), name); err != nil {
		return err
	}
	c.Flash("Passkey renamed.")
	return c.Redirect(Root + "/account")
}

func (a *admin) removePasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		return accounts.RemoveOperatorPasskey(c.Ctx(), q, c.Actor.Operator.ID, passkey.Parse(form.Get("passkey")),
			c.Actor.Address)
	})
	if err != nil {
		return err
	}
	c.Flash("Passkey removed.")
	return c.Redirect(Root + "/account")
}
