package auth

import (
	"net/http"
	"net/url"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

var errInvitation = fault.New(fault.Gone, "invitation_gone", "This invitation was already accepted, revoked, or replaced, or has expired. Ask for a new one.")

// guest is somebody who opened an invitation.
type guest struct {
	accounts.Invited
	token  string
	person account.User // the signed-in person; zero: nobody
}

// asGuest calls fn for somebody who can accept an invitation. Others learn who can, or sign in first.
func (a *auth) asGuest(c *handlers.Call, token string, fn func(guest) error) error {
	g := guest{token: token}
	session, err := c.SignedInHere()
	if err != nil {
		return err
	}
	if session != nil {
		g.person = session.User
	}
	g.Invited, err = accounts.FindInvitation(c.Ctx(), a.DB, token)
	switch {
	case db.IsMissing(err):
		return errInvitation
	case err != nil:
		return err
	case g.person.ID.IsZero() && g.Known:
		return c.Redirect("/sign-in" + nextQuery(g.path()))
	case !g.person.ID.IsZero() && g.person.Email != g.Email:
		return g.wrongAccount(c)
	}
	return fn(g)
}

func (g guest) path() string { return "/invitations/accept?token=" + url.QueryEscape(g.token) }

// form is what the guest fills in. A holder of the link reads the mail of the invited address, so the page can say
// whether that address has an account.
func (g guest) form(c *handlers.Call) pages.Form {
	v := pages.Form{
		Shell:  c.Shell("Invitation", ""),
		Title:  "Join " + g.TenantName,
		Text:   "You're invited as " + article(g.Role) + ".",
		Action: "/invitations/accept",
		Hidden: map[string]string{"token": g.token},
		Submit: "Join",
	}
	if g.person.ID.IsZero() {
		v.Text = "You're invited as " + article(g.Role) + ". You will sign in with " + account.Shown(g.Email) + "."
		v.Fields = []components.FieldProps{nameField("Your name", ""), newPasswordField()}
	}
	return v
}

func article(role access.Role) string {
	if role == access.Owner || role == access.Admin {
		return "an " + string(role)
	}
	return "a " + string(role)
}

// wrongAccount is the page for somebody who is signed in with another address than the invited one.
func (g guest) wrongAccount(c *handlers.Call) error {
	return c.Render(http.StatusForbidden, pages.FormPage(pages.Form{
		Shell:  c.Shell("Invitation", ""),
		Title:  "This invitation is for another account",
		Text:   "It was sent to " + account.MaskEmail(account.Shown(g.Email)) + ", and you're signed in as " + account.Shown(g.person.Email) + ". Sign out, then open the link in the email again.",
		Action: "/sign-out",
		Submit: "Sign out",
		Links:  []pages.Link{{Label: "Stay signed in", Href: "/"}},
	}))
}

func (a *auth) showInvitation(c *handlers.Call) error {
	return a.asGuest(c, c.Query("token"), func(g guest) error { return show(c, g.form(c)) })
}

func (a *auth) acceptInvitation(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	return a.asGuest(c, form.Get("token"), func(g guest) error { return a.accept(c, g, form) })
}

func (a *auth) accept(c *handlers.Call, g guest, form url.Values) (err error) {
	accept := accounts.Acceptance{
		Tenant:  g.Tenant,
		Hash:    accounts.HashToken(g.token),
		Address: c.Actor.Address,
		Agent:   c.Request.UserAgent(),
	}
	if g.person.ID.IsZero() {
		view := g.form(c)
		view.Fields[0].Value = form.Get("name")
		name, wrongName := account.Name("name", form.Get("name"))
		wrongPassword := account.CheckPassword("password", form.Get("password"), g.Email, name, g.TenantName)
		if err := join(wrongName, wrongPassword); err != nil {
			return refuse(c, view, err)
		}
		accept.Name = name
		if accept.Password, err = a.passwords.Hash(c.Ctx(), form.Get("password")); err != nil {
			return err
		}
	} else {
		accept.Person = &g.person.ID
	}
	token, err := accounts.AcceptInvitation(c.Ctx(), a.DB, accept)
	if db.IsMissing(err) || fault.Is(err, "already_exists") {
		err = errInvitation
	}
	if err != nil {
		return err
	}
	if token != "" {
		if err := c.SetSession(account.Person, token); err != nil {
			return err
		}
	}
	return c.Redirect("/t/" + id.Tenant.Format(g.Tenant))
}
