package auth

import (
	"context"
	"net/http"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/credential"
	"posthorn/views/components"
	"posthorn/views/pages"
)

var errWrongCode = fault.InvalidField("code", "code_wrong", "This code is incorrect or was already used. Wait for the next code, or enter a recovery code.")

func (a *auth) codeForm(c *handlers.Call, next string, app bool) pages.Form {
	f := pages.Form{
		Shell: c.Shell("Second factor", ""), Title: "Second factor", Text: "Enter the six digits from your authenticator app, or a recovery code.",
		Action: "/sign-in/code", Hidden: map[string]string{"next": next}, Submit: "Sign in", Fields: []components.FieldProps{codeField()},
		Passkey: a.passkeyWay("Use a passkey instead", "/sign-in/passkey", next),
		Links:   []pages.Link{{Label: "Lost your device and recovery codes?", Href: "/sign-in/lost-device"}, {Label: "Start over", Href: "/sign-in"}},
	}
	if !app {
		f.Text = "Use your passkey. If you can't, enter a recovery code."
		f.Fields[0].Label, f.Passkey = "Recovery code", a.passkeyWay("Use a passkey", "/sign-in/passkey", next)
	}
	return f
}

// showLostDevice says who can help a person who lost the authenticator and the recovery codes. It can't be a form: a
// mail alone never opens an account with a second factor.
func (a *auth) showLostDevice(c *handlers.Call) error {
	return show(c, pages.Form{
		Shell: c.Shell("Lost device", ""), Title: "Lost your device and recovery codes?",
		Text:    "A new password doesn't turn off the second factor. The operator of this server can. Ask them to run this command, with your email address:",
		Command: "posthorn account reset-second-factor --email you@example.com --reason \"...\"",
		More: "They'll confirm your identity first. The reset is recorded in your tenants' audit logs, and you'll get an email. " +
			"Still signed in in another browser? Create new recovery codes there, on the account page.",
		Links: []pages.Link{{Label: "Back to sign in", Href: "/sign-in"}},
	})
}

// pending is the session that waits for its second factor, or nil.
func (a *auth) pending(c *handlers.Call) (*handlers.Session, handlers.Person, error) {
	session, person, err := c.SignedIn()
	if session != nil && !session.Pending {
		session = nil
	}
	return session, person, err
}

func (a *auth) showCode(c *handlers.Call) error {
	session, person, err := a.pending(c)
	if err != nil {
		return err
	}
	next := handlers.Next(c.Query("next"), "")
	if session == nil {
		return c.Redirect("/sign-in" + nextQuery(next))
	}
	return show(c, a.codeForm(c, next, person.TOTP))
}

// signInCode finishes a sign-in with its second factor. The session gets a new token: the one before needed only the
// password.
func (a *auth) signInCode(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	session, person, err := a.pending(c)
	if err != nil {
		return err
	}
	next := handlers.Next(form.Get("next"), "")
	if session == nil {
		return c.Redirect("/sign-in" + nextQuery(next))
	}
	if err := a.takeCode(c, person.ID, form.Get("code")); err != nil {
		if e := fault.As(err); e != nil && e.Kind == fault.Limited {
			return refuseAs(c, a.codeForm(c, next, person.TOTP), e)
		}
		return refuse(c, a.codeForm(c, next, person.TOTP), err)
	}
	token, err := a.rotate(c, session.ID, func(q *db.Tx) error {
		p, err := q.GetPerson(c.Ctx(), person.ID)
		if err != nil {
			return err
		}
		return a.noteSignIn(c, q, p)
	})
	if err != nil {
		return err
	}
	if err := c.RenewSession(account.Person, token); err != nil {
		return err
	}
	return c.Redirect(handlers.Next(next, "/"))
}

// rotate gives a session a new token, after its person has authenticated again.
func (a *auth) rotate(c *handlers.Call, session id.UUID, also func(*db.Tx) error) (token string, err error) {
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		if err := also(q); err != nil {
			return err
		}
		token, err = accounts.RotateSession(c.Ctx(), q, account.Person, session)
		return err
	})
	return token, err
}

// takeCode uses up an authenticator code or a recovery code. A try counts before the code is checked.
func (a *auth) takeCode(c *handlers.Call, person id.UUID, typed string) error {
	wait, wrong := 0, false
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) (err error) {
		if wait, err = accounts.Try(c.Ctx(), q, account.Codes, "code", person.String()); err != nil || wait > 0 {
			return err
		}
		p, err := q.GetPerson(c.Ctx(), person)
		if err != nil {
			return err
		}
		took, err := a.useCode(c, q, p, typed)
		if err != nil {
			return err
		}
		if wrong = !took; wrong {
			return accounts.AuditPerson(c.Ctx(), q, person, c.Actor.Address, "sign_in.failed", map[string]string{"step": "second factor"})
		}
		return accounts.Succeeded(c.Ctx(), q, "code", person.String())
	})
	switch {
	case err != nil:
		return err
	case wait > 0:
		return tooManyTries(wait)
	case wrong:
		return errWrongCode
	}
	return nil
}

func (a *auth) useCode(c *handlers.Call, q *db.Tx, p sql.Person, typed string) (bool, error) {
	if code := credential.RecoveryCode(typed); code != "" {
		used, err := accounts.UseRecoveryCode(c.Ctx(), q, p.ID, code)
		if err != nil || !used {
			return false, err
		}
		return true, accounts.AuditPerson(c.Ctx(), q, p.ID, c.Actor.Address, "recovery_code.used", nil)
	}
	if p.TotpAt == nil {
		return false, nil // there is no app: only a recovery code can be correct
	}
	seed, err := a.Keys.Open(p.Totp, id.UUID{}, p.ID)
	if err != nil {
		return false, err
	}
	step, ok := credential.CheckCode(seed, typed, a.Now())
	if !ok {
		return false, nil
	}
	return accounts.UseCode(c.Ctx(), q, p.ID, step)
}

// startTOTP creates a seed and shows it. It has no effect until one of its codes was typed.
func (a *auth) startTOTP(c *handlers.Call) error {
	if c.Actor.Person.TOTP {
		return c.Redirect("/account")
	}
	seed := a.Keys.Seal(credential.NewSeed(), id.UUID{}, c.Actor.Person.ID)
	if err := accounts.StartTOTP(c.Ctx(), a.DB, c.Actor.Person.ID, seed); err != nil {
		return err
	}
	return c.Redirect("/account/totp")
}

func (a *auth) setup(c *handlers.Call) (v pages.SetupView, p sql.Person, seed []byte, err error) {
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		p, err = q.GetPerson(c.Ctx(), c.Actor.Person.ID)
		return err
	})
	if err == nil && (p.Totp == nil || p.TotpAt != nil) {
		err = accounts.ErrNoSetup
	}
	if err != nil {
		return v, p, nil, err
	}
	if seed, err = a.Keys.Open(p.Totp, id.UUID{}, p.ID); err != nil {
		return v, p, nil, err
	}
	size, path, err := credential.QR(seed, p.Email)
	v = pages.SetupView{
		Shell: c.Shell("Second factor", ""), Action: "/account/totp", Secret: credential.SeedText(seed), QR: pages.QR{Size: size, Path: path},
		Code: codeField(),
	}
	return v, p, seed, err
}

func (a *auth) showTOTP(c *handlers.Call) error {
	if c.Actor.Person.TOTP {
		return c.Redirect("/account") // it is on already
	}
	v, _, _, err := a.setup(c)
	if err != nil {
		return err
	}
	c.Uncompressed()
	return c.Render(http.StatusOK, pages.Setup(v))
}

// confirmTOTP turns the second factor on with its first code. The next page shows the recovery codes.
func (a *auth) confirmTOTP(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	v, p, seed, err := a.setup(c)
	if err != nil {
		return err
	}
	step, ok := credential.CheckCode(seed, form.Get("code"), a.Now())
	if !ok {
		v.Code.Error = "This isn't the app's current code. Check that your phone's clock is correct."
		return c.Render(http.StatusBadRequest, pages.Setup(v))
	}
	shown, codes := credential.NewRecoveryCodes()
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		err := accounts.ConfirmTOTP(c.Ctx(), q, p.ID, accounts.NewTOTP{
			Step: step, Codes: codes, Address: c.Actor.Address,
		})
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

// codesPage shows new recovery codes once.
const codesPage = "/account/recovery-codes"

func keepCodes(c *handlers.Call, shown []string) error {
	if err := c.KeepOnce(codesPage, shown); err != nil {
		return err
	}
	return c.Redirect(codesPage)
}

// showCodes shows new codes once. Opened again, it redirects to the account page, which shows how many are left.
func (a *auth) showCodes(c *handlers.Call) error {
	var shown []string
	found, err := c.TakeOnce(codesPage, &shown)
	if err != nil {
		return err
	}
	if !found {
		return c.Redirect("/account")
	}
	return c.Render(http.StatusOK, pages.Codes(pages.CodesView{
		Shell: c.Shell("Recovery codes", ""), Codes: strings.Join(shown, "\n"), Next: "/account",
	}))
}

func (a *auth) renewRecoveryCodes(c *handlers.Call) error {
	v, err := a.view(c)
	if err != nil {
		return err
	}
	if !v.TOTP && !v.PasskeyRequired {
		return c.Redirect("/account")
	}
	shown, codes := credential.NewRecoveryCodes()
	if err := accounts.RenewRecoveryCodes(c.Ctx(), a.DB, c.Actor.Person.ID, codes, c.Actor.Address); err != nil {
		return err
	}
	return keepCodes(c, shown)
}

func (a *auth) stopTOTP(c *handlers.Call) error {
	return a.stopFactor(c, accounts.StopTOTP, "/account")
}

// stopping stops a second factor of a person, and reports whether there was one.
type stopping func(ctx context.Context, q *db.Tx, person id.UUID, address string) (sql.Person, bool, error)

// stopFactor stops a second factor, and tells the person by mail if there was one.
func (a *auth) stopFactor(c *handlers.Call, stop stopping, next string) error {
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		p, was, err := stop(c.Ctx(), q, c.Actor.Person.ID, c.Actor.Address)
		if err != nil || !was {
			return err
		}
		return a.alert(c, q, p, "The second factor of your account was turned off.")
	})
	if err != nil {
		return err
	}
	c.Flash("Second factor turned off.")
	return c.Redirect(next)
}
