package auth

import (
	"encoding/json"
	"net/http"
	"net/url"

	"posthorn/db"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/mail"
	"posthorn/handlers"
	"posthorn/views/pages"
)

func nextQuery(next string) string {
	if next == "" {
		return ""
	}
	return "?next=" + url.QueryEscape(next)
}

// signUpData is what a sign-up link remembers until its address is proven.
type signUpData struct {
	Name   string `json:"name"`
	Tenant string `json:"tenant"`
}

var errNoSignup = fault.New(fault.Forbidden, "sign_up_closed", "New tenants are not open to everybody on this server. Ask the people who run it for an invitation.")

func (a *auth) showSignUp(c *handlers.Call) error {
	if !a.Signup {
		return errNoSignup
	}
	return c.Render(http.StatusOK, pages.SignUp(pages.SignUpView{Shell: c.Shell("Create a tenant", "")}))
}

// signUp sends a link to the address, and makes nothing yet: who reads the mail sets the password, so that nobody can take
// an account for somebody else's address. An address that has an account gets a mail that says so, and the page the same.
func (a *auth) signUp(c *handlers.Call) error {
	if !a.Signup {
		return errNoSignup
	}
	form, err := c.Form()
	if err != nil {
		return err
	}
	view := pages.SignUpView{Shell: c.Shell("Create a tenant", ""), Email: form.Get("email"), Name: form.Get("name"), Tenant: form.Get("tenant")}
	email, wrongEmail := account.Email(view.Email)
	name, wrongName := account.Name("name", view.Name)
	tenant, wrongTenant := account.Name("tenant", view.Tenant)
	for _, err := range []error{wrongTenant, wrongName, wrongEmail} {
		if err != nil {
			view.Wrong = merge(view.Wrong, err)
		}
	}
	if len(view.Wrong) > 0 {
		return c.Render(http.StatusBadRequest, pages.SignUp(view))
	}
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return err
	}
	if err := a.mailSignUp(c, email, signUpData{Name: name, Tenant: tenant}); err != nil {
		return err
	}
	return c.Redirect("/sign-up/sent")
}

func merge(wrong map[string]string, err error) map[string]string {
	if wrong == nil {
		wrong = map[string]string{}
	}
	if e := fault.As(err); e != nil {
		for _, f := range e.Fields {
			wrong[f.Name] = f.Detail
		}
	}
	return wrong
}

func (a *auth) mailSignUp(c *handlers.Call, email string, data signUpData) error {
	return a.DB.Account(c.Ctx(), func(q *db.Queries) error {
		wait, err := q.Try(c.Ctx(), account.Mails, "mail", email)
		if err != nil {
			return err
		}
		person, err := q.FindPerson(c.Ctx(), email)
		exists := err == nil
		if err != nil && !db.IsMissing(err) {
			return err
		}
		l := db.NewLink{Purpose: db.LinkSignUp, Email: email, Data: data, Life: account.SignUpLife}
		m := mailTo{to: email, name: data.Name, kind: mail.VerifyAddress, path: "/verify-email", life: account.SignUpLife}
		if exists {
			l = db.NewLink{Purpose: db.LinkReset, Person: &person.ID, Email: email, Life: account.ResetLife}
			m.name, m.kind, m.path, m.life = person.Name, mail.ResetPassword, "/reset/new", account.ResetLife
		}
		token, err := q.MakeLink(c.Ctx(), l)
		if err != nil || wait > 0 {
			return err // too many mails already: the answer is the same, and nothing is sent
		}
		return a.mail(c, q, token, m)
	})
}

func (a *auth) showSent(c *handlers.Call) error {
	return c.Render(http.StatusOK, pages.Sent(pages.SentView{Shell: c.Shell("Look into your mail", ""), MailIsLogged: a.MailIsLogged}))
}

var errLink = fault.New(fault.Gone, "link_used", "This link was used already, has expired, or was cut off when copied. Ask for a new one.")

// showVerify asks for a password. Opening the link uses nothing up: mail programs open links before people do.
func (a *auth) showVerify(c *handlers.Call) error {
	link, data, err := a.peekSignUp(c, c.Query("token"))
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.SetPassword(pages.SetPasswordView{
		Shell: c.Shell("Set a password", ""), Action: "/verify-email", Token: c.Query("token"), Email: link.Email, Tenant: data.Tenant,
	}))
}

func (a *auth) peekSignUp(c *handlers.Call, token string) (link db.OneTimeLink, data signUpData, err error) {
	err = a.DB.Account(c.Ctx(), func(q *db.Queries) error {
		link, err = q.PeekLink(c.Ctx(), db.PeekLinkParams{Hash: db.HashToken(token), Purpose: db.LinkSignUp})
		return err
	})
	if db.IsMissing(err) {
		err = errLink
	}
	if err == nil {
		err = json.Unmarshal(link.Data, &data)
	}
	return link, data, err
}

// verify makes the person and their tenant: the link proves the address, and who holds it sets the password.
func (a *auth) verify(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	link, data, err := a.peekSignUp(c, form.Get("token"))
	if err != nil {
		return err
	}
	if err := account.CheckPassword("password", form.Get("password"), link.Email, data.Name, data.Tenant); err != nil {
		return c.Render(http.StatusBadRequest, pages.SetPassword(pages.SetPasswordView{
			Shell: c.Shell("Set a password", ""), Action: "/verify-email", Token: form.Get("token"), Email: link.Email, Tenant: data.Tenant, Wrong: merge(nil, err),
		}))
	}
	hash, err := a.passwords.Hash(c.Ctx(), form.Get("password"))
	if err != nil {
		return err
	}
	token, err := a.DB.SignUp(c.Ctx(), db.SignUp{
		Link: db.HashToken(form.Get("token")), Email: link.Email, Name: data.Name, Tenant: data.Tenant, Password: hash,
		Address: c.Actor.Address, Agent: c.Request.UserAgent(),
	})
	if db.IsMissing(err) || fault.Is(err, "already_exists") {
		err = errLink
	}
	if err != nil {
		return err
	}
	if err := c.SetSession(account.Person, token); err != nil {
		return err
	}
	return c.Redirect("/")
}
