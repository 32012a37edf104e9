package deliveries

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/history"
	"posthorn/domain/id"
)

// storedOr returns history.ErrStored if some events, or replays of them, are of a day in storage; otherwise it returns
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

// Missing is the error for an event or a delivery that was not found: fault.ErrNotFound, or history.ErrStored if its
// day is in storage.
func Missing(ctx context.Context, q *sql.Queries, tenant, of id.UUID, notFound error) error {
	return storedOr(ctx, q, tenant, []id.UUID{of}, notFound)
}
