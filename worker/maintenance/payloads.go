package maintenance

import (
	"context"
	"time"

	"posthorn/db/maintenance"
	"posthorn/domain/event"
	"posthorn/domain/id"
)

const payloadsEvery = 15 * time.Second

// sweepPayloads deletes objects of events that are no longer kept, whose data was expunged, or that were never stored.
func (m *Maintenance) sweepPayloads(ctx context.Context) error {
	if m.objects == nil {
		return nil
	}
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	if quiet, err := m.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	for {
		unneeded, n, err := maintenance.UnneededPayloads(ctx, m.db, sweepMost)
		if err == nil {
			err = m.deletePayloads(ctx, unneeded)
		}
		if err != nil || n < sweepMost {
			return err
		}
	}
}

// deletePayloads deletes objects, and then their rows: an object that stays has a row.
func (m *Maintenance) deletePayloads(ctx context.Context, payloads []maintenance.Payload) error {
	for _, p := range payloads {
		if err := m.objects.Delete(ctx, event.ObjectName(p.Tenant, p.Event)); err != nil {
			return err
		}
	}
	return maintenance.ForgetPayloads(ctx, m.db, payloads)
}

// erasePayloads deletes a deleted tenant's objects. It returns false if it can't; the tenant then is not erased yet.
func (m *Maintenance) erasePayloads(ctx context.Context, tenant id.UUID) (bool, error) {
	for {
		payloads, err := maintenance.PayloadsOf(ctx, m.db, tenant, sweepMost)
		if err != nil || len(payloads) == 0 {
			return err == nil, err
		}
		if m.objects == nil {
			m.log.Error("a deleted tenant has large payloads in storage; it is erased once POSTHORN_HISTORY_URL is set again", "tenant", id.Tenant.Format(tenant))
			return false, nil
		}
		if err := m.deletePayloads(ctx, payloads); err != nil {
			m.log.Error("the large payloads of a deleted tenant could not be deleted; it is tried again", "tenant", id.Tenant.Format(tenant), "error", err)
			return false, nil
		}
	}
}
