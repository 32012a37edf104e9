package maintenance

import (
	"context"
	"errors"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// ErrDiscrepancyChanged says that the accepted discrepancy does not exist, or changed after it was shown.
var ErrDiscrepancyChanged = errors.New("This discrepancy has changed, was resolved, or was already accepted. The page shows its current state.")

// AcceptDiscrepancy marks a discrepancy of a tenant and day as accepted, with the author's reason, so that it no longer
// alerts for as long as the gap is the shown one. If two operators accept it concurrently, one does, and the other gets
// ErrDiscrepancyChanged. An unknown or deleted tenant is fault.ErrNotFound.
func AcceptDiscrepancy(ctx context.Context, d *db.DB, tenant id.UUID, day time.Time, gap string, by db.Author) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		row, err := q.AcceptDiscrepancy(ctx, sql.AcceptDiscrepancyParams{
			TenantID:   tenant,
			Day:        day,
			Gap:        gap,
			AcceptedBy: by.ID,
			Reason:     by.Reason,
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
			Tenant:  &tenant,
			Action:  "books.accepted",
			Kind:    "books",
			Object:  day.Format(time.DateOnly),
			Details: map[string]any{"gap": row.Gap, "amount": row.Amount},
		})
	})
}
