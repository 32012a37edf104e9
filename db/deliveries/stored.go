package deliveries

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/history"
	"posthorn/domain/id"
)

// storedOr says that some events, or replays of them, are of a day in storage (history.ErrStored), or else returns
// another error.
func storedOr(ctx context.Context, q *sql.Queries, tenant id.UUID, ids []id.UUID, otherwise error) error {
	created := make([]time.Time, len(ids))
	for i, one := range ids {
		created[i] = one.Time()
	}
	day, err := q.StoredDayOf(ctx, sql.StoredDayOfParams{TenantID: tenant, Events: ids, Created: created})
	switch {
	case db.IsNoRows(err):
		return otherwise
	case err != nil:
		return err
	}
	return history.ErrStored(day)
}

// Missing is what to say of an event or a delivery that was not found: fault.ErrNotFound, or that its day is in
// storage.
func Missing(ctx context.Context, q *sql.Queries, tenant, of id.UUID, notFound error) error {
	return storedOr(ctx, q, tenant, []id.UUID{of}, notFound)
}
