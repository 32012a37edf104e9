package api

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
)

// maySetRole says which roles a key can set: a tenant's key as an admin, a platform key as an owner.
func maySetRole(c *handlers.Call) func(from, to access.Role) bool {
	if c.Actor.Platform {
		return access.Owner.MaySetRole
	}
	return access.Admin.MaySetRole
}

func (a *api) listMembers(c *handlers.Call) error {
	l := handlers.List{Name: "members", Ascending: true}
	return list(c, l, ranged(c, accounts.ListMembers), encodeMember)
}

func (a *api) getMember(c *handlers.Call) error {
	return get(c, "member_id", accounts.ReadMember, encodeMember)
}

func (a *api) updateMember(c *handlers.Call) error {
	memberID := c.PathID("member_id")
	var in MemberPatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	role, err := access.ParseRole(string(in.Role))
	if err != nil {
		return err
	}
	m, err := a.setRole(c, memberID, role)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, encodeMember(m))
}

func (a *api) removeMember(c *handlers.Call) error {
	memberID := c.PathID("member_id")
	if err := c.NoBody(); err != nil {
		return err
	}
	if _, err := a.setRole(c, memberID, ""); err != nil {
		return err
	}
	return c.AnswerNothing()
}

func (a *api) setRole(c *handlers.Call, member id.UUID, to access.Role) (m show.Member, err error) {
	err = c.Tx(func(q *db.Tx) error {
		m, err = accounts.ChangeRole(c.Ctx(), q, accounts.RoleChange{
			Tenant: c.Actor.Tenant,
			Member: member,
			To:     to,
			By:     c.Author(),
			May:    maySetRole(c),
		})
		return err
	})
	return m, err
}

func encodeMember(m show.Member) Member {
	return Member{
		ID:           id.Member.Format(m.ID),
		Name:         m.Name,
		Email:        account.Shown(m.Email),
		Role:         MemberRole(m.Role),
		SecondFactor: m.SecondFactor,
		Disabled:     m.Disabled,
		RoleKept:     orNullText(m.RoleKept),
		CreatedAt:    Time(m.CreatedAt),
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
	return respond(c, http.StatusCreated, func(q *db.Tx) (show.Invitation, error) {
		return accounts.Invite(c.Ctx(), q, accounts.Invitation{
			Tenant:  c.Actor.Tenant,
			Email:   email,
			Role:    role,
			By:      c.Author(),
			May:     maySetRole(c),
			BaseURL: a.BaseURL,
			Keys:    a.Keys,
		})
	}, encodeInvitation)
}

func (a *api) listInvitations(c *handlers.Call) error {
	l := handlers.List{Name: "invitations", Ascending: true}
	return list(c, l, ranged(c, accounts.ListInvitations), encodeInvitation)
}

func (a *api) revokeInvitation(c *handlers.Call) error {
	return end(c, "invitation_id", func(q *db.Tx, invitationID id.UUID) error {
		return accounts.RevokeInvitation(c.Ctx(), q, c.Actor.Tenant, invitationID, c.Author())
	})
}

func encodeInvitation(i show.Invitation) Invitation {
	return Invitation{
		ID:         id.Invitation.Format(i.ID),
		Email:      account.Shown(i.Email),
		Role:       InvitationRole(i.Role),
		Expired:    i.Expired,
		MailFailed: i.MailFailed,
		CreatedAt:  Time(i.CreatedAt),
		ExpiresAt:  Time(i.ExpiresAt),
	}
}
