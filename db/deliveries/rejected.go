package deliveries

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// ListRejected returns a page of the rejected events that a tenant emitted in SQL, beyond the row after: the zero id at
// the start of the list.
func ListRejected(ctx context.Context, q *sql.Queries, tenant, after id.UUID, ascending bool,
	most int,
) ([]sql.RejectedDownRow, error) {
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

// RetryRejected returns a rejected event to the outbox's relay, in the caller's transaction, and audits it.
func RetryRejected(ctx context.Context, q *sql.Queries, tenant, eventID id.UUID, by db.Author) error {
	code, err := q.RetryRejected(ctx, sql.RetryRejectedParams{TenantID: tenant, ID: eventID})
	if err != nil {
		return err
	}
	if err := q.NotifyOutbox(ctx); err != nil {
		return err
	}
	return db.Audit(ctx, q, by, rejectedAudit("outbox.retry", tenant, eventID, code))
}

// DiscardRejected deletes a rejected event, in the caller's transaction, and audits it.
func DiscardRejected(ctx context.Context, q *sql.Queries, tenant, eventID id.UUID, by db.Author) error {
	code, err := q.DiscardRejected(ctx, sql.DiscardRejectedParams{TenantID: tenant, ID: eventID})
	if err != nil {
		return err
	}
	return db.Audit(ctx, q, by, rejectedAudit("outbox.discard", tenant, eventID, code))
}

func rejectedAudit(action string, tenant, eventID id.UUID, code string) db.Audited {
	return db.Audited{
		Tenant: &tenant, Action: action, Kind: "event", Object: id.Event.Format(eventID),
		Details: map[string]string{"code": code},
	}
}
