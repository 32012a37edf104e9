package db

import (
	"context"

	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

var errMemberAlready = fault.New(fault.Conflict, "member_already", "This person is a member of the tenant already.")

// SignUp is what becomes a person and their tenant once the link that was sent to the address is used.
type SignUp struct {
	Link           []byte // the hash of the link's token
	Email, Name    string
	Tenant         string
	Password       string // a PHC string
	Address, Agent string
}

// SignUp uses the link up, makes the person, their tenant and their first session, and returns the session's token. A link
// that is gone is fault.ErrNotFound, an address that has got an account meanwhile already_exists; nothing is made then.
func (d *DB) SignUp(ctx context.Context, s SignUp) (token string, err error) {
	err = d.Console(ctx, func(q *Queries) error {
		if _, err := q.UseLink(ctx, UseLinkParams{Hash: s.Link, Purpose: LinkSignUp}); err != nil {
			return err
		}
		person, err := q.AddPerson(ctx, s.Email, s.Name, s.Password)
		if err != nil {
			return err
		}
		tenant, by, err := q.ownTenant(ctx, person, s.Tenant, s.Address)
		if err != nil {
			return err
		}
		if err := q.Audit(ctx, by, Audited{Tenant: &tenant, Action: "sign_in.succeeded", Kind: "member", Object: by.ID}); err != nil {
			return err
		}
		token, err = q.StartSession(ctx, NewSession{Person: &person, Life: account.Person.Life(), Address: s.Address, Agent: s.Agent})
		return err
	})
	return token, err
}

// CreateOwnTenant makes a tenant whose owner is a person with an account.
func (d *DB) CreateOwnTenant(ctx context.Context, person id.UUID, name, address string) (tenant id.UUID, err error) {
	err = d.Console(ctx, func(q *Queries) error {
		tenant, _, err = q.ownTenant(ctx, person, name, address)
		return err
	})
	return tenant, err
}

// ownTenant makes a tenant and its owner, in the transaction at hand, and returns the owner as the audit log names them.
func (q *Queries) ownTenant(ctx context.Context, person id.UUID, name, address string) (tenant id.UUID, by Author, err error) {
	tenant = NewID()
	days, err := q.retention(ctx, 0)
	if err != nil {
		return tenant, by, err
	}
	err = q.InsertTenant(ctx, InsertTenantParams{ID: tenant, Name: name, RetentionDays: days, CreatedAt: tenant.Time()})
	if err != nil {
		return tenant, by, err
	}
	member, err := q.AddMember(ctx, tenant, person, access.Owner)
	if err != nil {
		return tenant, by, err
	}
	by = Author{Kind: "member", ID: id.Member.Format(member), Address: address}
	return tenant, by, q.Audit(ctx, by, Audited{
		Tenant: &tenant, Action: "tenant.created", Kind: "tenant", Object: id.Tenant.Format(tenant), Details: map[string]any{"name": name},
	})
}

// AddPerson makes a person whose address is proven, in the transaction at hand.
func (q *Queries) AddPerson(ctx context.Context, email, name, password string) (id.UUID, error) {
	u := NewID()
	return u, q.InsertPerson(ctx, InsertPersonParams{ID: u, Email: email, Name: name, Password: password, CreatedAt: u.Time()})
}

// AddMember makes a person a member of a tenant, in the transaction at hand, and returns the member's id. Who is one
// already is member_already.
func (q *Queries) AddMember(ctx context.Context, tenant, person id.UUID, role access.Role) (id.UUID, error) {
	u := NewID()
	added, err := q.InsertMember(ctx, InsertMemberParams{TenantID: tenant, PersonID: person, ID: u, Role: string(role), CreatedAt: u.Time()})
	if err == nil && added == 0 {
		err = errMemberAlready
	}
	return u, err
}
