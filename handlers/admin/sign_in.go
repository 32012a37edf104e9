package admin

import (
	"net/http"
	"net/url"
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

var (
	errWrong     = fault.New(fault.Invalid, "sign_in_failed", "The email address or password is incorrect.")
	errWrongCode = fault.InvalidField("code", "code_wrong", "This code is incorrect or was already used. Wait for the next code, or enter a recovery code.")
	errLink      = fault.New(fault.Gone, "link_used", "This link was already used, has expired, or is incomplete. Request a new one.")
)

func nextQuery(next string) string {
	if next == "" {
		return ""
	}
	return "?next=" + url.QueryEscape(next)
}

// render shows a form, with the errors in err.
func render(c *handlers.Call, v pages.Form, err error) error {
	if err == nil {
		return c.Render(http.StatusOK, pages.FormPage(v))
	}
	if not := handlers.NotInput(err); not != nil {
		return not
	}
	return c.Render(handlers.Status(err), pages.FormPage(v.WithErrors(handlers.WrongFields(err))))
}

func signInForm(c *handlers.Call, email, next string) pages.Form {
	return pages.Form{
		Shell: c.Shell("Console", ""), Title: "Operator console", Text: "For the operators of this server. Members of tenants sign in on their own page.",
		Action: "/console/sign-in", Hidden: map[string]string{"next": next}, Submit: "Sign in",
		Fields: []components.FieldProps{
			{Name: "email", Label: "Email address", Type: "email", Complete: "username", Value: email, Required: true},
			{Name: "password", Label: "Password", Type: "password", Complete: "current-password", Required: true},
		},
		Links: []pages.Link{{Label: "Sign in to a tenant", Href: "/sign-in"}},
	}
}

func (a *admin) showSignIn(c *handlers.Call) error {
	next := handlers.Next(c.Query("next"), "")
	return render(c, a.ways(signInForm(c, "", next), next), nil)
}

// signIn checks a password. It takes as long for an address without an operator. Outside development, an operator
// without a second factor sets one up next.
func (a *admin) signIn(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	next := handlers.Next(form.Get("next"), "/console")
	operator, err := a.checkPassword(c, form.Get("email"), form.Get("password"))
	if err != nil {
		return render(c, a.ways(signInForm(c, form.Get("email"), next), next), err)
	}
	return a.begin(c, operator, next)
}

func (a *admin) checkPassword(c *handlers.Call, typed, password string) (operator sql.Operator, err error) {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return operator, err
	}
	email, err := account.Email(typed)
	if err != nil {
		email = ""
	}
	wait := 0
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		if wait, err = accounts.Try(c.Ctx(), q, account.Passwords, "operator password", email); err != nil {
			return err
		}
		operator, err = q.FindOperator(c.Ctx(), email)
		if db.IsMissing(err) {
			err = nil
		}
		return err
	})
	switch {
	case err != nil:
		return operator, err
	case wait > 0:
		return operator, handlers.ErrTooManyTries
	}
	hash := ""
	if operator.Password != nil {
		hash = *operator.Password
	}
	right, err := a.passwords.Verify(c.Ctx(), hash, password)
	if err != nil {
		return operator, err
	}
	if right && operator.DisabledAt == nil && !a.passwordsWork(operator.Email) {
		err := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
			return accounts.AuditOperator(c.Ctx(), q, operator.ID, c.Actor.Address, "operator.sign_in.failed")
		})
		if err == nil {
			err = errOnly
		}
		return operator, err
	}
	if right && operator.DisabledAt == nil {
		return operator, a.DB.Account(c.Ctx(), func(q *db.Tx) error {
			return accounts.Succeeded(c.Ctx(), q, "operator password", operator.Email)
		})
	}
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		return accounts.AuditOperator(c.Ctx(), q, operator.ID, c.Actor.Address, "operator.sign_in.failed")
	})
	if err == nil {
		err = errWrong
	}
	return operator, err
}

// begin starts the session of an operator whose password was right. It is pending unless no second factor is needed.
func (a *admin) begin(c *handlers.Call, operator sql.Operator, next string) error {
	pending := operator.TotpAt != nil || !a.Development
	life := account.Operator.Life()
	if pending {
		life = account.SecondFactor
	}
	var token string
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) (err error) {
		if token, err = accounts.StartSession(c.Ctx(), q, accounts.NewSession{
			Operator: &operator.ID, Life: life,
			Pending: pending, Address: c.Actor.Address, Agent: c.Request.UserAgent(),
		}); err != nil || pending {
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
	switch {
	case operator.TotpAt != nil:
		return c.Redirect("/console/sign-in/code")
	case pending:
		return c.Redirect("/console/setup/totp")
	}
	return c.Redirect(next)
}

// pending is the operator whose session waits for the second factor, or nil.
func (a *admin) pending(c *handlers.Call) (*handlers.Session, *sql.Operator, error) {
	session, who, err := c.SignedInAs(account.Operator)
	if err != nil || session == nil || !session.Pending {
		return nil, nil, err
	}
	var operator sql.Operator
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		operator, err = q.GetOperator(c.Ctx(), who.ID)
		return err
	})
	return session, &operator, err
}

func codeField() components.FieldProps {
	return components.FieldProps{Name: "code", Label: "Code", Complete: "one-time-code", Required: true, Mono: true, Width: "medium", Focus: true}
}

func (a *admin) codeForm(c *handlers.Call) pages.Form {
	f := pages.Form{
		Shell: c.Shell("Second factor", ""), Title: "Second factor", Text: "Enter the six digits from your authenticator app, or a recovery code.",
		Action: "/console/sign-in/code", Submit: "Sign in", Fields: []components.FieldProps{codeField()}, Links: []pages.Link{{Label: "Start over", Href: "/console/sign-in"}},
	}
	f.Passkey = a.passkeyWay("Use a passkey instead", Root)
	return f
}

func (a *admin) showCode(c *handlers.Call) error {
	session, operator, err := a.pending(c)
	if err != nil {
		return err
	}
	if session == nil || operator.TotpAt == nil {
		return c.Redirect("/console/sign-in")
	}
	return render(c, a.codeForm(c), nil)
}

func (a *admin) signInCode(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	session, operator, err := a.pending(c)
	if err != nil {
		return err
	}
	if session == nil || operator.TotpAt == nil {
		return c.Redirect("/console/sign-in")
	}
	if err := a.takeCode(c, *operator, form.Get("code")); err != nil {
		return render(c, a.codeForm(c), err)
	}
	if err := a.finish(c, session, operator.ID, nil); err != nil {
		return err
	}
	return c.Redirect("/console")
}

// finish makes a pending session a full one, with a new token.
func (a *admin) finish(c *handlers.Call, session *handlers.Session, operator id.UUID,
	also func(*db.Tx) error,
) error {
	var token string
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) (err error) {
		if also != nil {
			if err := also(q); err != nil {
				return err
			}
		}
		token, err = accounts.StartOperatorSession(c.Ctx(), q, session.ID, operator, c.Actor.Address)
		return err
	})
	if err != nil {
		return err
	}
	return c.RenewSession(account.Operator, token)
}

// takeCode uses up an authenticator code or a recovery code.
func (a *admin) takeCode(c *handlers.Call, operator sql.Operator, typed string) error {
	seed, err := a.Keys.Open(operator.Totp, id.UUID{}, operator.ID)
	if err != nil {
		return err
	}
	wait, used := 0, false
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) (err error) {
		if wait, err = accounts.Try(c.Ctx(), q, account.Codes, "operator code", operator.Email); err != nil || wait > 0 {
			return err
		}
		if code := credential.RecoveryCode(typed); code != "" {
			used, err = accounts.UseRecoveryCode(c.Ctx(), q, operator.ID, code)
		} else if step, ok := credential.CheckCode(seed, typed, a.Now()); ok {
			used, err = accounts.UseOperatorCode(c.Ctx(), q, operator.ID, step)
		}
		if err != nil {
			return err
		}
		if !used {
			return accounts.AuditOperator(c.Ctx(), q, operator.ID, c.Actor.Address, "operator.sign_in.failed")
		}
		return accounts.Succeeded(c.Ctx(), q, "operator code", operator.Email)
	})
	switch {
	case err != nil:
		return err
	case wait > 0:
		return handlers.ErrTooManyTries
	case !used:
		return errWrongCode
	}
	return nil
}

func (a *admin) signOut(c *handlers.Call) error {
	if err := c.EndSession(account.Operator); err != nil {
		return err
	}
	return c.Redirect("/console/sign-in")
}

// showSetup asks for a password, behind the link that the command line printed.
func (a *admin) showSetup(c *handlers.Call) error {
	link, err := a.peek(c, c.Query("token"))
	if err != nil {
		return err
	}
	return render(c, setupForm(c, c.Query("token"), link.Email), nil)
}

func (a *admin) peek(c *handlers.Call, token string) (link sql.OneTimeLink, err error) {
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		link, err = q.PeekLink(c.Ctx(), sql.PeekLinkParams{
			Hash:    accounts.HashToken(token),
			Purpose: accounts.LinkOperator,
		})
		return err
	})
	if db.IsMissing(err) {
		err = errLink
	}
	if err == nil && !a.passwordsWork(link.Email) {
		err = errSetup
	}
	return link, err
}

func setupForm(c *handlers.Call, token, email string) pages.Form {
	return pages.Form{
		Shell: c.Shell("Set a password", ""), Title: "Set a password", Text: "For signing in to the operator console as " + email + ".", Action: "/console/setup",
		Hidden: map[string]string{"token": token}, Submit: "Set password", Fields: []components.FieldProps{
			{Name: "password", Label: "New password", Type: "password", Complete: "new-password", Required: true, Hint: "At least 8 characters. Tip: use three or four random words."},
		},
	}
}

// setPassword uses up the link. It sets the password, removes the second factor, and ends all sessions.
func (a *admin) setPassword(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	link, err := a.peek(c, form.Get("token"))
	if err != nil {
		return err
	}
	if err := account.CheckPassword("password", form.Get("password"), link.Email); err != nil {
		return render(c, setupForm(c, form.Get("token"), link.Email), err)
	}
	hash, err := a.passwords.Hash(c.Ctx(), form.Get("password"))
	if err != nil {
		return err
	}
	var operator sql.Operator
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		to := accounts.NewPassword{Hash: hash, Address: c.Actor.Address}
		operator, err = accounts.SetOperatorPassword(c.Ctx(), q, form.Get("token"), to)
		return err
	})
	if db.IsMissing(err) {
		err = errLink
	}
	if err != nil {
		return err
	}
	return a.begin(c, operator, "/console")
}

// seed is the seed of an operator who sets up the second factor. The first call creates it.
func (a *admin) seed(c *handlers.Call, operator *sql.Operator) ([]byte, error) {
	if operator.Totp != nil {
		return a.Keys.Open(operator.Totp, id.UUID{}, operator.ID)
	}
	seed := credential.NewSeed()
	return seed, accounts.StartOperatorTOTP(c.Ctx(), a.DB, operator.ID, a.Keys.Seal(seed, id.UUID{}, operator.ID))
}

func (a *admin) setup(c *handlers.Call) (v pages.SetupView, session *handlers.Session, operator *sql.Operator,
	seed []byte, err error,
) {
	session, operator, err = a.pending(c)
	if err != nil || session == nil || operator.TotpAt != nil {
		return v, nil, operator, nil, err
	}
	if seed, err = a.seed(c, operator); err != nil {
		return v, session, operator, nil, err
	}
	size, path, err := credential.QR(seed, operator.Email)
	v = pages.SetupView{
		Shell: c.Shell("Second factor", ""), Action: "/console/setup/totp", Secret: credential.SeedText(seed), QR: pages.QR{Size: size, Path: path},
		Code: codeField(),
	}
	return v, session, operator, seed, err
}

func (a *admin) showTOTP(c *handlers.Call) error {
	v, session, _, _, err := a.setup(c)
	if err != nil {
		return err
	}
	if session == nil {
		return c.Redirect("/console/sign-in")
	}
	c.Uncompressed()
	return c.Render(http.StatusOK, pages.Setup(v))
}

// confirmTOTP turns the second factor on with its first code and finishes the sign-in. The next page shows the
// recovery codes.
func (a *admin) confirmTOTP(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	v, session, operator, seed, err := a.setup(c)
	if err != nil {
		return err
	}
	if session == nil {
		return c.Redirect("/console/sign-in")
	}
	step, ok := credential.CheckCode(seed, form.Get("code"), a.Now())
	if !ok {
		v.Code.Error = "This isn't the app's current code. Check that your phone's clock is correct."
		return c.Render(http.StatusBadRequest, pages.Setup(v))
	}
	shown, codes := credential.NewRecoveryCodes()
	err = a.finish(c, session, operator.ID, func(q *db.Tx) error {
		to := accounts.NewTOTP{Step: step, Codes: codes, Address: c.Actor.Address}
		return accounts.ConfirmOperatorTOTP(c.Ctx(), q, operator.ID, to)
	})
	if err != nil {
		return err
	}
	if err := c.KeepOnceFor(session.ID, codesPage, shown); err != nil {
		return err
	}
	return c.Redirect(codesPage)
}

// codesPage shows new recovery codes once.
const codesPage = Root + "/account/recovery-codes"

func (a *admin) showCodes(c *handlers.Call) error {
	var shown []string
	found, err := c.TakeOnce(codesPage, &shown)
	if err != nil {
		return err
	}
	if !found {
		return c.Redirect(Root)
	}
	return c.Render(http.StatusOK, pages.Codes(pages.CodesView{
		Shell: c.Shell("Recovery codes", ""), Codes: strings.Join(shown, "\n"), Next: Root,
	}))
}
