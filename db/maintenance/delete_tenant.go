package maintenance

import (
	"context"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

var errPlatformTenant = fault.New(fault.Conflict, "tenant_of_platform", "This is the platform's own tenant, which holds operational webhooks. It can't be deleted.")

// DeleteTenant deletes a tenant permanently. Within a second its keys open nothing. It immediately deletes the tenant's
// members, links, invitations and jobs, and no further mail about the tenant is sent. It deletes the tenant's
// endpoints, with listeners and inboxes, like any others: their waiting deliveries end as failed (endpoint_deleted) or
// canceled. The other data is no longer shown, and is erased a little later (EraseTenant). The audit log and the
// ledger's totals remain. An unknown or already deleted tenant is fault.ErrNotFound.
func DeleteTenant(ctx context.Context, d *db.DB, tenant id.UUID, reason string, by db.Author) error {
	return deleteTenant(ctx, d, tenant, reason, by, func(*sql.Queries) error { return nil })
}

// DeleteExported is DeleteTenant for a caller who must have exported the tenant's data first. If no current export
// exists, it returns account.ErrNoExport.
func DeleteExported(ctx context.Context, d *db.DB, tenant id.UUID, reason string, by db.Author) error {
	return deleteTenant(ctx, d, tenant, reason, by, func(q *sql.Queries) error {
		sent, err := deliveries.StandingExport(ctx, q, tenant)
		if err == nil && sent == nil {
			err = account.ErrNoExport
		}
		return err
	})
}

// deleteTenant calls the check after it has locked the tenant.
func deleteTenant(ctx context.Context, d *db.DB, tenant id.UUID, reason string, by db.Author, may func(*sql.Queries) error) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		// Before the tenant's lock: a running chunk of a job takes its locks in this order too.
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
			Tenant:  &tenant,
			Action:  "tenant.deleted",
			Kind:    "tenant",
			Object:  id.Tenant.Format(tenant),
			Reason:  reason,
			Details: map[string]any{"name": row.Name, "endpoints": had.Endpoints, "keys": had.Keys, "members": had.Members},
		})
	})
}

// endTenant deletes what works for a tenant, and marks the tenant as deleted.
func endTenant(ctx context.Context, q *sql.Queries, tenant id.UUID) error {
	endpointIDs, err := q.LiveEndpointIDs(ctx, tenant)
	if err != nil {
		return err
	}
	for _, endpointID := range endpointIDs {
		if _, err := endpoints.Remove(ctx, q, tenant, endpointID); err != nil {
			return err
		}
	}
	for _, end := range []func(context.Context, *id.UUID) error{q.EndKeys, q.EndMails, q.EndPauses} {
		if err := end(ctx, &tenant); err != nil {
			return err
		}
	}
	for _, end := range []func(context.Context, id.UUID) error{
		q.EndMemberships, q.EndInvitations, q.EndPortalLinks, q.EndShares,
		q.EndViews, q.EndTenant,
	} {
		if err := end(ctx, tenant); err != nil {
			return err
		}
	}
	if err := q.BumpKeysRevision(ctx); err != nil {
		return err
	}
	return q.NotifyPauses(ctx)
}
