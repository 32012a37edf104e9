package accounts

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

var errMemberAlready = fault.New(fault.Conflict, "member_already", "This person is already a member of the tenant.")

// Registration describes a person and their tenant. They are created when the link in the mail is used.
type Registration struct {
	Link           []byte // the hash of the link's token
	Email, Name    string
	Tenant         string
	Password       string // a PHC string
	Address, Agent string
}

// SignUp uses up the link, creates the person, their tenant and their first session, and returns the session's token.
// An expired or unknown link is fault.ErrNotFound. An address that has an account by now is already_exists. In both
// cases nothing is created.
func SignUp(ctx context.Context, d *db.DB, s Registration) (token string, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		if _, err := q.UseLink(ctx, s.Link, LinkSignUp); err != nil {
			return err
		}
		person, err := AddPerson(ctx, q, s.Email, s.Name, s.Password)
		if err != nil {
			return err
		}
		tenant, by, err := ownTenant(ctx, q, person, s.Tenant, s.Address)
		if err != nil {
			return err
		}
		if err := db.Audit(ctx, q, by, db.Audited{Tenant: &tenant, Action: "sign_in.succeeded", Kind: "member", Object: by.ID}); err != nil {
			return err
		}
		token, err = StartSession(ctx, q, NewSession{
			Person:  &person,
			Life:    account.Person.Life(),
			Address: s.Address,
			Agent:   s.Agent,
		})
		return err
	})
	return token, err
}

// CreateOwnTenant creates a tenant with an existing person as its owner.
func CreateOwnTenant(ctx context.Context, d *db.DB, person id.UUID, name, address string) (tenant id.UUID, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		tenant, _, err = ownTenant(ctx, q, person, name, address)
		return err
	})
	return tenant, err
}

// ownTenant creates a tenant and its owner, in the caller's transaction, and returns the owner as the audit log names
// them.
func ownTenant(ctx context.Context, q *sql.Queries, person id.UUID, name, address string) (tenant id.UUID, by db.Author, err error) {
	tenant = db.NewID()
	days, err := retention(ctx, q, 0)
	if err != nil {
		return tenant, by, err
	}
	err = q.InsertTenant(ctx, sql.InsertTenantParams{
		ID:            tenant,
		Name:          name,
		RetentionDays: days,
		CreatedAt:     tenant.Time(),
	})
	if err != nil {
		return tenant, by, err
	}
	member, err := AddMember(ctx, q, tenant, person, access.Owner)
	if err != nil {
		return tenant, by, err
	}
	by = db.Author{Kind: "member", ID: id.Member.Format(member), Address: address}
	return tenant, by, db.Audit(ctx, q, by, db.Audited{
		Tenant:  &tenant,
		Action:  "tenant.created",
		Kind:    "tenant",
		Object:  id.Tenant.Format(tenant),
		Details: map[string]any{"name": name},
	})
}

// AddPerson creates a person with a verified address, in the caller's transaction.
func AddPerson(ctx context.Context, q *sql.Queries, email, name, password string) (id.UUID, error) {
	personID := db.NewID()
	return personID, q.InsertPerson(ctx, sql.InsertPersonParams{
		ID:        personID,
		Email:     email,
		Name:      name,
		Password:  password,
		CreatedAt: personID.Time(),
	})
}

// AddMember makes a person a member of a tenant, in the caller's transaction, and returns the member's id. A person who
// is a member already is member_already. Who was a member before can come with another account of the tenant's
// provider.
func AddMember(ctx context.Context, q *sql.Queries, tenant, person id.UUID, role access.Role) (id.UUID, error) {
	memberID := db.NewID()
	added, err := q.InsertMember(ctx, sql.InsertMemberParams{
		TenantID:  tenant,
		PersonID:  person,
		ID:        memberID,
		Role:      string(role),
		CreatedAt: memberID.Time(),
	})
	if err == nil && added == 0 {
		err = errMemberAlready
	}
	if err == nil {
		_, err = q.DeleteIdentity(ctx, tenant, person)
	}
	return memberID, err
}
