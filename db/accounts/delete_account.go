package accounts

import (
	"context"
	"strings"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// DeleteAccount deletes a person, their sessions and memberships. It rejects the only owner of a tenant (last_owner).
func DeleteAccount(ctx context.Context, d *db.DB, person id.UUID, address string) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		tenants, err := q.TenantsOf(ctx, person)
		if err != nil {
			return err
		}
		var alone []string
		for _, t := range tenants {
			last, err := isLastOwner(ctx, q, t.TenantID, access.Role(t.Role))
			if err != nil {
				return err
			}
			if last {
				alone = append(alone, t.TenantName)
			}
			if err := keepBreakGlass(ctx, q, t.TenantID, t.MemberID); err != nil {
				return err
			}
		}
		if len(alone) > 0 {
			return fault.New(fault.Conflict, errLastOwner.Code, "You're the only owner of "+strings.Join(alone, ", ")+". Make another member an owner first, or delete the tenant.")
		}
		for i := range tenants {
			t := &tenants[i]
			member := id.Member.Format(t.MemberID)
			by := db.Author{Kind: "member", ID: member, Address: address}
			if err := db.Audit(ctx, q, by, db.Audited{
				Tenant: &t.TenantID,
				Action: "member.removed",
				Kind:   "member",
				Object: member,
				Reason: "deleted the account",
			}); err != nil {
				return err
			}
		}
		_, err = q.DeletePerson(ctx, person)
		return err
	})
}

var errLastOwner = fault.New(fault.Conflict, "last_owner", "This is the tenant's only owner. Make another member an owner first.")

// isLastOwner locks a tenant and reports whether a person with this role is its only owner.
func isLastOwner(ctx context.Context, q *sql.Queries, tenant id.UUID, role access.Role) (bool, error) {
	if role != access.Owner {
		return false, nil
	}
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return false, err
	}
	owners, err := q.CountOwners(ctx, tenant)
	return owners <= 1, err
}
