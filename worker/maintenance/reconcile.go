package maintenance

import (
	"context"
	"time"

	"posthorn/db/maintenance"
)

const (
	reconcileEvery  = time.Minute
	reconcileBudget = 200_000 // deliveries that are counted together
)

// reconcile compares some pages of the ledger with the tables.
func (m *Maintenance) reconcile(ctx context.Context) error {
	n, err := maintenance.Reconcile(ctx, m.db, reconcileEvery, reconcileBudget)
	if n > 0 {
		m.log.Error("the books differ from the deliveries; the console's page of the books names the rows", "pages", n)
	}
	return err
}
