package endpoints

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/routing"
)

// mostExplained bounds the endpoints of one explanation.
const mostExplained = 1000

// RoutedEvent is an event with the endpoints of its tenant as they were when it was emitted.
type RoutedEvent struct {
	sql.Event
	Endpoints []RoutedEndpoint // those that still exist first, then the newest
	More      bool             // there are more than mostExplained
}

// RoutedEndpoint is one endpoint under the routes of an event.
type RoutedEndpoint struct {
	sql.RoutesOfEventRow
	Delivery *id.UUID // the event's first delivery to it; nil: none
}

// ReadRouting reads what an explanation needs. It returns ErrNotFound if the event is unknown or older than the tenant
// can see.
func ReadRouting(ctx context.Context, q *sql.Queries, tenant, event id.UUID) (r RoutedEvent, err error) {
	if r.Event, err = ReadEvent(ctx, q, tenant, event); err != nil {
		return r, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return r, err
	}
	rows, err := q.RoutesOfEvent(ctx, sql.RoutesOfEventParams{
		TenantID: tenant, RoutingVersion: r.RoutingVersion,
		EventAt: event.Time(), DayBefore: event.Time().Add(-24 * time.Hour), Most: mostExplained + 1,
	})
	if err != nil {
		return r, err
	}
	if len(rows) > mostExplained {
		rows, r.More = rows[:mostExplained], true
	}
	sent, err := q.FirstDeliveriesOfEvent(ctx, sql.FirstDeliveriesOfEventParams{
		TenantID: tenant, EventID: event, EventAt: event.Time(), Since: event.Time().Add(-db.ClockSkew),
	})
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

// ReadEvent reads an event within the tenant's retention.
func ReadEvent(ctx context.Context, q *sql.Queries, tenant, event id.UUID) (sql.Event, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return sql.Event{}, err
	}
	if event.Time().Before(floor) {
		return sql.Event{}, fault.ErrNotFound
	}
	return q.GetEvent(ctx, sql.GetEventParams{TenantID: tenant, CreatedAt: event.Time(), ID: event})
}

// Explain evaluates the routing of an event to its endpoints, in their order.
func (r *RoutedEvent) Explain() routing.Explanation {
	candidates := make([]routing.Candidate, len(r.Endpoints))
	for i, e := range r.Endpoints {
		candidates[i] = routing.Candidate{
			Rule: routing.Rule{
				EventTypes: e.EventTypes, Channels: e.Channels, Filter: e.Filter,
				Status: endpoint.Status(e.Status), Drops: e.WhenHeld == endpoint.Drop, Version: e.PayloadVersion,
			},
			Later: e.Later, Deleted: e.Deleted, Sent: e.Delivery != nil,
		}
	}
	e := routing.Event{Type: r.Type, Channels: r.Channels, Data: r.Data}
	if r.Version != nil {
		e.Version = *r.Version
	}
	return routing.Explain(e, candidates)
}
