package auth

import (
	"encoding/json"
	"net/url"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/mail"
	"posthorn/domain/settings"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// signUpData is what a sign-up link stores until its address is verified.
type signUpData struct {
	Name   string `json:"name"`
	Tenant string `json:"tenant"`
}

var errNoSignup = fault.New(fault.Forbidden, "sign_up_closed", "Sign-up is closed on this server. Ask its operator for an invitation.")

func (a *auth) signUpForm(c *handlers.Call, tenant, name, email string) pages.Form {
	e := emailField(email)
	e.Hint = "We'll email you a link. Open it to set your password."
	return pages.Form{
		Shell:  c.Shell("Create tenant", ""),
		Title:  "Create tenant",
		Text:   "A tenant is your organization: its endpoints, events, and members.",
		Action: "/sign-up",
		Submit: "Send link",
		Fields: []components.FieldProps{
			{Name: "tenant", Label: "Name of your organization", Complete: "organization", Value: tenant, Required: true, MaxLength: account.MaxName},
			nameField("Your name", name),
			e,
		},
		Links: []pages.Link{{Label: "Sign in instead", Href: "/sign-in"}},
	}
}

// signupIsOpen reports whether anybody can create a tenant: the operators' setting, or else how the server was started.
// If the setting can't be read, sign-up is closed.
func (a *auth) signupIsOpen(c *handlers.Call) bool {
	platform, err := accounts.Platform(c.Ctx(), a.DB)
	if err != nil {
		a.Log.Warn("settings not read: sign-up counts as closed", "error", err)
		return false
	}
	switch settings.Word(settings.SignUp, platform) {
	case settings.Open:
		return true
	case settings.Invite:
		return false
	}
	return a.Signup
}

func (a *auth) showSignUp(c *handlers.Call) error {
	if !a.signupIsOpen(c) {
		return errNoSignup
	}
	if session, err := c.SignedIn(); err != nil {
		return err
	} else if session != nil && !session.Pending {
		return c.Redirect(newTenantPath)
	}
	return show(c, a.signUpForm(c, "", "", ""))
}

// signUp sends a link to the address, and creates nothing yet. The reader of the mail sets the password, so nobody can
// create an account for somebody else's address. An address with an account gets a mail with a link to create a tenant
// after signing in, and the page says the same.
func (a *auth) signUp(c *handlers.Call) error {
	if !a.signupIsOpen(c) {
		return errNoSignup
	}
	form, err := c.Form()
	if err != nil {
		return err
	}
	view := a.signUpForm(c, form.Get("tenant"), form.Get("name"), form.Get("email"))
	tenant, wrongTenant := account.Name("tenant", form.Get("tenant"))
	name, wrongName := account.Name("name", form.Get("name"))
	email, wrongEmail := account.Mailbox(form.Get("email"))
	if err := join(wrongTenant, wrongName, wrongEmail); err != nil {
		return refuse(c, view, err)
	}
	if err := a.addresses.Take(c.Actor.Address); err != nil {
		return refuse(c, view, err)
	}
	if err := a.mailSignUp(c, email, signUpData{Name: name, Tenant: tenant}); err != nil {
		return err
	}
	return c.Redirect(sentTo("/sign-up/sent", email))
}

func (a *auth) mailSignUp(c *handlers.Call, email string, data signUpData) error {
	return a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		wait, err := accounts.Try(c.Ctx(), q, account.Mails, "mail", email)
		if err != nil {
			return err
		}
		person, err := accounts.Find(c.Ctx(), q, a.kind, email)
		switch {
		case err == nil:
			return a.mailAccountExists(c, q, person, data, wait > 0)
		case !db.IsMissing(err):
			return err
		}
		token, err := accounts.MakeLink(c.Ctx(), q, accounts.NewLink{
			Purpose: accounts.LinkSignUp,
			Email:   email,
			Data:    data,
			Life:    account.SignUpLife,
		})
		if err != nil || wait > 0 {
			return err // too many mails: the page is the same, and nothing is sent
		}
		return a.mail(c, q, mail.VerifyAddress, email, token, mail.VerifyAddressData{
			Name:    data.Name,
			Link:    a.link("/verify-email", token),
			Expires: a.until(account.SignUpLife),
		})
	})
}

// mailAccountExists tells a person who signs up again where to create the tenant. It also creates a link that nobody
// gets, so that it takes as long as signing up a new address.
func (a *auth) mailAccountExists(c *handlers.Call, q *db.Tx, p account.Account, data signUpData, silent bool) error {
	token, err := accounts.MakeLink(c.Ctx(), q, accounts.NewLink{
		Purpose: accounts.LinkSignUp,
		Email:   p.Email,
		Data:    data,
		Life:    account.SignUpLife,
	})
	if err != nil || silent || p.Disabled {
		return err
	}
	return a.mail(c, q, mail.AccountExists, p.Email, token, mail.AccountExistsData{
		Name:    p.Name,
		Tenant:  data.Tenant,
		Link:    a.BaseURL + "/sign-in" + nextQuery(newTenantLink(data.Tenant)),
		Reset:   a.BaseURL + "/reset",
		Address: c.Actor.Address,
	})
}

// sentTo is the page that says that a mail was sent to an address.
func sentTo(path, email string) string { return path + "?" + url.Values{"to": {email}}.Encode() }

// showSent says that a mail was sent, whether one was sent or not.
func (a *auth) showSent(c *handlers.Call) error {
	to := "If the address is correct"
	if email, err := account.Email(c.Query("to")); err == nil {
		to = "If " + account.Shown(email) + " is correct"
	}
	v := pages.Form{
		Shell: c.Shell("Check your email", ""),
		Title: "Check your email",
		Text:  to + ", we've sent it an email with a link. The link works once.",
		Links: []pages.Link{{Label: "Back to sign in", Href: "/sign-in"}},
	}
	if a.MailIsShown {
		v.Note = "This server doesn't send email. It shows emails on a page instead."
		v.Links = append([]pages.Link{{Label: "Open emails", Href: "/dev/mail"}}, v.Links...)
	}
	return show(c, v)
}

var errLink = fault.New(fault.Gone, "link_used", "This link was already used, has expired, or is incomplete. Request a new one.")

// passwordForm is the form behind a link in a mail.
func passwordForm(c *handlers.Call, action, token, title, text string) pages.Form {
	return pages.Form{
		Shell:  c.Shell(title, ""),
		Title:  title,
		Text:   text,
		Action: action,
		Hidden: map[string]string{"token": token},
		Submit: "Set password",
		Fields: []components.FieldProps{newPasswordField()},
	}
}

// showVerify asks for a password. Opening the link does not use it up: mail programs open links before people do.
func (a *auth) showVerify(c *handlers.Call) error {
	link, data, err := a.peekSignUp(c, c.Query("token"))
	if err != nil {
		return err
	}
	return show(c, verifyForm(c, c.Query("token"), link, data))
}

func verifyForm(c *handlers.Call, token string, link accounts.Link, data signUpData) pages.Form {
	return passwordForm(c, "/verify-email", token, "Set a password", "Set a password to open "+data.Tenant+". You'll sign in with "+account.Shown(link.Email)+".")
}

// peek reads a link without using it up.
func (a *auth) peek(c *handlers.Call, purpose, token string) (accounts.Link, error) {
	link, err := accounts.PeekLink(c.Ctx(), a.DB, purpose, token)
	if db.IsMissing(err) {
		err = errLink
	}
	return link, err
}

func (a *auth) peekSignUp(c *handlers.Call, token string) (link accounts.Link, data signUpData, err error) {
	if link, err = a.peek(c, accounts.LinkSignUp, token); err == nil {
		err = json.Unmarshal(link.Data, &data)
	}
	return link, data, err
}

// verify creates the person and their tenant. The link verifies the address, and its holder sets the password.
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
		return refuse(c, verifyForm(c, form.Get("token"), link, data), err)
	}
	hash, err := a.passwords.Hash(c.Ctx(), form.Get("password"))
	if err != nil {
		return err
	}
	token, err := accounts.SignUp(c.Ctx(), a.DB, accounts.Registration{
		Link:     accounts.HashToken(form.Get("token")),
		Email:    link.Email,
		Name:     data.Name,
		Tenant:   data.Tenant,
		Password: hash,
		Address:  c.Actor.Address,
		Agent:    c.Request.UserAgent(),
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
