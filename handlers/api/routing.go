package api

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/egress"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/routing"
	"posthorn/handlers"
)

// explainEvent responds for each endpoint whether it matched the event and why, at the time of the event.
func (a *api) explainEvent(c *handlers.Call) error {
	eventID, err := c.ID(id.Event, "event_id")
	if err != nil {
		return err
	}
	var read endpoints.RoutedEvent
	err = c.Tx(func(q *db.Tx) error {
		read, err = endpoints.ReadRouting(c.Ctx(), q, c.Actor.Tenant, eventID)
		return err
	})
	if err != nil {
		return err
	}
	x := read.Explain()
	out := EventRouting{
		EventID: id.Event.Format(eventID), Type: read.Type, CreatedAt: Time(read.CreatedAt), Expunged: read.Data == nil,
		Direct:  x.Direct,
		Matched: x.Matched, Summary: x.Summary, Data: make([]RoutingVerdict, len(x.Verdicts)), Truncated: read.More,
	}
	for i, v := range x.Verdicts {
		out.Data[i] = verdictView(read.Endpoints[i], v)
	}
	return c.Answer(http.StatusOK, out)
}

func verdictView(e endpoints.RoutedEndpoint, v routing.Verdict) RoutingVerdict {
	out := RoutingVerdict{
		EndpointID: id.Endpoint.Format(e.ID), URL: egress.Mask(e.URL), Description: e.Description, Gone: e.Gone,
		Matched: v.Matched, Held: v.Held, Unsure: v.Unsure, Detail: v.Detail,
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
	if e.Delivery != nil {
		out.DeliveryID.Set(id.Delivery.Format(*e.Delivery))
	}
	return out
}
