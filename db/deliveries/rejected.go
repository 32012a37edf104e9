package deliveries

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// RejectedFilter narrows a list of rejected events.
type RejectedFilter struct {
	Tenant id.UUID // zero: of all tenants, for the console
	Source id.UUID // zero: of any source, and of none
	Code   string  // empty: any
}

// ListRejected returns a page of rejected events and messages, without their data.
func ListRejected(ctx context.Context, q *sql.Queries, f RejectedFilter, r show.Range) (show.Page[show.Rejected], error) {
	rows, err := q.ListRejected(ctx, sql.ListRejectedParams{
		Tenant: idOrNull(f.Tenant),
		Source: idOrNull(f.Source),
		Code:   f.Code,
		Newest: !r.Ascending,
		After:  r.Edge(),
		Limit:  int32(r.Limit + 1),
	})
	return show.Each(show.CutByID(rows, r.Limit, func(e sql.ListRejectedRow) id.UUID { return e.ID }), rejectedOf), err
}

func rejectedOf(row sql.ListRejectedRow) show.Rejected {
	return show.Rejected{
		ID:             row.ID,
		TenantID:       row.TenantID,
		SourceID:       db.OrZero(row.SourceID),
		Tenant:         row.Tenant,
		Type:           row.Type,
		Key:            db.TextOf(row.Key),
		IdempotencyKey: db.TextOf(row.IdempotencyKey),
		Size:           int(row.Size),
		Code:           row.Code,
		Detail:         row.Detail,
		RejectedAt:     row.RejectedAt,
		Data:           row.Data,
	}
}

// RejectedReasons counts the rejected events of all tenants, the most frequent reasons first.
func RejectedReasons(ctx context.Context, q *sql.Queries, limit int) ([]show.RejectedReason, error) {
	rows, err := q.RejectedByReason(ctx, int32(limit))
	reasons := make([]show.RejectedReason, len(rows))
	for i, r := range rows {
		reasons[i] = show.RejectedReason(r)
	}
	return reasons, err
}

// RetryRejected returns a rejected event to the outbox's relay, in the caller's transaction, and audits it.
func RetryRejected(ctx context.Context, q *sql.Queries, tenant, eventID id.UUID, by db.Author) error {
	code, err := q.RetryRejected(ctx, tenant, eventID)
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
	code, err := q.DiscardRejected(ctx, tenant, eventID)
	if err != nil {
		return err
	}
	return db.Audit(ctx, q, by, rejectedAudit("outbox.discard", tenant, eventID, code))
}

func rejectedAudit(action string, tenant, eventID id.UUID, code string) db.Audited {
	return db.Audited{
		Tenant:  &tenant,
		Action:  action,
		Kind:    "event",
		Object:  id.Event.Format(eventID),
		Details: map[string]string{"code": code},
	}
}
