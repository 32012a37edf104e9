package auth

import (
	"net/http"
	"strings"

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

var (
	errWrongCode = fault.InvalidField("code", "code_wrong", "This code is wrong, or was used already. Wait for the next one, or type a recovery code.")
	errNoSetup   = fault.New(fault.Conflict, "totp_not_started", "There is no second factor to confirm. Begin again on the account's page.")
)

func (a *auth) codeForm(c *handlers.Call, next string) pages.Form {
	return pages.Form{
		Shell: c.Shell("Second factor", ""), Title: "Second factor", Text: "Type the six digits that your authenticator app shows, or a recovery code.",
		Action: "/sign-in/code", Hidden: map[string]string{"next": next}, Submit: "Sign in", Fields: []components.FieldProps{codeField()},
		Links: []pages.Link{{Label: "Lost your device and your codes?", Href: "/sign-in/lost-device"}, {Label: "Start over", Href: "/sign-in"}},
	}
}

// showLostDevice says who can help somebody without their authenticator and recovery codes. It can't be a form: a mail alone opens
// no account that has a second factor.
func (a *auth) showLostDevice(c *handlers.Call) error {
	return show(c, pages.Form{
		Shell: c.Shell("Lost device", ""), Title: "Lost your device and your recovery codes?",
		Text: "A new password does not turn the second factor off. The people who run this Posthorn can: ask them to run " +
			"`posthorn account reset-second-factor` with your e-mail address, once they know that it is you. " +
			"It is written to the audit log of your tenants, and you get a mail. " +
			"If you are signed in in another browser, create new recovery codes there, on the account page.",
		Links: []pages.Link{{Label: "Back to signing in", Href: "/sign-in"}},
	})
}

// pending is the session that waits for its second factor, nil where there is none.
func (a *auth) pending(c *handlers.Call) (*handlers.Session, handlers.Person, error) {
	session, person, err := c.SignedIn()
	if session != nil && !session.Pending {
		session = nil
	}
	return session, person, err
}

func (a *auth) showCode(c *handlers.Call) error {
	session, _, err := a.pending(c)
	if err != nil {
		return err
	}
	next := handlers.Next(c.Query("next"), "")
	if session == nil {
		return c.Redirect("/sign-in" + nextQuery(next))
	}
	return show(c, a.codeForm(c, next))
}

// signInCode ends a sign-in with its second factor. The session's token changes: the one before knew the password alone.
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
			return refuseAs(c, a.codeForm(c, next), e)
		}
		return refuse(c, a.codeForm(c, next), err)
	}
	token, err := a.rotate(c, session.ID, func(q *sql.Queries) error {
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

// rotate gives a session another token, after its person has proven anew who they are.
func (a *auth) rotate(c *handlers.Call, session id.UUID, also func(*sql.Queries) error) (string, error) {
	token, hash := accounts.NewToken()
	err := a.DB.Account(c.Ctx(), func(q *sql.Queries) error {
		if also != nil {
			if err := also(q); err != nil {
				return err
			}
		}
		n, err := q.RotateSession(c.Ctx(), sql.RotateSessionParams{ID: session, Hash: hash, Lives: int32(account.Person.Life().Seconds())})
		if err == nil && n == 0 {
			err = fault.ErrNotFound
		}
		return err
	})
	return token, err
}

// takeCode uses up a code of the authenticator or a recovery code. Tries are counted before the code is looked at.
func (a *auth) takeCode(c *handlers.Call, person id.UUID, typed string) error {
	wait, wrong := 0, false
	err := a.DB.Account(c.Ctx(), func(q *sql.Queries) (err error) {
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

func (a *auth) useCode(c *handlers.Call, q *sql.Queries, p sql.Person, typed string) (bool, error) {
	if code := credential.RecoveryCode(typed); code != "" {
		n, err := q.UseRecoveryCode(c.Ctx(), sql.UseRecoveryCodeParams{OwnerID: p.ID, Hash: accounts.HashToken(code)})
		if err != nil || n == 0 {
			return false, err
		}
		return true, accounts.AuditPerson(c.Ctx(), q, p.ID, c.Actor.Address, "recovery_code.used", nil)
	}
	seed, err := a.Keys.Open(p.Totp, id.UUID{}, p.ID)
	if err != nil {
		return false, err
	}
	step, ok := credential.CheckCode(seed, typed, a.Now())
	if !ok {
		return false, nil
	}
	n, err := q.UsePersonCode(c.Ctx(), sql.UsePersonCodeParams{ID: p.ID, Step: step})
	return n == 1, err
}

// startTOTP makes a seed and shows it. It counts for nothing until a code of it was typed.
func (a *auth) startTOTP(c *handlers.Call) error {
	if c.Actor.Person.TOTP {
		return c.Redirect("/account")
	}
	seed := a.Keys.Seal(credential.NewSeed(), id.UUID{}, c.Actor.Person.ID)
	err := a.DB.Account(c.Ctx(), func(q *sql.Queries) error {
		return q.SetPersonTOTP(c.Ctx(), sql.SetPersonTOTPParams{ID: c.Actor.Person.ID, Totp: seed})
	})
	if err != nil {
		return err
	}
	return c.Redirect("/account/totp")
}

func (a *auth) setup(c *handlers.Call) (v pages.SetupView, p sql.Person, seed []byte, err error) {
	err = a.DB.Account(c.Ctx(), func(q *sql.Queries) error {
		p, err = q.GetPerson(c.Ctx(), c.Actor.Person.ID)
		return err
	})
	if err == nil && (p.Totp == nil || p.TotpAt != nil) {
		err = errNoSetup
	}
	if err != nil {
		return v, p, nil, err
	}
	if seed, err = a.Keys.Open(p.Totp, id.UUID{}, p.ID); err != nil {
		return v, p, nil, err
	}
	size, path, err := credential.QR(seed, p.Email)
	v = pages.SetupView{
		Shell: c.Shell("Second factor", ""), Action: "/account/totp", Secret: credential.SeedText(seed), QR: pages.QR{Size: size, Path: path}, Code: codeField(),
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

// confirmTOTP turns the second factor on with its first code. The page after it shows the recovery codes.
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
		v.Code.Error = "This is not the code that the app shows now. Check that the clock of the phone is right."
		return c.Render(http.StatusBadRequest, pages.Setup(v))
	}
	var shown []string
	err = a.DB.Account(c.Ctx(), func(q *sql.Queries) error {
		n, err := q.ConfirmPersonTOTP(c.Ctx(), sql.ConfirmPersonTOTPParams{ID: p.ID, Step: step})
		if err == nil && n == 0 {
			err = errNoSetup
		}
		if err != nil {
			return err
		}
		if shown, err = newRecoveryCodes(c, q, p.ID); err != nil {
			return err
		}
		if err := accounts.AuditPerson(c.Ctx(), q, p.ID, c.Actor.Address, "totp.enabled", nil); err != nil {
			return err
		}
		return a.alert(c, q, p, "The second factor of your account was turned on.")
	})
	if err != nil {
		return err
	}
	return keepCodes(c, shown)
}

func newRecoveryCodes(c *handlers.Call, q *sql.Queries, owner id.UUID) ([]string, error) {
	shown, plain := credential.NewRecoveryCodes()
	hashes := make([][]byte, len(plain))
	for i, code := range plain {
		hashes[i] = accounts.HashToken(code)
	}
	if err := q.DeleteRecoveryCodes(c.Ctx(), owner); err != nil {
		return nil, err
	}
	return shown, q.InsertRecoveryCodes(c.Ctx(), sql.InsertRecoveryCodesParams{OwnerID: owner, Hashes: hashes})
}

// codesPage shows new recovery codes once.
const codesPage = "/account/recovery-codes"

func keepCodes(c *handlers.Call, shown []string) error {
	if err := c.KeepOnce(codesPage, shown); err != nil {
		return err
	}
	return c.Redirect(codesPage)
}

// showCodes shows the codes that were just made. Opened again, there is nothing to show but how many are left.
func (a *auth) showCodes(c *handlers.Call) error {
	var shown []string
	found, err := c.TakeOnce(codesPage, &shown)
	if err != nil {
		return err
	}
	if !found {
		return c.Redirect("/account")
	}
	return c.Render(http.StatusOK, pages.Codes(pages.CodesView{Shell: c.Shell("Recovery codes", ""), Codes: strings.Join(shown, "\n"), Next: "/account"}))
}

func (a *auth) renewRecoveryCodes(c *handlers.Call) error {
	if !c.Actor.Person.TOTP {
		return c.Redirect("/account")
	}
	var shown []string
	err := a.DB.Account(c.Ctx(), func(q *sql.Queries) (err error) {
		if shown, err = newRecoveryCodes(c, q, c.Actor.Person.ID); err != nil {
			return err
		}
		return accounts.AuditPerson(c.Ctx(), q, c.Actor.Person.ID, c.Actor.Address, "recovery_codes.renewed", nil)
	})
	if err != nil {
		return err
	}
	return keepCodes(c, shown)
}

func (a *auth) stopTOTP(c *handlers.Call) error {
	err := a.DB.Account(c.Ctx(), func(q *sql.Queries) error {
		p, err := q.LockPerson(c.Ctx(), c.Actor.Person.ID)
		if err != nil || p.Totp == nil {
			return err
		}
		if err := q.SetPersonTOTP(c.Ctx(), sql.SetPersonTOTPParams{ID: p.ID}); err != nil {
			return err
		}
		if err := q.DeleteRecoveryCodes(c.Ctx(), p.ID); err != nil {
			return err
		}
		if err := accounts.AuditPerson(c.Ctx(), q, p.ID, c.Actor.Address, "totp.disabled", nil); err != nil {
			return err
		}
		return a.alert(c, q, p, "The second factor of your account was turned off.")
	})
	if err != nil {
		return err
	}
	c.Flash("The second factor is off.")
	return c.Redirect("/account")
}
