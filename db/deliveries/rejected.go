package deliveries

import (
	"context"

	"posthorn/db/sql"
	"posthorn/domain/id"
)

// ListRejected is a page of what a tenant emitted in SQL and could not become an event, beyond the row after: the zero id at the
// list's beginning.
func ListRejected(ctx context.Context, q *sql.Queries, tenant, after id.UUID, ascending bool, most int) ([]sql.RejectedDownRow, error) {
	if !ascending {
		if after.IsZero() {
			after = id.Last
		}
		return q.RejectedDown(ctx, sql.RejectedDownParams{TenantID: tenant, Before: after, Most: int32(most)})
	}
	rows, err := q.RejectedUp(ctx, sql.RejectedUpParams{TenantID: tenant, After: after, Most: int32(most)})
	out := make([]sql.RejectedDownRow, len(rows))
	for i, r := range rows {
		out[i] = sql.RejectedDownRow(r)
	}
	return out, err
}
