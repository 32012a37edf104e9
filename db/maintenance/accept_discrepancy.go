package maintenance

import (
	"context"
	"errors"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// ErrDiscrepancyChanged is returned for accepting a discrepancy that is not, or no longer, as it was shown.
var ErrDiscrepancyChanged = errors.New("This discrepancy has changed, was resolved, or was already accepted. The page shows its current state.")

// AcceptDiscrepancy marks a discrepancy of a tenant and day as accepted, with the author's reason, so that it alerts no
// longer, as long as the gap is the one that was shown. If two operators accept it at once, one does, and the other
// gets ErrDiscrepancyChanged. An unknown or deleted tenant is fault.ErrNotFound.
func AcceptDiscrepancy(ctx context.Context, d *db.DB, tenant id.UUID, day time.Time, gap string, by db.Author) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		row, err := q.AcceptDiscrepancy(ctx, sql.AcceptDiscrepancyParams{
			TenantID: tenant, Day: day, Gap: gap,
			AcceptedBy: by.ID, Reason: by.Reason,
		})
		if db.IsNoRows(err) {
			if _, err := q.GetTenant(ctx, tenant); err != nil {
				return err
			}
			return ErrDiscrepancyChanged
		}
		if err != nil {
			return err
		}
		return db.Audit(ctx, q, by, db.Audited{
			Tenant: &tenant, Action: "books.accepted", Kind: "books", Object: day.Format(time.DateOnly),
			Details: map[string]any{"gap": row.Gap, "amount": row.Amount},
		})
	})
}
