package db

import (
	"context"

	"posthorn/domain/id"
)

// ListRejected is a page of what a tenant emitted in SQL and could not become an event, beyond the row after: the zero id at the
// list's beginning.
func (q *Queries) ListRejected(ctx context.Context, tenant, after id.UUID, ascending bool, most int) ([]RejectedDownRow, error) {
	if !ascending {
		if after.IsZero() {
			after = id.Last
		}
		return q.RejectedDown(ctx, RejectedDownParams{TenantID: tenant, Before: after, Most: int32(most)})
	}
	rows, err := q.RejectedUp(ctx, RejectedUpParams{TenantID: tenant, After: after, Most: int32(most)})
	out := make([]RejectedDownRow, len(rows))
	for i, r := range rows {
		out[i] = RejectedDownRow(r)
	}
	return out, err
}
