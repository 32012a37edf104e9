package maintenance

import (
	"context"
	"time"

	"posthorn/db/days"
	"posthorn/domain/id"
)

const historyEvery = 5 * time.Second

// moveHistory moves closed days into the store, and restores those that people request.
func (m *Maintenance) moveHistory(ctx context.Context) error {
	if m.history == nil {
		return nil
	}
	return m.history.Work(ctx)
}

// eraseHistory deletes a deleted tenant's objects from the store. It returns false if it can't; the tenant then is not
// erased yet.
func (m *Maintenance) eraseHistory(ctx context.Context, tenant id.UUID) (bool, error) {
	has, moved, err := days.OfTenant(ctx, m.db, tenant)
	if err != nil || moved || !has && m.history == nil {
		return err == nil, err
	}
	if m.history == nil {
		m.log.Error("a deleted tenant has history in storage; it is erased once POSTHORN_HISTORY_URL is set again", "tenant", id.Tenant.Format(tenant))
		return false, nil
	}
	if err := m.history.Erase(ctx, tenant); err != nil {
		m.log.Error("the stored history of a deleted tenant could not be deleted; it is tried again", "tenant", id.Tenant.Format(tenant), "error", err)
		return false, nil
	}
	return true, nil
}
