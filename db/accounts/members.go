package accounts

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/domain/show"
	"posthorn/domain/sso"
)

// Errors that reject a change of members.
var (
	errRoleBeyond = fault.New(
		fault.Forbidden,
		"role_beyond_own",
		"Only an owner can invite, promote, demote, or remove owners; the tenant's API keys can't. Ask an owner of this tenant. "+
			"If it has no owner yet, invite the first one with a platform key: POST /api/v1/tenants/{tenant_id}/invitations.",
	)
	errInvitations = fault.New(fault.Conflict, "invitations_limit", "This tenant has 100 open invitations, the maximum. Revoke some that you don't need.")
)

const maxInvitations = 100

// limitInvitations rejects an invitation if its address or its tenant had too many. An invitation that replaces
// another, or follows a revoked one, counts like any other mail.
func limitInvitations(ctx context.Context, q *sql.Queries, tenant id.UUID, email string) error {
	wait, err := tryMail(ctx, q, account.Invitations, "invitation", email)
	if err != nil {
		return err
	}
	if wait > 0 {
		return invitationsLimited(wait, fmt.Sprintf("This address was invited %d times within an hour, the maximum for one address.", account.Invitations.Tries))
	}
	wait, err = tryMail(ctx, q, account.TenantInvitations, "invitation of", tenant.String())
	if err == nil && wait > 0 {
		err = invitationsLimited(wait, fmt.Sprintf("This tenant sent %d invitations within an hour, the maximum.", account.TenantInvitations.Tries))
	}
	return err
}

func invitationsLimited(wait int, why string) error {
	e := fault.New(fault.Limited, "mails_limit", fmt.Sprintf("%s Try again in %d minutes.", why, (wait+59)/60))
	e.RetryAfter = wait
	return e
}

// Invitation describes an invitation.
type Invitation struct {
	Tenant  id.UUID
	Email   string // as account.Email gives it
	Role    access.Role
	By      db.Author
	ByName  string                          // the inviter's name, for the mail; can be empty
	May     func(from, to access.Role) bool // whether the inviter can grant the role
	BaseURL string                          // the beginning of the mail's link
	Keys    *seal.Ring
}

// Invite stores an invitation in the transaction of its tenant and queues the mail with its link. It replaces an open
// invitation of the same address.
func Invite(ctx context.Context, q *sql.Queries, i Invitation) (invited show.Invitation, err error) {
	tenant, err := q.LockTenant(ctx, i.Tenant)
	if err != nil {
		return invited, err
	}
	if !i.May("", i.Role) {
		return invited, errRoleBeyond
	}
	member, err := q.HasMemberWithEmail(ctx, i.Tenant, i.Email)
	if err == nil && member {
		err = errMemberAlready
	}
	if err != nil {
		return invited, err
	}
	if n, err := q.CountInvitations(ctx, i.Tenant); err != nil || n >= maxInvitations {
		if err == nil {
			err = errInvitations
		}
		return invited, err
	}
	if err := limitInvitations(ctx, q, i.Tenant, i.Email); err != nil {
		return invited, err
	}
	invitationID, mailID := db.NewID(), db.NewID()
	token, hash := NewToken()
	err = q.InsertInvitation(ctx, sql.InsertInvitationParams{
		TenantID:  i.Tenant,
		ID:        invitationID,
		Email:     i.Email,
		Role:      string(i.Role),
		Hash:      hash,
		InvitedBy: i.By.ID,
		MailID:    mailID,
		CreatedAt: invitationID.Time(),
		Lives:     int32(account.InvitationLife / time.Second),
	})
	if err != nil {
		return invited, err
	}
	if invited, err = readInvitation(ctx, q, i.Tenant, invitationID); err != nil {
		return invited, err
	}
	_, err = QueueMail(ctx, q, Mail{
		ID:     mailID,
		Tenant: &i.Tenant,
		Key:    string(mail.Invitation) + ":" + hex.EncodeToString(hash[:16]),
		To:     i.Email,
		Kind:   mail.Invitation,
		Keys:   i.Keys,
		Data: mail.InvitationData{
			Tenant:  tenant.Name,
			By:      i.ByName,
			Role:    string(i.Role),
			Link:    i.BaseURL + "/invitations/accept?token=" + url.QueryEscape(token),
			Expires: invited.ExpiresAt,
		},
	})
	if err != nil {
		return invited, err
	}
	return invited, db.Audit(ctx, q, i.By, db.Audited{
		Tenant:  &i.Tenant,
		Action:  "member.invited",
		Kind:    "invitation",
		Object:  id.Invitation.Format(invitationID),
		Details: map[string]string{"email": i.Email, "role": string(i.Role)},
	})
}

// RevokeInvitation ends an invitation.
func RevokeInvitation(ctx context.Context, q *sql.Queries, tenant, invitationID id.UUID, by db.Author) error {
	i, err := readInvitation(ctx, q, tenant, invitationID)
	if err != nil {
		return err
	}
	if _, err := q.DeleteInvitation(ctx, tenant, invitationID); err != nil {
		return err
	}
	return db.Audit(ctx, q, by, db.Audited{
		Tenant:  &tenant,
		Action:  "invitation.revoked",
		Kind:    "invitation",
		Object:  id.Invitation.Format(invitationID),
		Details: map[string]string{"email": i.Email},
	})
}

// ListInvitations reads a page of a tenant's invitations.
func ListInvitations(ctx context.Context, q *sql.Queries, tenant id.UUID, r show.Range) (show.Page[show.Invitation], error) {
	return listInvitations(ctx, q, tenant, nil, r)
}

func readInvitation(ctx context.Context, q *sql.Queries, tenant, invitationID id.UUID) (show.Invitation, error) {
	return db.Only(listInvitations(ctx, q, tenant, &invitationID, show.Range{Limit: 1}))
}

// listInvitations lists all, or one alone.
func listInvitations(ctx context.Context, q *sql.Queries, tenant id.UUID, alone *id.UUID, r show.Range) (
	show.Page[show.Invitation],
	error,
) {
	low, high := db.Bounds(r)
	rows, err := q.ListInvitations(ctx, sql.ListInvitationsParams{
		TenantID:     tenant,
		InvitationID: alone,
		Low:          low,
		High:         high,
		Newest:       !r.Ascending,
		Limit:        db.Limit(r),
	})
	page := show.CutByID(rows, r.Limit, func(row sql.ListInvitationsRow) id.UUID { return row.ID })
	return show.Each(page, func(row sql.ListInvitationsRow) show.Invitation {
		return show.Invitation{
			ID:         row.ID,
			Email:      row.Email,
			Role:       access.Role(row.Role),
			Expired:    row.Expired,
			MailFailed: row.MailFailed,
			CreatedAt:  row.CreatedAt,
			ExpiresAt:  row.ExpiresAt,
		}
	}), err
}

// ListMembers reads a page of a tenant's members.
func ListMembers(ctx context.Context, q *sql.Queries, tenant id.UUID, r show.Range) (show.Page[show.Member], error) {
	return listMembers(ctx, q, tenant, nil, r)
}

// ReadMember reads a member of a tenant.
func ReadMember(ctx context.Context, q *sql.Queries, tenant, memberID id.UUID) (show.Member, error) {
	return db.Only(listMembers(ctx, q, tenant, &memberID, show.Range{Limit: 1}))
}

// listMembers lists all, or one alone.
func listMembers(ctx context.Context, q *sql.Queries, tenant id.UUID, alone *id.UUID, r show.Range) (show.Page[show.Member], error) {
	low, high := db.Bounds(r)
	rows, err := q.ListMembers(ctx, sql.ListMembersParams{
		TenantID: tenant,
		MemberID: alone,
		Low:      low,
		High:     high,
		Newest:   !r.Ascending,
		Limit:    db.Limit(r),
	})
	page := show.CutByID(rows, r.Limit, func(row sql.ListMembersRow) id.UUID { return row.ID })
	return show.Each(page, func(row sql.ListMembersRow) show.Member {
		return show.Member{
			ID:           row.ID,
			Person:       row.PersonID,
			Name:         row.Name,
			Email:        row.Email,
			Role:         access.Role(row.Role),
			RoleKept:     sso.Gap(row.RoleGap).RoleKept(),
			SecondFactor: row.HasTotp,
			Disabled:     row.Disabled,
			CreatedAt:    row.CreatedAt,
		}
	}), err
}

// RoleChange is a change of a member's role. To is empty if the member is removed.
type RoleChange struct {
	Tenant, Member id.UUID
	To             access.Role
	By             db.Author
	Reason         string
	May            func(from, to access.Role) bool
}

// ChangeRole changes or removes a member in the transaction of their tenant. A tenant's only owner can be neither
// changed nor removed (last_owner).
func ChangeRole(ctx context.Context, q *sql.Queries, change RoleChange) (show.Member, error) {
	if _, err := q.LockTenant(ctx, change.Tenant); err != nil {
		return show.Member{}, err
	}
	m, err := ReadMember(ctx, q, change.Tenant, change.Member)
	if err != nil {
		return m, err
	}
	from := m.Role
	if !change.May(from, change.To) {
		return m, errRoleBeyond
	}
	owners, err := q.CountOwners(ctx, change.Tenant)
	switch {
	case err != nil:
		return m, err
	case !access.KeepsAnOwner(int(owners), from, change.To):
		return m, errLastOwner
	case from == change.To:
		return m, nil
	}
	if err := keepBreakGlass(ctx, q, change.Tenant, change.Member); err != nil {
		return m, err
	}
	what := db.Audited{
		Tenant: &change.Tenant,
		Action: "member.role_changed",
		Kind:   "member",
		Object: id.Member.Format(m.ID),
		Reason: change.Reason,
		Details: map[string]string{
			"email": m.Email,
			"from":  string(m.Role),
			"to":    string(change.To),
		},
	}
	if change.To == "" {
		what.Action = "member.removed"
		_, err = q.DeleteMember(ctx, change.Tenant, m.ID)
	} else {
		_, err = q.SetMemberRole(ctx, sql.SetMemberRoleParams{
			TenantID: change.Tenant,
			ID:       m.ID,
			Role:     string(change.To),
		})
	}
	if err != nil {
		return m, err
	}
	m.Role = change.To
	return m, db.Audit(ctx, q, change.By, what)
}

// Invited is what the holder of an invitation's link can learn from it.
type Invited struct {
	Tenant     id.UUID
	TenantName string
	Email      string
	Role       access.Role
	Known      bool // the address has an account
}

// FindInvitation reads an invitation by the token of its link. An expired or unknown invitation is fault.ErrNotFound.
func FindInvitation(ctx context.Context, d *db.DB, token string) (i Invited, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		row, err := q.FindInvitation(ctx, HashToken(token))
		if err == nil && row.Expired {
			err = fault.ErrNotFound
		}
		if err != nil {
			return err
		}
		i = Invited{Tenant: row.TenantID, TenantName: row.TenantName, Email: row.Email, Role: access.Role(row.Role)}
		_, err = q.FindPerson(ctx, row.Email)
		if i.Known = err == nil; db.IsMissing(err) {
			err = nil
		}
		return err
	})
	return i, err
}

// Acceptance describes who accepts an invitation: an existing person, or a new one.
type Acceptance struct {
	Tenant         id.UUID
	Hash           []byte   // the hash of the link's token
	Person         *id.UUID // nil: a new person
	Name, Password string   // of a new person; the password is a PHC string
	Address, Agent string
}

// AcceptInvitation uses up an invitation and makes its person a member. For a new person it starts their first session
// and returns its token. An expired or unknown invitation is fault.ErrNotFound. An invitation for another address than
// the person's is invitation_other_address, and stays valid.
func AcceptInvitation(ctx context.Context, d *db.DB, a Acceptance) (token string, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		i, err := q.TakeInvitation(ctx, a.Tenant, a.Hash)
		if err != nil {
			return err
		}
		var person id.UUID
		if a.Person == nil {
			if person, err = AddPerson(ctx, q, i.Email, a.Name, a.Password); err != nil {
				return err
			}
			if token, err = StartSession(ctx, q, NewSession{
				Person:  &person,
				Life:    account.Person.Life(),
				Address: a.Address,
				Agent:   a.Agent,
			}); err != nil {
				return err
			}
		} else {
			p, err := q.GetPerson(ctx, *a.Person)
			if err != nil {
				return err
			}
			if p.Email != i.Email {
				return errOtherAddress
			}
			person = p.ID
		}
		member, err := AddMember(ctx, q, a.Tenant, person, access.Role(i.Role))
		if err != nil {
			return err
		}
		by := db.Author{Kind: "member", ID: id.Member.Format(member), Address: a.Address}
		return db.Audit(ctx, q, by, db.Audited{
			Tenant:  &a.Tenant,
			Action:  "member.joined",
			Kind:    "member",
			Object:  by.ID,
			Details: map[string]string{"email": i.Email, "role": i.Role},
		})
	})
	return token, err
}

// errOtherAddress rejects an invitation if the person is signed in with another address than the invited one.
var errOtherAddress = fault.New(fault.Forbidden, "invitation_other_address", "This invitation is for another email address. Sign out, open the link again, and sign in with that address.")
