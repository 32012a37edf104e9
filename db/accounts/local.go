package accounts

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/id"
)

// The person who tries Posthorn on their own machine. They have no password; links of MakeLocalLink sign them in.
const (
	localEmail  = "you@localhost"
	localName   = "Local user"
	localTenant = "My organization"
	noPassword  = "none" // no hash of any
)

// IsLocal reports whether links of MakeLocalLink sign in the account.
func IsLocal(a account.Account) bool { return a.Email == localEmail }

// MakeLocalLink returns the token of a link that opens the dashboard on the server's machine, signed in. Whoever can
// create one can reach the database, so the link grants nothing new. It is for development only.
func MakeLocalLink(ctx context.Context, d *db.DB) (string, error) {
	return db.Read(ctx, d.Console, func(q *sql.Queries) (string, error) {
		return MakeLink(ctx, q, NewLink{Purpose: linkSignIn, Email: localEmail, Life: account.LocalLife})
	})
}

// LocalSignIn is the use of such a link.
type LocalSignIn struct {
	Link           []byte // the hash of the link's token
	Address, Agent string
}

// OpenLocally uses up a link of MakeLocalLink and returns a session's token. The person becomes the owner of the
// tenants that have no owner, such as those that commands created, or of a new one. An expired or unknown link is
// fault.ErrNotFound.
func OpenLocally(ctx context.Context, d *db.DB, l LocalSignIn) (token string, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		if _, err := q.UseLink(ctx, l.Link, linkSignIn); err != nil {
			return err
		}
		person, err := localPerson(ctx, q)
		if err != nil {
			return err
		}
		if err := ownUnowned(ctx, q, person, l.Address); err != nil {
			return err
		}
		if err := auditPerson(ctx, q, person, l.Address, "sign_in.succeeded", nil); err != nil {
			return err
		}
		token, err = StartSession(ctx, q, NewSession{
			Person:  &person,
			Life:    account.Person.Life(),
			Address: l.Address,
			Agent:   l.Agent,
		})
		return err
	})
	return token, err
}

func localPerson(ctx context.Context, q *sql.Queries) (id.UUID, error) {
	p, err := q.FindPerson(ctx, localEmail)
	if db.IsMissing(err) {
		return AddPerson(ctx, q, localEmail, localName, noPassword)
	}
	return p.ID, err
}

// ownUnowned makes a person the owner of every tenant without members. If there is none, it creates a tenant. The
// newest is the one that the person sees first.
func ownUnowned(ctx context.Context, q *sql.Queries, person id.UUID, address string) error {
	tenants, err := q.ListTenantsWithoutMembers(ctx)
	if err != nil {
		return err
	}
	own, err := q.TenantsOf(ctx, person)
	if err != nil {
		return err
	}
	if len(own) == 0 && len(tenants) == 0 {
		tenant := db.NewID()
		days, err := retention(ctx, q, 0)
		if err != nil {
			return err
		}
		err = q.InsertTenant(ctx, sql.InsertTenantParams{
			ID:            tenant,
			Name:          localTenant,
			RetentionDays: days,
			CreatedAt:     tenant.Time(),
		})
		if err != nil {
			return err
		}
		tenants = append(tenants, tenant)
	}
	for _, tenant := range tenants {
		member, err := AddMember(ctx, q, tenant, person, access.Owner)
		if err != nil {
			return err
		}
		by := db.Author{Kind: "member", ID: id.Member.Format(member), Address: address}
		err = db.Audit(ctx, q, by, db.Audited{
			Tenant: &tenant,
			Action: "member.joined",
			Kind:   "member",
			Object: by.ID,
			Details: map[string]string{
				"email": localEmail,
				"role":  string(access.Owner),
			},
		})
		if err != nil {
			return err
		}
		if err := q.SetLastTenant(ctx, &tenant, person); err != nil {
			return err
		}
	}
	return nil
}
