package auth

import (
	"net/url"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/credential"
	"posthorn/handlers/passkey"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// passkeyWay is the button that authenticates with a passkey. A server without a host name has none.
func (a *auth) passkeyWay(label, path, next string) *pages.PasskeyWay {
	if a.passkeys == nil {
		return nil
	}
	return &pages.PasskeyWay{
		Label:   label,
		Action:  a.root + path,
		Options: a.root + "/sign-in/passkey/options",
		Next:    next,
	}
}

// passkeyOptions starts a sign-in with a passkey.
func (a *auth) passkeyOptions(c *handlers.Call) error {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return err
	}
	return a.passkeys.ForSignIn(c)
}

// verifyPasskey returns the account whose passkey a form shows. It rejects another account than the expected one; zero
// expects nobody in particular.
func (a *auth) verifyPasskey(c *handlers.Call, form url.Values, expected id.UUID) (who account.Account, err error) {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return who, err
	}
	of, err := a.passkeys.Verify(c, form)
	if err == nil && !expected.IsZero() && of != expected {
		err = passkey.ErrRejected
	}
	if err == nil {
		err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
			who, err = accounts.Get(c.Ctx(), q, a.kind, of)
			return err
		})
	}
	switch {
	case err == nil && who.Disabled:
		err = passkey.ErrRejected
	case err == nil && !a.passwordsWork(who.Email):
		return who, a.refuseSignIn(c, who.ID, errOnly)
	}
	if passkey.IsRejected(err) {
		return who, a.refuseSignIn(c, expected, err)
	}
	return who, err
}

// signInPasskey signs in with a passkey, which is both factors: the user has the device, and the device has verified
// them. After a password it stands in for the code.
func (a *auth) signInPasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	next := handlers.Next(form.Get("next"), "")
	pending, err := a.pending(c)
	if err != nil {
		return err
	}
	var expected id.UUID
	page := a.signInForm(c, "", next)
	if pending != nil {
		expected, page = pending.User.ID, a.codeForm(c, next, pending.User.TOTP)
	}
	who, err := a.verifyPasskey(c, form, expected)
	if err != nil {
		return refuse(c, page, err)
	}
	var token string
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		token, err = a.startSession(c, q, who, false)
		return err
	})
	if err != nil {
		return err
	}
	if err := c.SetSession(a.kind, token); err != nil {
		return err
	}
	return c.Redirect(handlers.Next(next, a.home))
}

// confirmPasskey authenticates the person again with a passkey.
func (a *auth) confirmPasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	next := handlers.Next(form.Get("next"), "/account")
	if _, err = a.verifyPasskey(c, form, c.Actor.Person.ID); err != nil {
		return a.refuseConfirm(c, next, err)
	}
	if err := a.rotate(c, c.Actor.Session.ID, func(*db.Tx) error { return nil }); err != nil {
		return err
	}
	return c.Redirect(next)
}

func (a *auth) newPasskeyOptions(c *handlers.Call) error {
	return a.passkeys.ForNew(c, c.Actor.Session.User)
}

// passkeyName reads the name in a form; without one it is that of the browser.
func passkeyName(c *handlers.Call, form url.Values) (string, error) {
	if form.Get("name") == "" {
		return account.Browser(c.Request.UserAgent()), nil
	}
	return account.Name("name", form.Get("name"))
}

func (a *auth) addPasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	name, err := passkeyName(c, form)
	if err != nil {
		return a.refusePasskey(c, err, form.Get("name"))
	}
	added, err := a.passkeys.Register(c, form, c.Actor.Session.User)
	if err == nil {
		added.Name = name
		err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
			who, err := accounts.AddPasskey(c.Ctx(), q, a.me(c), added)
			if err != nil {
				return err
			}
			return a.alert(c, q, who, "A passkey was added to your account: "+name+". It signs in without your password.")
		})
	}
	if err != nil {
		return a.refusePasskey(c, err, form.Get("name"))
	}
	return a.passkeysChanged(c, "Passkey added. Use it the next time you sign in.")
}

func (a *auth) passkeysChanged(c *handlers.Call, text string) error {
	return c.Done(a.root+"/account#passkeys", text)
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
	credential := account.ParsePasskey(form.Get("passkey"))
	if err := accounts.RenamePasskey(c.Ctx(), a.DB, c.Actor.Session.User.ID, credential, name); err != nil {
		return err
	}
	return a.passkeysChanged(c, "Passkey renamed.")
}

func (a *auth) removePasskey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		who, err := accounts.RemovePasskey(c.Ctx(), q, a.me(c), account.ParsePasskey(form.Get("passkey")))
		if err != nil {
			return err
		}
		return a.alert(c, q, who, "A passkey was removed from your account.")
	})
	if err != nil {
		return err
	}
	return a.passkeysChanged(c, "Passkey removed. Delete it in your password manager or device too.")
}

// requirePasskey makes sign-ins require a passkey after the password. The next page shows the recovery codes.
func (a *auth) requirePasskey(c *handlers.Call) error {
	shown, codes := credential.NewRecoveryCodes()
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		p, err := accounts.RequirePasskey(c.Ctx(), q, a.me(c), codes)
		if err != nil {
			return err
		}
		return a.alert(c, q, p, "The second factor of your account was turned on.")
	})
	if err != nil {
		return err
	}
	return a.keepCodes(c, c.Actor.Session.ID, shown)
}

// stopRequiringPasskey makes the password alone sufficient again.
func (a *auth) stopRequiringPasskey(c *handlers.Call) error {
	return a.stopFactor(c, accounts.StopRequiringPasskey, "/account#totp")
}
