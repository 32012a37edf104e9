package maintenance

import (
	"context"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/export"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// TenantDeleted is the state of a tenant that is as unknown as any that never was. Who joined in the moment of its end is no member of it.
const TenantDeleted = "deleted"

var errPlatformTenant = fault.New(fault.Conflict, "tenant_of_platform", "This is the platform's own tenant, where operational webhooks are. It can't be deleted.")

// DeleteTenant ends a tenant for good. Within a second its keys open nothing; its members, links, invitations and jobs are gone at
// once, and no mail about it is sent any more. Its endpoints, listeners and inboxes among them, are deleted as any: what waits for
// them ends as failed (endpoint_deleted) or canceled. The rest is shown to nobody, and erased a little later (EraseTenant). The audit
// log and the books stay. A tenant that is unknown or deleted already is fault.ErrNotFound.
func DeleteTenant(ctx context.Context, d *db.DB, tenant id.UUID, reason string, by db.Author) error {
	return deleteTenant(ctx, d, tenant, reason, by, func(*sql.Queries) error { return nil })
}

// DeleteExported is DeleteTenant for who must have taken the tenant's data along: export.ErrNone where no export of it stands.
func DeleteExported(ctx context.Context, d *db.DB, tenant id.UUID, reason string, by db.Author) error {
	return deleteTenant(ctx, d, tenant, reason, by, func(q *sql.Queries) error {
		sent, err := deliveries.StandingExport(ctx, q, tenant)
		if err == nil && sent == nil {
			err = export.ErrNone
		}
		return err
	})
}

// deleteTenant asks, once the tenant is locked, whether it may.
func deleteTenant(ctx context.Context, d *db.DB, tenant id.UUID, reason string, by db.Author, may func(*sql.Queries) error) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		// Before the tenant's lock: a chunk of a job that is under way takes its locks in this order too.
		if err := q.EndBulkJobs(ctx, tenant); err != nil {
			return err
		}
		row, err := q.LockTenant(ctx, tenant)
		if err != nil {
			return err
		}
		if own, err := accounts.PlatformTenant(ctx, q); err != nil {
			return err
		} else if own == tenant {
			return errPlatformTenant
		}
		if err := may(q); err != nil {
			return err
		}
		had, err := q.TenantHoldings(ctx, tenant)
		if err != nil {
			return err
		}
		if err := endTenant(ctx, q, tenant); err != nil {
			return err
		}
		return db.Audit(ctx, q, by, db.Audited{
			Tenant: &tenant, Action: "tenant.deleted", Kind: "tenant", Object: id.Tenant.Format(tenant), Reason: reason,
			Details: map[string]any{"name": row.Name, "endpoints": had.Endpoints, "keys": had.Keys, "members": had.Members},
		})
	})
}

// endTenant takes away what works for a tenant, and marks it.
func endTenant(ctx context.Context, q *sql.Queries, tenant id.UUID) error {
	endpointIDs, err := q.LiveEndpointIDs(ctx, tenant)
	if err != nil {
		return err
	}
	for _, u := range endpointIDs {
		if _, err := endpoints.Remove(ctx, q, tenant, u); err != nil {
			return err
		}
	}
	for _, end := range []func(context.Context, *id.UUID) error{q.EndKeys, q.EndMails, q.EndPauses} {
		if err := end(ctx, &tenant); err != nil {
			return err
		}
	}
	for _, end := range []func(context.Context, id.UUID) error{q.EndMemberships, q.EndInvitations, q.EndPortalLinks, q.EndViews, q.EndTenant} {
		if err := end(ctx, tenant); err != nil {
			return err
		}
	}
	if err := q.BumpKeysRevision(ctx); err != nil {
		return err
	}
	return q.NotifyPauses(ctx)
}
