package db

import (
	"context"

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
func (d *DB) DeleteTenant(ctx context.Context, tenant id.UUID, reason string, by Author) error {
	return d.deleteTenant(ctx, tenant, reason, by, func(*Queries) error { return nil })
}

// DeleteExported is DeleteTenant for who must have taken the tenant's data along: export.ErrNone where no export of it stands.
func (d *DB) DeleteExported(ctx context.Context, tenant id.UUID, reason string, by Author) error {
	return d.deleteTenant(ctx, tenant, reason, by, func(q *Queries) error {
		sent, err := q.StandingExport(ctx, tenant)
		if err == nil && sent == nil {
			err = export.ErrNone
		}
		return err
	})
}

// deleteTenant asks, once the tenant is locked, whether it may.
func (d *DB) deleteTenant(ctx context.Context, tenant id.UUID, reason string, by Author, may func(*Queries) error) error {
	return d.Console(ctx, func(q *Queries) error {
		// Before the tenant's lock: a chunk of a job that is under way takes its locks in this order too.
		if err := q.EndBulkJobs(ctx, tenant); err != nil {
			return err
		}
		row, err := q.LockTenant(ctx, tenant)
		if err != nil {
			return err
		}
		if own, err := q.PlatformTenant(ctx); err != nil {
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
		if err := q.endTenant(ctx, tenant); err != nil {
			return err
		}
		return q.Audit(ctx, by, Audited{
			Tenant: &tenant, Action: "tenant.deleted", Kind: "tenant", Object: id.Tenant.Format(tenant), Reason: reason,
			Details: map[string]any{"name": row.Name, "endpoints": had.Endpoints, "keys": had.Keys, "members": had.Members},
		})
	})
}

// endTenant takes away what works for a tenant, and marks it.
func (q *Queries) endTenant(ctx context.Context, tenant id.UUID) error {
	endpoints, err := q.LiveEndpointIDs(ctx, tenant)
	if err != nil {
		return err
	}
	for _, u := range endpoints {
		if _, err := q.RemoveEndpoint(ctx, tenant, u); err != nil {
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
