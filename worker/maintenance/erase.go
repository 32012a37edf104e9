package maintenance

import (
	"context"
	"time"

	"posthorn/db/maintenance"
	"posthorn/domain/id"
	"posthorn/worker/loop"
)

const (
	eraseEvery = time.Minute
	eraseAfter = 5 * time.Minute // requests that were in flight at the deletion have ended and are recorded
	eraseMost  = 500
)

// eraseTenants erases the data of deleted tenants. It rests as long as each batch took, so that it never uses more than
// half of a connection's time.
func (m *Maintenance) eraseTenants(ctx context.Context) error {
	tenants, err := maintenance.TenantsToErase(ctx, m.db, eraseAfter)
	if err != nil {
		return err
	}
	for _, tenantID := range tenants {
		if erased, err := m.eraseHistory(ctx, tenantID); err != nil {
			return err
		} else if !erased {
			continue
		}
		if erased, err := m.erasePayloads(ctx, tenantID); err != nil {
			return err
		} else if !erased {
			continue
		}
		done, err := maintenance.EraseTenant(ctx, m.db, tenantID, eraseMost, func(took time.Duration) error {
			loop.Sleep(ctx, took)
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		if done.Done {
			m.log.Info("tenant erased", "tenant", id.Tenant.Format(tenantID), "events", done.Events, "deliveries", done.Deliveries, "attempts", done.Attempts)
		}
	}
	return nil
}
