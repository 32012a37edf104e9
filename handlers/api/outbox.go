package api

import (
	"context"
	"net/http"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// listRejected lists events that were emitted in SQL, and messages of sources, that were rejected.
func (a *api) listRejected(c *handlers.Call) error {
	l := handlers.List{Name: "outbox-rejected", Filters: []handlers.Filter{handlers.BySource}}
	return list(c, l, func(q *db.Tx, p handlers.Page) (show.Page[show.Rejected], error) {
		return deliveries.ListRejected(c.Ctx(), q, deliveries.RejectedFilter{Tenant: c.Actor.Tenant, Source: p.Source}, p.Range)
	}, rejectedView)
}

func rejectedView(r show.Rejected) RejectedEvent {
	v := RejectedEvent{
		ID:             id.Event.Format(r.ID),
		Type:           r.Type,
		Size:           r.Size,
		Code:           r.Code,
		Detail:         r.Detail,
		RejectedAt:     Time(r.RejectedAt),
		CreatedAt:      Time(r.ID.Time()),
		Key:            orNullText(r.Key),
		IdempotencyKey: orNullText(r.IdempotencyKey),
	}
	v.SourceID.SetNull()
	if !r.SourceID.IsZero() {
		v.SourceID.Set(id.Source.Format(r.SourceID))
	}
	return v
}

// retryRejected returns a rejected event to the relay, after its cause was fixed.
func (a *api) retryRejected(c *handlers.Call) error {
	eventID, err := a.settleRejected(c, deliveries.RetryRejected)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, RejectedRetried{ID: id.Event.Format(eventID)})
}

func (a *api) discardRejected(c *handlers.Call) error {
	if _, err := a.settleRejected(c, deliveries.DiscardRejected); err != nil {
		return err
	}
	return c.AnswerNothing()
}

func (a *api) settleRejected(
	c *handlers.Call,
	settle func(ctx context.Context, q *db.Tx, tenant, uuid id.UUID, by db.Author) error,
) (id.UUID, error) {
	eventID := c.PathID("rejected_id")
	if err := c.NoBody(); err != nil {
		return eventID, err
	}
	return eventID, c.Tx(func(q *db.Tx) error { return settle(c.Ctx(), q, c.Actor.Tenant, eventID, c.Author()) })
}
