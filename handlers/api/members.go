package api

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/sso"
	"posthorn/handlers"
)

// maySetRole says which roles a key can set: a tenant's key as an admin, a platform key as an owner.
func maySetRole(c *handlers.Call) func(from, to access.Role) bool {
	if c.Actor.Platform {
		return access.Owner.MaySetRole
	}
	return access.Admin.MaySetRole
}

func (a *api) listMembers(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "members", Ascending: true})
	if err != nil {
		return err
	}
	after := p.Edge()
	var rows []sql.ListMembersRow
	err = c.Tx(func(q *db.Tx) error {
		ask := sql.ListMembersParams{TenantID: c.Actor.Tenant, After: after, Most: int32(p.Limit + 1)}
		if p.Ascending {
			rows, err = q.ListMembers(c.Ctx(), ask)
			return err
		}
		down, err := q.ListMembersDown(c.Ctx(), sql.ListMembersDownParams(ask))
		for _, r := range down {
			rows = append(rows, sql.ListMembersRow(r))
		}
		return err
	})
	if err != nil {
		return err
	}
	rows, next := cut(rows, p, func(m sql.ListMembersRow) []byte { return m.ID[:] })
	return c.Answer(http.StatusOK, MemberPage{
		Data:       views(rows, func(m sql.ListMembersRow) Member { return memberView(sql.GetMemberRow(m)) }),
		NextCursor: cursorOrNull(next),
	})
}

func (a *api) getMember(c *handlers.Call) error {
	memberID, err := c.ID(id.Member, "member_id")
	if err != nil {
		return err
	}
	var row sql.GetMemberRow
	err = c.Tx(func(q *db.Tx) error {
		row, err = q.GetMember(c.Ctx(), sql.GetMemberParams{TenantID: c.Actor.Tenant, ID: memberID})
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, memberView(row))
}

func (a *api) updateMember(c *handlers.Call) error {
	memberID, err := c.ID(id.Member, "member_id")
	if err != nil {
		return err
	}
	var in MemberPatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	role, err := access.ParseRole(string(in.Role))
	if err != nil {
		return err
	}
	row, err := a.setRole(c, memberID, role)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, memberView(row))
}

func (a *api) removeMember(c *handlers.Call) error {
	memberID, err := c.ID(id.Member, "member_id")
	if err != nil {
		return err
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	if _, err := a.setRole(c, memberID, ""); err != nil {
		return err
	}
	return c.AnswerNothing()
}

func (a *api) setRole(c *handlers.Call, member id.UUID, to access.Role) (row sql.GetMemberRow, err error) {
	err = c.Tx(func(q *db.Tx) error {
		row, err = accounts.ChangeRole(c.Ctx(), q, accounts.RoleChange{
			Tenant: c.Actor.Tenant, Member: member, To: to,
			By: c.Author(), May: maySetRole(c),
		})
		return err
	})
	return row, err
}

func memberView(m sql.GetMemberRow) Member {
	return Member{
		ID: id.Member.Format(m.ID), Name: m.Name, Email: account.Shown(m.Email), Role: MemberRole(m.Role),
		SecondFactor: m.HasTotp,
		Disabled:     m.Disabled, RoleKept: orNullText(sso.Gap(m.RoleGap).RoleKept()), CreatedAt: Time(m.CreatedAt),
	}
}

func (a *api) createInvitation(c *handlers.Call) error {
	var in InvitationInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var wrong wrongFields
	email, err := account.Mailbox(in.Email)
	if e := fault.As(err); e != nil {
		wrong = append(wrong, e.Fields...)
	}
	role, err := access.ParseRole(string(in.Role))
	if e := fault.As(err); e != nil {
		wrong = append(wrong, e.Fields...)
	}
	if err := wrong.err(); err != nil {
		return err
	}
	var row sql.GetInvitationRow
	err = c.Tx(func(q *db.Tx) error {
		row, err = accounts.Invite(c.Ctx(), q, accounts.Invitation{
			Tenant: c.Actor.Tenant, Email: email, Role: role, By: c.Author(), May: maySetRole(c), BaseURL: a.BaseURL,
			Keys: a.Keys,
		})
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusCreated, invitationView(row))
}

func (a *api) listInvitations(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "invitations", Ascending: true})
	if err != nil {
		return err
	}
	after := p.Edge()
	var rows []sql.ListInvitationsRow
	err = c.Tx(func(q *db.Tx) error {
		ask := sql.ListInvitationsParams{TenantID: c.Actor.Tenant, After: after, Most: int32(p.Limit + 1)}
		if p.Ascending {
			rows, err = q.ListInvitations(c.Ctx(), ask)
			return err
		}
		down, err := q.ListInvitationsDown(c.Ctx(), sql.ListInvitationsDownParams(ask))
		for _, r := range down {
			rows = append(rows, sql.ListInvitationsRow(r))
		}
		return err
	})
	if err != nil {
		return err
	}
	rows, next := cut(rows, p, func(i sql.ListInvitationsRow) []byte { return i.ID[:] })
	return c.Answer(http.StatusOK, InvitationPage{
		Data: views(rows, func(i sql.ListInvitationsRow) Invitation {
			return invitationView(sql.GetInvitationRow(i))
		}),
		NextCursor: cursorOrNull(next),
	})
}

func (a *api) revokeInvitation(c *handlers.Call) error {
	invitationID, err := c.ID(id.Invitation, "invitation_id")
	if err != nil {
		return err
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		return accounts.RevokeInvitation(c.Ctx(), q, c.Actor.Tenant, invitationID, c.Author())
	})
	if err != nil {
		return err
	}
	return c.AnswerNothing()
}

func invitationView(i sql.GetInvitationRow) Invitation {
	return Invitation{
		ID: id.Invitation.Format(i.ID), Email: account.Shown(i.Email), Role: InvitationRole(i.Role), Expired: i.Expired,
		MailFailed: i.MailFailed, CreatedAt: Time(i.CreatedAt), ExpiresAt: Time(i.ExpiresAt),
	}
}
