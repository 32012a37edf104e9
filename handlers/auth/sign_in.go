package auth

import (
	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// start redirects to the tenant that the person opened last, or to the sign-in page.
func (a *auth) start(c *handlers.Call) error {
	session, err := c.SignedIn()
	if err != nil {
		return err
	}
	if session == nil || session.Pending {
		return c.Redirect("/sign-in")
	}
	to, err := a.tenantPage(c, session)
	if err != nil {
		return err
	}
	return c.Redirect(to)
}

// tenantPage is the page of the tenant that a person opened last, or of their first. Without tenants it is the list.
func (a *auth) tenantPage(c *handlers.Call, session *account.Session) (path string, err error) {
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		p, err := accounts.Get(c.Ctx(), q, a.kind, session.User.ID)
		if err != nil {
			return err
		}
		tenants, err := accounts.TenantsOf(c.Ctx(), q, p.ID, session.Only)
		if err != nil {
			return err
		}
		path = "/tenants"
		for i, t := range tenants {
			if i == 0 || p.LastTenant != nil && t.Tenant == *p.LastTenant {
				path = "/t/" + id.Tenant.Format(t.Tenant)
			}
		}
		return nil
	})
	return path, err
}

// done says on the sign-in page what an anonymous visitor has just done.
var done = map[string]string{
	"password": "Your new password is set, and all sessions were signed out. Sign in with your new password.",
	"email":    "Your new email address is confirmed. Use it to sign in from now on.",
	"deleted":  "Your account was deleted.",
}

func (a *auth) signInForm(c *handlers.Call, email, next string) pages.Form {
	f := pages.Form{
		Title:   "Sign in",
		Action:  a.root + "/sign-in",
		Hidden:  map[string]string{"next": next},
		Submit:  "Sign in",
		Fields:  []components.FieldProps{emailField(email), passwordField()},
		Passkey: a.passkeyWay("Sign in with a passkey", "/sign-in/passkey", next),
	}
	f.Fields[0].Focus = email == ""
	sso := pages.Link{Label: "Sign in with SSO", Href: "/sign-in/sso" + nextQuery(next)}
	if a.operator() {
		f.Shell, f.Title = c.Shell("Console", ""), "Operator console"
		f.Text = "For the operators of this server. Members of tenants sign in on their own page."
		f.Links = []pages.Link{{Label: "Sign in to a tenant", Href: "/sign-in"}}
		sso.Href = "/console/sso" + nextQuery(next)
	} else {
		f.Shell = c.Shell("Sign in", "")
		f.Links = []pages.Link{{Label: "Forgot password?", Href: "/reset"}}
		if a.signupIsOpen(c) {
			f.Links = append(f.Links, pages.Link{Label: "Create tenant", Href: "/sign-up"})
		}
	}
	if !a.operator() || a.console.SSO != nil {
		f.Ways = []pages.Link{sso}
	}
	return f
}

func (a *auth) showSignIn(c *handlers.Call) error {
	session, err := c.SignedInAs(a.kind)
	if err != nil {
		return err
	}
	next := handlers.Next(c.Query("next"), "")
	// An operator whose sign-in is not recent confirms their identity here, a person on the account's page.
	if session != nil && !session.Pending && (session.Fresh || !a.operator()) {
		return c.Redirect(handlers.Next(next, a.home))
	}
	form := a.signInForm(c, "", next)
	form.Note = done[c.Query("done")]
	return show(c, form)
}

// errWrong is the error for an unknown address and for a wrong password.
var errWrong = fault.New(fault.Invalid, "sign_in_failed", "The email address or password is incorrect.")

// signIn checks a password. An address without an account is treated as one with a wrong password, step by step, so
// that neither the page nor its time tells them apart.
func (a *auth) signIn(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	typed, next := form.Get("email"), handlers.Next(form.Get("next"), "")
	who, err := a.checkPassword(c, typed, form.Get("password"))
	if err != nil {
		return refuse(c, a.signInForm(c, typed, next), err)
	}
	return a.begin(c, who, next)
}

// begin starts the session of a user whose password was correct. The session is pending if a second factor is missing.
// Outside development, an operator without a second factor sets one up next.
func (a *auth) begin(c *handlers.Call, who account.Account, next string) error {
	var token string
	var has account.Factors
	pending := true
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) (err error) {
		if has, err = accounts.FactorsOf(c.Ctx(), q, who); err != nil {
			return err
		}
		pending = has.SecondFactor() || a.operator() && !a.console.Development
		token, err = a.startSession(c, q, who, pending)
		return err
	})
	if err != nil {
		return err
	}
	if err := c.SetSession(a.kind, token); err != nil {
		return err
	}
	switch {
	case has.SecondFactor():
		return c.Redirect(a.root + "/sign-in/code" + nextQuery(next))
	case pending:
		return c.Redirect(a.totp)
	}
	return c.Redirect(handlers.Next(next, a.home))
}

// checkPassword finds the account with this address and password, or returns errWrong. If passwords of the account do
// not work, it returns errOnly for the correct one.
func (a *auth) checkPassword(c *handlers.Call, typed, password string) (account.Account, error) {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return account.Account{}, err
	}
	email, err := account.Email(typed)
	if err != nil {
		email = ""
	}
	who, err := a.findForSignIn(c, email)
	if err != nil {
		return who, err
	}
	right, err := a.passwords.Verify(c.Ctx(), who.Password, password)
	switch {
	case err != nil:
		return who, err
	case !right || who.Disabled:
		return who, a.refuseSignIn(c, who.ID, errWrong)
	case !a.passwordsWork(who.Email):
		return who, a.refuseSignIn(c, who.ID, errOnly)
	}
	return who, nil
}

// findForSignIn counts the try, then finds the account. The zero Account is none.
func (a *auth) findForSignIn(c *handlers.Call, email string) (who account.Account, err error) {
	wait := 0
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		if wait, err = accounts.Try(c.Ctx(), q, account.Passwords, accounts.PasswordTries(a.kind), email); err != nil {
			return err
		}
		who, err = accounts.Find(c.Ctx(), q, a.kind, email)
		if db.IsMissing(err) {
			err = nil
		}
		return err
	})
	if err == nil && wait > 0 {
		err = tooManyTries(wait)
	}
	return who, err
}

func tooManyTries(wait int) error {
	return &fault.Error{
		Kind:       fault.Limited,
		Code:       handlers.ErrTooManyTries.Code,
		Detail:     "Too many attempts for this account. Wait 15 minutes, or reset the password.",
		RetryAfter: wait,
	}
}

// refuseSignIn audits a failed sign-in and returns why it failed. It takes as many statements for nobody (zero) as for
// a person, of however many tenants.
func (a *auth) refuseSignIn(c *handlers.Call, of id.UUID, why error) error {
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		return a.self(c, of).Audit(c.Ctx(), q, "sign_in.failed", nil)
	})
	if err != nil {
		return err
	}
	return why
}

// self is a user of this realm who changes their own account in this request.
func (a *auth) self(c *handlers.Call, of id.UUID) accounts.Self {
	return accounts.Self{Kind: a.kind, ID: of, Address: c.Actor.Address}
}

// me is self for the signed-in user.
func (a *auth) me(c *handlers.Call) accounts.Self { return a.self(c, c.Actor.Session.User.ID) }

// startSession starts the session of a user with the correct password or passkey.
func (a *auth) startSession(c *handlers.Call, q *db.Tx, who account.Account, pending bool) (string, error) {
	if err := accounts.Succeeded(c.Ctx(), q, accounts.PasswordTries(a.kind), who.Email); err != nil {
		return "", err
	}
	life := a.kind.Life()
	if pending {
		life = account.SecondFactor
	} else if err := a.noteSignIn(c, q, who); err != nil {
		return "", err
	}
	session := accounts.NewSession{Life: life, Pending: pending, Address: c.Actor.Address, Agent: c.Request.UserAgent()}
	if a.operator() {
		session.Operator = &who.ID
	} else {
		session.Person = &who.ID
	}
	return accounts.StartSession(c.Ctx(), q, session)
}

// noteSignIn audits a sign-in. A person who signs in from a browser without another session gets a mail.
func (a *auth) noteSignIn(c *handlers.Call, q *db.Tx, who account.Account) error {
	if err := a.self(c, who.ID).Audit(c.Ctx(), q, "sign_in.succeeded", nil); err != nil || a.operator() {
		return err
	}
	known, err := accounts.KnowsBrowser(c.Ctx(), q, who.ID, c.Request.UserAgent())
	if err != nil || known {
		return err
	}
	return a.alert(c, q, who, "")
}

// rotate gives a session a new token, after its user has authenticated again. The session before it needed less.
func (a *auth) rotate(c *handlers.Call, session id.UUID, also func(*db.Tx) error) error {
	var token string
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		err := also(q)
		if err != nil {
			return err
		}
		token, err = accounts.RotateSession(c.Ctx(), q, a.kind, session)
		return err
	})
	if err != nil {
		return err
	}
	return c.RenewSession(a.kind, token)
}

// signOut ends the sessions of this browser: an operator's, or the person's and that of a portal link.
func (a *auth) signOut(c *handlers.Call) error {
	session, err := c.SignedInAs(a.kind)
	if err != nil {
		return err
	}
	if session != nil && !session.Pending {
		err := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
			return accounts.SignOut(c.Ctx(), q, a.self(c, session.User.ID), session.Only)
		})
		if err != nil {
			return err
		}
	}
	if err := c.EndSession(a.kind); err != nil {
		return err
	}
	if !a.operator() {
		if err := c.EndSession(account.Portal); err != nil {
			return err
		}
	}
	return c.Redirect(a.root + "/sign-in")
}
