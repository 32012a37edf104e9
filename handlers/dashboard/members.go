package dashboard

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// maxMembers bounds how many members and invitations one page lists. The API pages through more.
const maxMembers = 500

// members is the current members' page.
func (a *dashboard) members(c *handlers.Call) (v pages.MembersView, err error) {
	var members show.Page[show.Member]
	var invitations show.Page[show.Invitation]
	err = c.Tx(func(q *db.Tx) error {
		all := show.Range{Ascending: true, Limit: maxMembers}
		if members, err = accounts.ListMembers(c.Ctx(), q, c.Actor.Tenant, all); err != nil {
			return err
		}
		invitations, err = accounts.ListInvitations(c.Ctx(), q, c.Actor.Tenant, all)
		return err
	})
	if err != nil {
		return v, err
	}
	v = pages.MembersView{
		Root:            path(c, "/members"),
		InvitationsRoot: path(c, "/invitations"),
		LeavePath:       path(c, "/leave"),
		Members:         members.Rows,
		Invitations:     invitations.Rows,
		MayManage:       c.Actor.May(access.ManageMembers),
		Own:             c.Actor.Member,
		Of:              c.Actor.Role,
	}
	v.Roles = rolesFor(c.Actor.Role)
	v.Email = components.FieldProps{Name: "email", Label: "Email address", Type: "email", Complete: "off", Required: true}
	v.Role = components.FieldProps{Name: "role", Label: "Role", Value: string(access.Viewer)}
	v.Shell = c.Shell("Members", "members")
	return v, nil
}

// rolesFor are the roles that a role can assign.
func rolesFor(r access.Role) []components.Option {
	what := map[access.Role]string{
		access.Owner:     "Owner: full access, including deleting the tenant",
		access.Admin:     "Admin: also members and settings",
		access.Developer: "Developer: endpoints, deliveries, and keys",
		access.Viewer:    "Viewer: read-only",
	}
	var options []components.Option
	for _, one := range access.Roles() {
		if r.MaySetRole("", one) {
			options = append(options, components.Option{Value: string(one), Label: what[one]})
		}
	}
	return options
}

// path is the path of a page of the call's tenant.
func path(c *handlers.Call, rest string) string {
	return "/t/" + id.Tenant.Format(c.Actor.Tenant) + rest
}

func (a *dashboard) listMembers(c *handlers.Call) error {
	v, err := a.members(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Members(v))
}

// refuseMembers shows the current page, with the error.
func (a *dashboard) refuseMembers(c *handlers.Call, err error, email, role string) error {
	if not := handlers.NotInput(err); not != nil && !fault.Is(err, "role_beyond_own") {
		return err
	}
	v, failed := a.members(c)
	if failed != nil {
		return failed
	}
	if email != "" {
		v.Email.Value = email
	}
	if role != "" {
		v.Role.Value = role
	}
	for field, detail := range handlers.WrongFields(err) {
		switch field {
		case "email":
			v.Email.Error = detail
		case "role":
			v.Role.Error = detail
		default:
			v.Wrong = detail
		}
	}
	return c.Render(handlers.Status(err), pages.Members(v))
}

func (a *dashboard) invite(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	email, err := account.Mailbox(form.Get("email"))
	if err != nil {
		return a.refuseMembers(c, err, form.Get("email"), form.Get("role"))
	}
	role, err := access.ParseRole(form.Get("role"))
	if err != nil {
		return a.refuseMembers(c, err, form.Get("email"), "")
	}
	err = c.Tx(func(q *db.Tx) error {
		_, err := accounts.Invite(c.Ctx(), q, accounts.Invitation{
			Tenant:  c.Actor.Tenant,
			Email:   email,
			Role:    role,
			By:      c.Author(),
			ByName:  c.Actor.Person.Name,
			May:     c.Actor.Role.MaySetRole,
			BaseURL: a.BaseURL,
			Keys:    a.Keys,
		})
		return err
	})
	if err != nil {
		return a.refuseMembers(c, err, form.Get("email"), form.Get("role"))
	}
	return c.Done(path(c, "/members"), "Invitation sent to "+account.Shown(email)+".")
}

func (a *dashboard) changeRole(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	role, err := access.ParseRole(form.Get("role"))
	if err != nil {
		return a.refuseMembers(c, err, "", "")
	}
	return a.change(c, role, "Saved.")
}

func (a *dashboard) removeMember(c *handlers.Call) error { return a.change(c, "", "Removed.") }

func (a *dashboard) change(c *handlers.Call, to access.Role, done string) error {
	memberID := c.PathID("member_id")
	err := c.Tx(func(q *db.Tx) error {
		_, err := accounts.ChangeRole(c.Ctx(), q, accounts.RoleChange{
			Tenant: c.Actor.Tenant,
			Member: memberID,
			To:     to,
			By:     c.Author(),
			May:    c.Actor.Role.MaySetRole,
		})
		return err
	})
	if err != nil {
		return a.refuseMembers(c, err, "", "")
	}
	return c.Done(path(c, "/members"), done)
}

// leave removes the caller, whatever their role.
func (a *dashboard) leave(c *handlers.Call) error {
	if c.Actor.Member.IsZero() {
		return fault.ErrNotFound // the caller is no member
	}
	err := c.Tx(func(q *db.Tx) error {
		_, err := accounts.ChangeRole(c.Ctx(), q, accounts.RoleChange{
			Tenant: c.Actor.Tenant,
			Member: c.Actor.Member,
			By:     c.Author(),
			Reason: "left",
			May:    func(access.Role, access.Role) bool { return true },
		})
		return err
	})
	if err != nil {
		return a.refuseMembers(c, err, "", "")
	}
	return c.Done("/", "You've left "+c.Actor.TenantName+".")
}

func (a *dashboard) revokeInvitation(c *handlers.Call) error {
	invitationID := c.PathID("invitation_id")
	err := c.Tx(func(q *db.Tx) error {
		return accounts.RevokeInvitation(c.Ctx(), q, c.Actor.Tenant, invitationID, c.Author())
	})
	if err != nil {
		return err
	}
	return c.Done(path(c, "/members"), "Invitation revoked.")
}
