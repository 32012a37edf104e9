package auth

import (
	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// start redirects to the tenant that the person opened last, or to the sign-in page.
func (a *auth) start(c *handlers.Call) error {
	session, person, err := c.SignedIn()
	if err != nil {
		return err
	}
	if session == nil || session.Pending {
		return c.Redirect("/sign-in")
	}
	to, err := a.home(c, person.ID, session.Only)
	if err != nil {
		return err
	}
	return c.Redirect(to)
}

// home is the page of the tenant that a person opened last, or of their first. Without tenants it is the list.
func (a *auth) home(c *handlers.Call, person id.UUID, only *id.UUID) (path string, err error) {
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		p, err := q.GetPerson(c.Ctx(), person)
		if err != nil {
			return err
		}
		tenants, err := accounts.TenantsOf(c.Ctx(), q, person, only)
		if err != nil {
			return err
		}
		path = "/tenants"
		for i, t := range tenants {
			if i == 0 || p.LastTenant != nil && t.TenantID == *p.LastTenant {
				path = "/t/" + id.Tenant.Format(t.TenantID)
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
		Shell: c.Shell("Sign in", ""), Title: "Sign in", Action: "/sign-in", Hidden: map[string]string{"next": next}, Submit: "Sign in",
		Fields: []components.FieldProps{emailField(email), passwordField()},
		Ways:   []pages.Link{{Label: "Sign in with SSO", Href: "/sign-in/sso" + nextQuery(next)}},
		Links:  []pages.Link{{Label: "Forgot password?", Href: "/reset"}},
	}
	f.Fields[0].Focus = email == ""
	f.Passkey = a.passkeyWay("Sign in with a passkey", "/sign-in/passkey", next)
	if a.signupIsOpen(c) {
		f.Links = append(f.Links, pages.Link{Label: "Create tenant", Href: "/sign-up"})
	}
	return f
}

func (a *auth) showSignIn(c *handlers.Call) error {
	session, _, err := c.SignedIn()
	if err != nil {
		return err
	}
	next := handlers.Next(c.Query("next"), "")
	if session != nil && !session.Pending {
		return c.Redirect(handlers.Next(next, "/"))
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
	person, err := a.checkPassword(c, typed, form.Get("password"))
	if e := fault.As(err); e != nil && (e == errWrong || e.Kind == fault.Limited) {
		return refuseAs(c, a.signInForm(c, typed, next), e)
	}
	if err != nil {
		return err
	}
	var token string
	pending := true
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		has, err := accounts.FactorsOf(c.Ctx(), q, person)
		if err != nil {
			return err
		}
		pending = has.SecondFactor()
		token, err = a.startSession(c, q, person, pending)
		return err
	})
	if err != nil {
		return err
	}
	if err := c.SetSession(account.Person, token); err != nil {
		return err
	}
	if pending {
		return c.Redirect("/sign-in/code" + nextQuery(next))
	}
	return c.Redirect(handlers.Next(next, "/"))
}

// checkPassword finds the person with this address and password, or returns errWrong.
func (a *auth) checkPassword(c *handlers.Call, typed, password string) (sql.Person, error) {
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return sql.Person{}, err
	}
	email, err := account.Email(typed)
	if err != nil {
		email = ""
	}
	person, err := a.findForSignIn(c, email)
	if err != nil {
		return person, err
	}
	right, err := a.passwords.Verify(c.Ctx(), person.Password, password)
	if err != nil {
		return person, err
	}
	if !right || person.DisabledAt != nil {
		return person, a.refuseSignIn(c, person.ID)
	}
	return person, nil
}

// findForSignIn counts the try, then finds the person. The zero Person is none.
func (a *auth) findForSignIn(c *handlers.Call, email string) (person sql.Person, err error) {
	wait := 0
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		if wait, err = accounts.Try(c.Ctx(), q, account.Passwords, "password", email); err != nil {
			return err
		}
		person, err = q.FindPerson(c.Ctx(), email)
		if db.IsMissing(err) {
			err = nil
		}
		return err
	})
	if err == nil && wait > 0 {
		err = tooManyTries(wait)
	}
	return person, err
}

func tooManyTries(wait int) error {
	return &fault.Error{
		Kind: fault.Limited, Code: handlers.ErrTooManyTries.Code, Detail: "Too many attempts for this account. Wait 15 minutes, or reset the password.", RetryAfter: wait,
	}
}

// refuseSignIn audits a failed sign-in. It takes as many statements for nobody as for a person, of however many
// tenants.
func (a *auth) refuseSignIn(c *handlers.Call, person id.UUID) error {
	err := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		return accounts.AuditPerson(c.Ctx(), q, person, c.Actor.Address, "sign_in.failed", nil)
	})
	if err != nil {
		return err
	}
	return errWrong
}

// startSession starts the session of a person with the correct password.
func (a *auth) startSession(c *handlers.Call, q *db.Tx, person sql.Person, pending bool) (string, error) {
	if err := accounts.Succeeded(c.Ctx(), q, "password", person.Email); err != nil {
		return "", err
	}
	life := account.Person.Life()
	if pending {
		life = account.SecondFactor
	} else if err := a.noteSignIn(c, q, person); err != nil {
		return "", err
	}
	return accounts.StartSession(c.Ctx(), q, accounts.NewSession{
		Person: &person.ID, Life: life, Pending: pending, Address: c.Actor.Address, Agent: c.Request.UserAgent(),
	})
}

// noteSignIn audits a sign-in. A person who signs in from a browser without another session gets a mail.
func (a *auth) noteSignIn(c *handlers.Call, q *db.Tx, person sql.Person) error {
	if err := accounts.AuditPerson(c.Ctx(), q, person.ID, c.Actor.Address, "sign_in.succeeded", nil); err != nil {
		return err
	}
	known, err := q.KnownBrowser(c.Ctx(), sql.KnownBrowserParams{
		PersonID: &person.ID,
		Agent:    accounts.Agent(c.Request.UserAgent()),
	})
	if err != nil || known.Own || known.Others == 0 {
		return err
	}
	return a.alert(c, q, person, "")
}

// signOut ends every session of this browser: the person's, and that of a portal link.
func (a *auth) signOut(c *handlers.Call) error {
	session, person, err := c.SignedIn()
	if err != nil {
		return err
	}
	if session != nil && !session.Pending {
		err := a.DB.Account(c.Ctx(), func(q *db.Tx) error {
			return accounts.SignOut(c.Ctx(), q, person.ID, session.Only, c.Actor.Address)
		})
		if err != nil {
			return err
		}
	}
	for _, kind := range []account.Kind{account.Person, account.Portal} {
		if err := c.EndSession(kind); err != nil {
			return err
		}
	}
	return c.Redirect("/sign-in")
}
