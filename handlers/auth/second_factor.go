package auth

import (
	"context"
	"net/http"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
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
		Shell:   c.Shell("Second factor", ""),
		Title:   "Second factor",
		Text:    "Enter the six digits from your authenticator app, or a recovery code.",
		Action:  a.root + "/sign-in/code",
		Hidden:  map[string]string{"next": next},
		Submit:  "Sign in",
		Fields:  []components.FieldProps{codeField()},
		Passkey: a.passkeyWay("Use a passkey instead", "/sign-in/passkey", next),
		Links:   []pages.Link{{Label: "Start over", Href: a.root + "/sign-in"}},
	}
	if !a.operator() {
		f.Links = append([]pages.Link{{Label: "Lost your device and recovery codes?", Href: "/sign-in/lost-device"}}, f.Links...)
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
		Shell:   c.Shell("Lost device", ""),
		Title:   "Lost your device and recovery codes?",
		Text:    "A new password doesn't turn off the second factor. The operator of this server can. Ask them to run this command, with your email address:",
		Command: "posthorn account reset-second-factor --email you@example.com --reason \"...\"",
		More: "They'll confirm your identity first. The reset is recorded in your tenants' audit logs, and you'll get an email. " +
			"Still signed in in another browser? Create new recovery codes there, on the account page.",
		Links: []pages.Link{{Label: "Back to sign in", Href: "/sign-in"}},
	})
}

// pending is the session that waits for its second factor, or nil. An operator without one has to set it up first.
func (a *auth) pending(c *handlers.Call) (*account.Session, error) {
	session, err := c.SignedInAs(a.kind)
	if err != nil || session == nil || !session.Pending || a.operator() && !session.User.TOTP {
		return nil, err
	}
	return session, nil
}

func (a *auth) showCode(c *handlers.Call) error {
	session, err := a.pending(c)
	if err != nil {
		return err
	}
	next := handlers.Next(c.Query("next"), "")
	if session == nil {
		return c.Redirect(a.root + "/sign-in" + nextQuery(next))
	}
	return show(c, a.codeForm(c, next, session.User.TOTP))
}

// signInCode finishes a sign-in with its second factor.
func (a *auth) signInCode(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	session, err := a.pending(c)
	if err != nil {
		return err
	}
	next := handlers.Next(form.Get("next"), "")
	if session == nil {
		return c.Redirect(a.root + "/sign-in" + nextQuery(next))
	}
	if err := a.takeCode(c, session.User.ID, form.Get("code")); err != nil {
		return refuse(c, a.codeForm(c, next, session.User.TOTP), err)
	}
	err = a.rotate(c, session.ID, func(q *db.Tx) error {
		who, err := accounts.Get(c.Ctx(), q, a.kind, session.User.ID)
		if err != nil {
			return err
		}
		return a.noteSignIn(c, q, who)
	})
	if err != nil {
		return err
	}
	return c.Redirect(handlers.Next(next, a.home))
}

// takeCode uses up an authenticator code or a recovery code. A try counts before the code is checked.
func (a *auth) takeCode(c *handlers.Call, of id.UUID, typed string) error {
	wait, used := 0, false
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) (err error) {
		wait, err = accounts.Try(c.Ctx(), q, account.Codes, accounts.CodeTries(a.kind), of.String())
		if err != nil || wait > 0 {
			return err
		}
		if used, err = a.useCode(c, q, of, typed); err != nil {
			return err
		}
		if !used {
			return a.self(c, of).Audit(c.Ctx(), q, "sign_in.failed", map[string]string{"step": "second factor"})
		}
		return accounts.Succeeded(c.Ctx(), q, accounts.CodeTries(a.kind), of.String())
	})
	switch {
	case err != nil:
		return err
	case wait > 0:
		return tooManyTries(wait)
	case !used:
		return errWrongCode
	}
	return nil
}

func (a *auth) useCode(c *handlers.Call, q *db.Tx, of id.UUID, typed string) (bool, error) {
	if code := credential.RecoveryCode(typed); code != "" {
		return accounts.UseRecoveryCode(c.Ctx(), q, a.self(c, of), code)
	}
	who, err := accounts.Get(c.Ctx(), q, a.kind, of)
	if err != nil || !who.TOTP {
		return false, err // without an app, only a recovery code can be correct
	}
	seed, err := a.Keys.Open(who.Seed, id.UUID{}, of)
	if err != nil {
		return false, err
	}
	step, ok := credential.CheckCode(seed, typed, a.Now())
	if !ok {
		return false, nil
	}
	return accounts.UseCode(c.Ctx(), q, a.self(c, of), step)
}

// newSeed stores a new seed of an authenticator app. It has no effect until one of its codes was typed.
func (a *auth) newSeed(c *handlers.Call, user account.User) ([]byte, error) {
	seed := credential.NewSeed()
	return seed, accounts.StartTOTP(c.Ctx(), a.DB, user, a.Keys.Seal(seed, id.UUID{}, user.ID))
}

func (a *auth) startTOTP(c *handlers.Call) error {
	if c.Actor.Person.TOTP {
		return c.Redirect("/account")
	}
	if _, err := a.newSeed(c, c.Actor.Person); err != nil {
		return err
	}
	return c.Redirect(a.totp)
}

// enrolls is the session whose user can set up an authenticator app: a person on the account page, or an operator
// before the first sign-in. It is nil if the app is set up already.
func (a *auth) enrolls(c *handlers.Call) (session *account.Session, err error) {
	if session = c.Actor.Session; a.operator() {
		if session, err = c.SignedInAs(a.kind); err != nil || session == nil || !session.Pending {
			return nil, err
		}
	}
	if session.User.TOTP {
		session = nil
	}
	return session, nil
}

// notEnrolling is where a user goes who can set up no authenticator app.
func (a *auth) notEnrolling(c *handlers.Call) error {
	if a.operator() {
		return c.Redirect("/console/sign-in")
	}
	return c.Redirect("/account")
}

// setup is the page of a seed. An operator's is created with the first page.
func (a *auth) setup(c *handlers.Call, user account.User) (v pages.SetupView, who account.Account, seed []byte, err error) {
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		who, err = accounts.Get(c.Ctx(), q, a.kind, user.ID)
		return err
	})
	switch {
	case err != nil:
	case who.TOTP || who.Seed == nil && !a.operator():
		err = accounts.ErrNoSetup
	case who.Seed == nil:
		seed, err = a.newSeed(c, user)
	default:
		seed, err = a.Keys.Open(who.Seed, id.UUID{}, who.ID)
	}
	if err != nil {
		return v, who, nil, err
	}
	size, path, err := credential.QR(seed, who.Email)
	v = pages.SetupView{
		Shell:  c.Shell("Second factor", ""),
		Action: a.totp,
		Secret: credential.SeedText(seed),
		QR:     pages.QR{Size: size, Path: path},
		Code:   codeField(),
	}
	return v, who, seed, err
}

func (a *auth) showTOTP(c *handlers.Call) error {
	session, err := a.enrolls(c)
	if err != nil {
		return err
	}
	if session == nil {
		return a.notEnrolling(c)
	}
	v, _, _, err := a.setup(c, session.User)
	if err != nil {
		return err
	}
	c.Uncompressed()
	return c.Render(http.StatusOK, pages.Setup(v))
}

// confirmTOTP turns the authenticator app on with its first code, which also finishes the sign-in of an operator. The
// next page shows the recovery codes.
func (a *auth) confirmTOTP(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	session, err := a.enrolls(c)
	if err != nil {
		return err
	}
	if session == nil {
		return a.notEnrolling(c)
	}
	v, who, seed, err := a.setup(c, session.User)
	if err != nil {
		return err
	}
	step, ok := credential.CheckCode(seed, form.Get("code"), a.Now())
	if !ok {
		v.Code.Error = "This isn't the app's current code. Check that your phone's clock is correct."
		return c.Render(http.StatusBadRequest, pages.Setup(v))
	}
	shown, codes := credential.NewRecoveryCodes()
	confirm := func(q *db.Tx) error {
		if err := accounts.ConfirmTOTP(c.Ctx(), q, a.self(c, who.ID), step, codes); err != nil {
			return err
		}
		if session.Pending {
			return a.noteSignIn(c, q, who)
		}
		return a.alert(c, q, who, "The second factor of your account was turned on.")
	}
	if session.Pending {
		err = a.rotate(c, session.ID, confirm)
	} else {
		err = a.DB.Account(c.Ctx(), confirm)
	}
	if err != nil {
		return err
	}
	return a.keepCodes(c, session.ID, shown)
}

// codesPage shows new recovery codes once.
func (a *auth) codesPage() string { return a.root + "/account/recovery-codes" }

func (a *auth) keepCodes(c *handlers.Call, session id.UUID, shown []string) error {
	if err := c.KeepOnceFor(session, a.codesPage(), shown); err != nil {
		return err
	}
	return c.Redirect(a.codesPage())
}

// showCodes shows new codes once. Opened again, it redirects to the page after it.
func (a *auth) showCodes(c *handlers.Call) error {
	var shown []string
	found, err := c.TakeOnce(a.codesPage(), &shown)
	if err != nil {
		return err
	}
	if !found {
		return c.Redirect(a.codes)
	}
	return c.Render(http.StatusOK, pages.Codes(pages.CodesView{
		Shell: c.Shell("Recovery codes", ""),
		Codes: strings.Join(shown, "\n"),
		Next:  a.codes,
	}))
}

func (a *auth) renewRecoveryCodes(c *handlers.Call) error {
	v, err := a.view(c)
	if err != nil {
		return err
	}
	if !v.Factors.SecondFactor() {
		return c.Redirect("/account")
	}
	shown, codes := credential.NewRecoveryCodes()
	if err := accounts.RenewRecoveryCodes(c.Ctx(), a.DB, a.me(c), codes); err != nil {
		return err
	}
	return a.keepCodes(c, c.Actor.Session.ID, shown)
}

func (a *auth) stopTOTP(c *handlers.Call) error {
	return a.stopFactor(c, accounts.StopTOTP, "/account")
}

// stopping stops a second factor of a person, and reports whether there was one.
type stopping func(ctx context.Context, q *db.Tx, self accounts.Self) (account.Account, bool, error)

// stopFactor stops a second factor, and tells the person by mail if there was one.
func (a *auth) stopFactor(c *handlers.Call, stop stopping, next string) error {
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		p, was, err := stop(c.Ctx(), q, a.me(c))
		if err != nil || !was {
			return err
		}
		return a.alert(c, q, p, "The second factor of your account was turned off.")
	})
	if err != nil {
		return err
	}
	return c.Done(next, "Second factor turned off.")
}
