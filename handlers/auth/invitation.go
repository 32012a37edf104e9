package auth

import (
	"net/http"
	"net/url"

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

var errInvitation = fault.New(fault.Gone, "invitation_gone", "This invitation was already accepted, revoked, or replaced, or has expired. Ask for a new one.")

// guest is somebody who opened an invitation.
type guest struct {
	invitation sql.FindInvitationRow
	token      string
	person     handlers.Person // the signed-in person; zero: nobody
	known      bool            // the invited address has an account
}

func (a *auth) guest(c *handlers.Call, token string) (g guest, err error) {
	g.token = token
	if _, g.person, err = c.SignedInHere(); err != nil {
		return g, err
	}
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		if g.invitation, err = q.FindInvitation(c.Ctx(), accounts.HashToken(token)); err != nil {
			return err
		}
		_, err := q.FindPerson(c.Ctx(), g.invitation.Email)
		g.known = err == nil
		if db.IsMissing(err) {
			err = nil
		}
		return err
	})
	if db.IsMissing(err) || err == nil && g.invitation.Expired {
		err = errInvitation
	}
	return g, err
}

func (g guest) path() string { return "/invitations/accept?token=" + url.QueryEscape(g.token) }

// form is what the guest fills in. A holder of the link reads the mail of the invited address, so the page can say
// whether that address has an account.
func (g guest) form(c *handlers.Call) pages.Form {
	i := g.invitation
	v := pages.Form{
		Shell: c.Shell("Invitation", ""), Title: "Join " + i.TenantName, Text: "You're invited as " + article(i.Role) + ".",
		Action: "/invitations/accept", Hidden: map[string]string{"token": g.token}, Submit: "Join",
	}
	if g.person.ID.IsZero() {
		v.Text = "You're invited as " + article(i.Role) + ". You will sign in with " + account.Shown(i.Email) + "."
		v.Fields = []components.FieldProps{
			{Name: "name", Label: "Your name", Complete: "name", Required: true, MaxLength: account.MaxName}, newPasswordField(),
		}
	}
	return v
}

func article(role string) string {
	if role == "owner" || role == "admin" {
		return "an " + role
	}
	return "a " + role
}

// wrongAccount is the page for somebody who is signed in with another address than the invited one.
func (g guest) wrongAccount(c *handlers.Call) error {
	return c.Render(http.StatusForbidden, pages.FormPage(pages.Form{
		Shell: c.Shell("Invitation", ""), Title: "This invitation is for another account",
		Text:   "It was sent to " + account.MaskEmail(account.Shown(g.invitation.Email)) + ", and you're signed in as " + account.Shown(g.person.Email) + ". Sign out, then open the link in the email again.",
		Action: "/sign-out", Submit: "Sign out", Links: []pages.Link{{Label: "Stay signed in", Href: "/"}},
	}))
}

func (a *auth) showInvitation(c *handlers.Call) error {
	g, err := a.guest(c, c.Query("token"))
	switch {
	case err != nil:
		return err
	case g.person.ID.IsZero() && g.known:
		return c.Redirect("/sign-in" + nextQuery(g.path()))
	case !g.person.ID.IsZero() && g.person.Email != g.invitation.Email:
		return g.wrongAccount(c)
	}
	return show(c, g.form(c))
}

func (a *auth) acceptInvitation(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	g, err := a.guest(c, form.Get("token"))
	switch {
	case err != nil:
		return err
	case g.person.ID.IsZero() && g.known:
		return c.Redirect("/sign-in" + nextQuery(g.path()))
	case !g.person.ID.IsZero() && g.person.Email != g.invitation.Email:
		return g.wrongAccount(c)
	}
	accept := accounts.Acceptance{
		Tenant: g.invitation.TenantID, Hash: accounts.HashToken(g.token), Address: c.Actor.Address,
		Agent: c.Request.UserAgent(),
	}
	if g.person.ID.IsZero() {
		view := g.form(c)
		view.Fields[0].Value = form.Get("name")
		name, wrongName := account.Name("name", form.Get("name"))
		if err := join(wrongName, account.CheckPassword("password", form.Get("password"), g.invitation.Email, name,
			g.invitation.TenantName)); err != nil {
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
	return c.Redirect("/t/" + id.Tenant.Format(g.invitation.TenantID))
}
