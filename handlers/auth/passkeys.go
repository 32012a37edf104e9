package auth

import (
	"errors"
	"net/url"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/credential"
	"posthorn/handlers/passkey"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// passkeyWay is the button that signs in with a passkey. Without a script, or without passkeys, there is none.
func (a *auth) passkeyWay(label, action, next string) *pages.PasskeyWay {
	if a.passkeys == nil {
		return nil
	}
	return &pages.PasskeyWay{Label: label, Action: action, Options: "/sign-in/passkey/options", Next: next}
}

// passkeyOptions starts a sign-in with a passkey.
func (a *auth) passkeyOptions(c *handlers.Call) error {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return err
	}
	return a.passkeys.ForSignIn(c)
}

// verifyPasskey returns the person whose passkey a form shows. It rejects another person than the expected one; zero
// expects nobody in particular.
func (a *auth) verifyPasskey(c *handlers.Call, form url.Values, expected id.UUID) (p sql.Person, err error) {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return p, err
	}
	of, err := a.passkeys.Verify(c, form)
	if err == nil && !expected.IsZero() && of != expected {
		err = passkey.ErrRejected
	}
	if err == nil {
		err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
			p, err = q.GetPerson(c.Ctx(), of)
			return err
		})
	}
	if err == nil && p.DisabledAt != nil {
		err = passkey.ErrRejected
	}
	if passkey.IsRejected(err) {
		if e := a.refuseSignIn(c, expected); !errors.Is(e, errWrong) {
			return p, e
		}
	}
	return p, err
}

// signInPasskey signs in with a passkey, which is both factors: the person has the device, and the device has verified
// them. After a password it stands in for the code.
func (a *auth) signInPasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	next := handlers.Next(form.Get("next"), "")
	pending, waiting, err := a.pending(c)
	if err != nil {
		return err
	}
	var expected id.UUID
	page := a.signInForm(c, "", next)
	if pending != nil {
		expected, page = waiting.ID, a.codeForm(c, next, waiting.TOTP)
	}
	p, err := a.verifyPasskey(c, form, expected)
	if e := fault.As(err); e != nil && (passkey.IsRejected(err) || e.Kind == fault.Limited) {
		return refuseAs(c, page, e)
	}
	if err != nil {
		return err
	}
	var token string
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		token, err = a.startSession(c, q, p, false)
		return err
	})
	if err != nil {
		return err
	}
	if err := c.SetSession(account.Person, token); err != nil {
		return err
	}
	return c.Redirect(handlers.Next(next, "/"))
}

// confirmPasskey authenticates the person again with a passkey.
func (a *auth) confirmPasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	next := handlers.Next(form.Get("next"), "/account")
	_, err = a.verifyPasskey(c, form, c.Actor.Person.ID)
	if e := fault.As(err); e != nil && (passkey.IsRejected(err) || e.Kind == fault.Limited) {
		return refuseAs(c, a.confirmForm(c, next), e)
	}
	if err != nil {
		return err
	}
	token, err := a.rotate(c, c.Actor.Session.ID, func(*db.Tx) error { return nil })
	if err != nil {
		return err
	}
	if err := c.RenewSession(account.Person, token); err != nil {
		return err
	}
	return c.Redirect(next)
}

func (a *auth) newPasskeyOptions(c *handlers.Call) error {
	return a.passkeys.ForNew(c, c.Actor.Person.ID, c.Actor.Person.Email)
}

// passkeyName reads the name in a form; without one it is that of the browser.
func passkeyName(c *handlers.Call, form url.Values) (string, error) {
	if form.Get("name") == "" {
		return browserName(c.Request.UserAgent()), nil
	}
	return account.Name("name", form.Get("name"))
}

func (a *auth) addPasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	p := c.Actor.Person
	name, err := passkeyName(c, form)
	if err != nil {
		return a.refusePasskey(c, err, form.Get("name"))
	}
	added, err := a.passkeys.Register(c, form, p.ID, p.Email)
	if err == nil {
		err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
			who, err := accounts.AddPasskey(c.Ctx(), q, p.ID, accounts.NewPasskey{
				ID:         added.ID,
				Credential: added.Credential, Name: name, Address: c.Actor.Address,
			})
			if err != nil {
				return err
			}
			return a.alert(c, q, who, "A passkey was added to your account: "+name+". It signs in without your password.")
		})
	}
	if err != nil {
		return a.refusePasskey(c, err, form.Get("name"))
	}
	c.Flash("Passkey added. Use it the next time you sign in.")
	return c.Redirect("/account#passkeys")
}

func (a *auth) refusePasskey(c *handlers.Call, err error, typed string) error {
	return a.refuseAccount(c, err, typed, func(v *pages.AccountView) *components.FieldProps { return &v.PasskeyName })
}

func (a *auth) renamePasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	name, err := account.Name("name", form.Get("name"))
	if err != nil {
		return a.refusePasskey(c, err, form.Get("name"))
	}
	if err := accounts.RenamePasskey(c.Ctx(), a.DB, c.Actor.Person.ID, passkey.Parse(form.Get("passkey")), name); err != nil {
		return err
	}
	c.Flash("Passkey renamed.")
	return c.Redirect("/account#passkeys")
}

func (a *auth) removePasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		who, err := accounts.RemovePasskey(c.Ctx(), q, c.Actor.Person.ID, passkey.Parse(form.Get("passkey")), c.Actor.Address)
		if err != nil {
			return err
		}
		return a.alert(c, q, who, "A passkey was removed from your account.")
	})
	if err != nil {
		return err
	}
	c.Flash("Passkey removed. Delete it in your password manager or device too.")
	return c.Redirect("/account#passkeys")
}

// requirePasskey makes sign-ins require a passkey after the password. The next page shows the recovery codes.
func (a *auth) requirePasskey(c *handlers.Call) error {
	shown, codes := credential.NewRecoveryCodes()
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		p, err := accounts.RequirePasskey(c.Ctx(), q, c.Actor.Person.ID, codes, c.Actor.Address)
		if err != nil {
			return err
		}
		return a.alert(c, q, p, "The second factor of your account was turned on.")
	})
	if err != nil {
		return err
	}
	return keepCodes(c, shown)
}

// stopRequiringPasskey makes the password alone sufficient again.
func (a *auth) stopRequiringPasskey(c *handlers.Call) error {
	return a.stopFactor(c, accounts.StopRequiringPasskey, "/account#totp")
}

// passkeyLines lists the passkeys of an account, for its page.
func passkeyLines(rows []sql.Passkey) []pages.PasskeyLine {
	lines := make([]pages.PasskeyLine, len(rows))
	for i, r := range rows {
		lines[i] = pages.PasskeyLine{
			ID: passkey.Text(r.CredentialID), Name: r.Name, Created: r.CreatedAt, Used: r.UsedAt,
		}
	}
	return lines
}
