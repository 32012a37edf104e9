package events

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/routing"
	"posthorn/domain/show"
)

// mostExplained bounds the endpoints of one explanation.
const mostExplained = 1000

// ReadRouting explains the routing of an event. It returns ErrNotFound if the event is unknown or older than the tenant
// can see.
func ReadRouting(ctx context.Context, q *sql.Queries, tenant, eventID id.UUID) (r show.Routed, err error) {
	row, err := ReadRow(ctx, q, tenant, eventID)
	if err != nil {
		return r, err
	}
	r.Event = Of(row)
	if err := q.PlanByIndex(ctx); err != nil {
		return r, err
	}
	rows, err := q.RoutesOfEvent(ctx, sql.RoutesOfEventParams{
		TenantID:       tenant,
		RoutingVersion: row.RoutingVersion,
		EventAt:        eventID.Time(),
		DayBefore:      eventID.Time().Add(-24 * time.Hour),
		Limit:          mostExplained + 1,
	})
	if err != nil {
		return r, err
	}
	if len(rows) > mostExplained {
		rows, r.More = rows[:mostExplained], true
	}
	sent, err := q.FirstDeliveriesOfEvent(ctx, sql.FirstDeliveriesOfEventParams{
		TenantID: tenant,
		EventID:  eventID,
		EventAt:  eventID.Time(),
		Since:    eventID.Time().Add(-db.ClockSkew),
	})
	if err != nil {
		return r, err
	}
	first := make(map[id.UUID]id.UUID, len(sent))
	for _, s := range sent {
		first[s.EndpointID] = s.ID
	}
	candidates := make([]routing.Candidate, len(rows))
	r.Endpoints = make([]show.RoutedEndpoint, len(rows))
	for i, e := range rows {
		r.Endpoints[i] = show.RoutedEndpoint{
			Destination: show.Destination{
				ID:          e.ID,
				Kind:        endpoint.Kind(e.Kind),
				URL:         egress.Mask(e.URL),
				Description: e.Description,
				Deleted:     e.Gone,
			},
			Status:     endpoint.Status(e.Status),
			DeliveryID: first[e.ID],
		}
		candidates[i] = routing.Candidate{
			Rule: routing.Rule{
				EventTypes: e.EventTypes,
				Channels:   e.Channels,
				Filter:     e.Filter,
				Status:     endpoint.Status(e.Status),
				Drops:      e.WhenHeld == endpoint.Drop,
				Version:    e.PayloadVersion,
			},
			Pulls:   endpoint.Kind(e.Kind).Pulls(),
			Starts:  e.Starting,
			Later:   e.Later,
			Deleted: e.Deleted,
			Sent:    !first[e.ID].IsZero(),
		}
	}
	r.Explanation = routing.Explain(routing.Event{
		Type:     r.Type,
		Channels: r.Channels,
		Version:  r.Version,
		Data:     r.Data,
	}, candidates)
	return r, nil
}
