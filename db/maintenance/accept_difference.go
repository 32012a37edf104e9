package maintenance

import (
	"context"
	"errors"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// ErrDifferenceChanged is the answer to who accepts a difference of the books that is not, or no longer, as it was shown.
var ErrDifferenceChanged = errors.New("This difference has changed since it was shown, has ended, or somebody has accepted it already. The page shows how it is now.")

// AcceptDifference keeps a difference of a tenant's books of a day on record and has it alert nobody, for as long as the gap is the one
// that was shown. Of two who accept it at once one does; the other gets ErrDifferenceChanged. A tenant that is unknown or
// deleted is fault.ErrNotFound.
func AcceptDifference(ctx context.Context, d *db.DB, tenant id.UUID, day time.Time, gap, reason string, by db.Author) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		row, err := q.AcceptDifference(ctx, sql.AcceptDifferenceParams{TenantID: tenant, Day: day, Gap: gap, AcceptedBy: by.ID, Reason: reason})
		if db.IsNoRows(err) {
			if _, err := q.GetTenant(ctx, tenant); err != nil {
				return err
			}
			return ErrDifferenceChanged
		}
		if err != nil {
			return err
		}
		return db.Audit(ctx, q, by, db.Audited{
			Tenant: &tenant, Action: "books.accepted", Kind: "books", Object: day.Format(time.DateOnly), Reason: reason,
			Details: map[string]any{"gap": row.Gap, "amount": row.Amount},
		})
	})
}
