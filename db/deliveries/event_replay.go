package deliveries

import (
	"context"
	"slices"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// EventReplay is the result of replaying one event: the new deliveries, and why others were left out.
type EventReplay struct {
	Deliveries []show.Delivery
	Skipped    map[bulk.Skip]int64
}

// mostOfEvent is how many deliveries of one event are read.
const mostOfEvent = 2000

// ReplayEventBy is ReplayEvent with an entry in the audit log if it created a delivery.
func ReplayEventBy(ctx context.Context, q *sql.Queries, tenant, event id.UUID, only *id.UUID, by db.Author) (EventReplay, error) {
	made, err := ReplayEvent(ctx, q, tenant, event, only)
	if err != nil || len(made.Deliveries) == 0 {
		return made, err
	}
	ids := make([]string, len(made.Deliveries))
	for i, d := range made.Deliveries {
		ids[i] = id.Delivery.Format(d.ID)
	}
	return made, db.Audit(ctx, q, by, db.Audited{
		Tenant:  &tenant,
		Action:  "event.replay",
		Kind:    "event",
		Object:  id.Event.Format(event),
		Details: map[string]any{"new_deliveries": ids},
	})
}

// ReplayEvent sends an event again to every endpoint that got it, or to one endpoint, even if that one never got it. If
// a delivery of the event to an endpoint still waits, the endpoint is left out, since it would get the event twice.
func ReplayEvent(ctx context.Context, q *sql.Queries, tenant, event id.UUID, only *id.UUID) (out EventReplay, err error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return out, err
	}
	if event.Time().Before(floor) {
		return out, fault.ErrNotFound
	}
	e, err := q.GetEvent(ctx, sql.GetEventParams{TenantID: tenant, CreatedAt: event.Time(), ID: event})
	if err != nil {
		return out, err
	}
	if e.Data == nil {
		return out, delivery.ErrEventExpired
	}
	if only != nil {
		// The lock keeps another transaction from finding the same event missing.
		e, err := q.LockEndpoint(ctx, tenant, *only)
		if err != nil {
			return out, err
		}
		if endpoint.Kind(e.Kind).Pulls() {
			return out, endpoint.ErrFeed
		}
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return out, err
	}
	rows, err := q.DeliveriesOfEvent(ctx, sql.DeliveriesOfEventParams{
		TenantID:   tenant,
		EventID:    event,
		EventAt:    event.Time(),
		Since:      event.Time().Add(-db.ClockSkew),
		EndpointID: only,
		Limit:      mostOfEvent,
	})
	if err != nil {
		return out, err
	}
	again, letters, skipped, err := planEvent(ctx, q, e, rows, only)
	if err != nil {
		return out, err
	}
	out.Skipped = skipped
	if len(again) == 0 {
		return out, nil
	}
	ids, err := sendAgain(ctx, q, tenant, again, nil)
	if err != nil {
		return out, err
	}
	// A replay of the event settles the endpoint's older deliveries of it: they need no replay of their own.
	for i, a := range again {
		older := letters[a.endpoint]
		if err := noteReplays(ctx, q, tenant, nil, older, slices.Repeat(ids[i:i+1], len(older))); err != nil {
			return out, err
		}
	}
	out.Deliveries, err = readDeliveries(ctx, q, tenant, ids)
	return out, err
}

// planEvent decides for each endpoint that an event went to. letters are the endpoint's older deliveries of the event.
func planEvent(
	ctx context.Context,
	q *sql.Queries,
	e sql.Event,
	rows []sql.DeliveriesOfEventRow,
	only *id.UUID,
) (again []againDelivery, letters map[id.UUID][]id.UUID, skipped map[bulk.Skip]int64, err error) {
	newest := map[id.UUID]sql.DeliveriesOfEventRow{}
	waits := map[id.UUID]bool{}
	letters = map[id.UUID][]id.UUID{}
	var endpoints []id.UUID
	for _, r := range rows {
		if _, known := newest[r.EndpointID]; !known {
			newest[r.EndpointID] = r
			endpoints = append(endpoints, r.EndpointID)
		} else if r.Status == delivery.Failed {
			letters[r.EndpointID] = append(letters[r.EndpointID], r.ID)
		}
		waits[r.EndpointID] = waits[r.EndpointID] || r.Queued
	}
	if only != nil {
		endpoints = []id.UUID{*only}
	}
	w := &bulkWork{q: q, tenant: e.TenantID}
	orders, err := w.orders(ctx, endpoints, true)
	if err != nil {
		return nil, nil, nil, err
	}
	skipped = map[bulk.Skip]int64{}
	for _, ep := range endpoints {
		ordering, open := orders[ep]
		switch {
		case waits[ep] && only != nil:
			return nil, nil, nil, delivery.RefuseReplay(delivery.Pending)
		case waits[ep]:
			skipped[bulk.SkipWaiting]++
			continue
		case !open:
			skipped[bulk.SkipEndpointDeleted]++
			continue
		}
		one := againDelivery{event: e.ID, endpoint: ep, eventType: e.Type, replayOf: newest[ep].ID}
		if last, sent := newest[ep]; sent {
			one.first = show.Delivery{ID: last.ID, ReplayOf: db.OrZero(last.ReplayOf), FirstID: db.OrZero(last.FirstID)}.First()
		}
		if key := orderKey(ordering, e.Key); key != nil {
			one.orderKey = *key
		}
		again = append(again, one)
	}
	return again, letters, skipped, nil
}
