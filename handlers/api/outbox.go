package api

import (
	"net/http"

	"posthorn/db/deliveries"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// listRejected is what was emitted in SQL and could not become an event.
func (a *api) listRejected(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "outbox-rejected"})
	if err != nil {
		return err
	}
	after, err := p.AfterID()
	if err != nil {
		return err
	}
	var rows []sql.RejectedDownRow
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		rows, err = deliveries.ListRejected(c.Ctx(), q, c.Actor.Tenant, after, p.Ascending, p.Limit+1)
		return err
	})
	if err != nil {
		return err
	}
	rows, next := cut(rows, p, func(r sql.RejectedDownRow) []byte { return r.ID[:] })
	return c.Answer(http.StatusOK, RejectedEventPage{Data: views(rows, rejectedView), NextCursor: cursorOrNull(next)})
}

func rejectedView(r sql.RejectedDownRow) RejectedEvent {
	v := RejectedEvent{
		ID: id.Event.Format(r.ID), Type: r.Type, Size: int(r.Size), Code: r.Code, Detail: r.Detail, RejectedAt: r.RejectedAt, CreatedAt: r.ID.Time(),
		Key: orNull(r.Key), IdempotencyKey: orNull(r.IdempotencyKey),
	}
	return v
}

// retryRejected gives an event back to the relay: its cause is mended.
func (a *api) retryRejected(c *handlers.Call) error {
	return a.settleRejected(c, "outbox.retry", func(q *sql.Queries, u id.UUID) (string, error) {
		return q.RetryRejected(c.Ctx(), sql.RetryRejectedParams{TenantID: c.Actor.Tenant, ID: u})
	}, func(u id.UUID) error { return c.Answer(http.StatusAccepted, RejectedRetried{ID: id.Event.Format(u)}) })
}

// discardRejected gives an event up.
func (a *api) discardRejected(c *handlers.Call) error {
	return a.settleRejected(c, "outbox.discard", func(q *sql.Queries, u id.UUID) (string, error) {
		return q.DiscardRejected(c.Ctx(), sql.DiscardRejectedParams{TenantID: c.Actor.Tenant, ID: u})
	}, func(id.UUID) error { return c.AnswerNothing() })
}

// settleRejected does something to one rejected event, which do answers with its code, and audits it.
func (a *api) settleRejected(c *handlers.Call, action string, do func(*sql.Queries, id.UUID) (string, error), answer func(id.UUID) error) error {
	u, err := c.ID(id.Event, "rejected_id")
	if err != nil {
		return err
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		code, err := do(q, u)
		if err != nil {
			return err
		}
		if err := q.NotifyOutbox(c.Ctx()); err != nil {
			return err
		}
		return c.Audit(q, action, "event", id.Event.Format(u), "", map[string]string{"code": code})
	})
	if err != nil {
		return err
	}
	return answer(u)
}
