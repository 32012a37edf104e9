package db

import (
	"context"
	"time"

	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/routing"
)

// MostExplained bounds the endpoints that one explanation looks at.
const MostExplained = 1000

// RoutedEvent is an event with the endpoints of its tenant as they were when it was emitted.
type RoutedEvent struct {
	Event
	Endpoints []RoutedEndpoint // those that still exist first, then the newest
	More      bool             // there are more than MostExplained
}

// RoutedEndpoint is one endpoint under the routes of an event.
type RoutedEndpoint struct {
	RoutesOfEventRow
	Delivery *id.UUID // the first of the event to it; nil: none
}

// ReadRouting reads what an explanation needs. ErrNotFound where the event is unknown or older than the tenant may see.
func (q *Queries) ReadRouting(ctx context.Context, tenant, event id.UUID) (r RoutedEvent, err error) {
	if r.Event, err = q.ReadEvent(ctx, tenant, event); err != nil {
		return r, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return r, err
	}
	rows, err := q.RoutesOfEvent(ctx, RoutesOfEventParams{TenantID: tenant, RoutingVersion: r.RoutingVersion, EventAt: event.Time(), DayBefore: event.Time().Add(-24 * time.Hour), Most: MostExplained + 1})
	if err != nil {
		return r, err
	}
	if len(rows) > MostExplained {
		rows, r.More = rows[:MostExplained], true
	}
	sent, err := q.FirstDeliveriesOfEvent(ctx, FirstDeliveriesOfEventParams{TenantID: tenant, EventID: event, Since: event.Time()})
	if err != nil {
		return r, err
	}
	first := make(map[id.UUID]*id.UUID, len(sent))
	for i := range sent {
		first[sent[i].EndpointID] = &sent[i].ID
	}
	for _, row := range rows {
		r.Endpoints = append(r.Endpoints, RoutedEndpoint{RoutesOfEventRow: row, Delivery: first[row.ID]})
	}
	return r, nil
}

// ReadEvent is an event within the tenant's retention.
func (q *Queries) ReadEvent(ctx context.Context, tenant, event id.UUID) (Event, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return Event{}, err
	}
	if event.Time().Before(floor) {
		return Event{}, fault.ErrNotFound
	}
	return q.GetEvent(ctx, GetEventParams{TenantID: tenant, CreatedAt: event.Time(), ID: event})
}

// Explain judges the event's endpoints, in their order.
func (r *RoutedEvent) Explain() routing.Explanation {
	candidates := make([]routing.Candidate, len(r.Endpoints))
	for i, e := range r.Endpoints {
		candidates[i] = routing.Candidate{
			Rule:  routing.Rule{EventTypes: e.EventTypes, Channels: e.Channels, Filter: e.Filter, Status: endpoint.Status(e.Status), Drops: e.WhenHeld == endpoint.Drop, Version: e.PayloadVersion},
			Later: e.Later, Deleted: e.Deleted, Sent: e.Delivery != nil,
		}
	}
	e := routing.Event{Type: r.Type, Channels: r.Channels, Data: r.Data}
	if r.Version != nil {
		e.Version = *r.Version
	}
	return routing.Explain(e, candidates)
}
