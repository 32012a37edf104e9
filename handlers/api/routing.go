package api

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/routing"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// explainEvent responds for each endpoint whether it matched the event and why, at the time of the event.
func (a *api) explainEvent(c *handlers.Call) error {
	eventID := c.PathID("event_id")
	var r show.Routed
	err := c.Tx(func(q *db.Tx) (err error) {
		r, err = events.ReadRouting(c.Ctx(), q, c.Actor.Tenant, eventID)
		return err
	})
	if err != nil {
		return err
	}
	out := EventRouting{
		EventID:   id.Event.Format(eventID),
		Type:      r.Type,
		CreatedAt: Time(r.CreatedAt),
		Expunged:  r.Data == nil,
		Direct:    r.Direct,
		Matched:   r.Matched,
		Summary:   r.Summary,
		Data:      make([]RoutingVerdict, len(r.Verdicts)),
		Truncated: r.More,
	}
	for i, v := range r.Verdicts {
		out.Data[i] = verdictView(r.Endpoints[i], v)
	}
	return c.Answer(http.StatusOK, out)
}

func verdictView(e show.RoutedEndpoint, v routing.Verdict) RoutingVerdict {
	out := RoutingVerdict{
		EndpointID:  id.Endpoint.Format(e.ID),
		URL:         e.URL,
		Description: e.Description,
		Gone:        e.Deleted,
		Matched:     v.Matched,
		Held:        v.Held,
		Unsure:      v.Unsure,
		Detail:      v.Detail,
	}
	out.Clause.SetNull()
	if v.Clause != filter.ClauseNone {
		out.Clause.Set(RoutingClause(v.Clause))
	}
	out.Status.SetNull()
	if e.Status != "" {
		out.Status.Set(EndpointStatus(e.Status))
	}
	out.DeliveryID.SetNull()
	if !e.DeliveryID.IsZero() {
		out.DeliveryID.Set(id.Delivery.Format(e.DeliveryID))
	}
	return out
}
