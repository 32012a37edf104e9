package deliveries

import (
	"context"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/ledger"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// planReplay leaves out deliveries that would be sent twice and those that can't be sent. A dead letter that was
// replayed before is left out unless the filter named it, so that a second click does not double an outage's backlog.
func (w *bulkWork) planReplay(ctx context.Context, part *bulkPart, rows []show.Delivery, lock bool) error {
	replayed, err := w.replayed(ctx, rows, lock)
	if err != nil {
		return err
	}
	if part.orders, err = w.orders(ctx, endpointsOf(rows), lock); err != nil {
		return err
	}
	events := make([]id.UUID, len(rows))
	for i, d := range rows {
		events[i] = d.EventID
	}
	sendable, err := w.sendable(ctx, events)
	if err != nil {
		return err
	}
	part.keys = make(map[id.UUID]*string, len(rows))
	for _, d := range rows {
		why := bulk.SkipReplay(d.Status)
		e, there := sendable[d.EventID]
		_, open := part.orders[d.Endpoint.ID]
		switch {
		case why != bulk.SkipNone:
		case replayed[d.ID] && len(w.filter.IDs) == 0:
			why = bulk.SkipReplayed
		case !open:
			why = bulk.SkipEndpointDeleted
		case !there:
			why = bulk.SkipEventExpired
		case !e.HasData:
			why = bulk.SkipExpunged
		default:
			part.keys[d.EventID] = e.Key
		}
		if part.take(d, why); w.sample && len(part.rows) == 1 {
			part.position, part.end = d.ID, false
			break
		}
	}
	return nil
}

// replayed returns the dead letters among rows that were replayed before.
func (w *bulkWork) replayed(ctx context.Context, rows []show.Delivery, lock bool) (map[id.UUID]bool, error) {
	var dead []id.UUID
	for _, d := range rows {
		if d.Status == delivery.Failed {
			dead = append(dead, d.ID)
		}
	}
	again := map[id.UUID]bool{}
	if len(dead) == 0 {
		return again, nil
	}
	if !lock {
		ids, err := w.q.ReplayedLetters(ctx, w.tenant, dead)
		for _, eventID := range ids {
			again[eventID] = true
		}
		return again, err
	}
	letters, err := w.q.LockLetters(ctx, w.tenant, dead)
	for _, l := range letters {
		again[l.DeliveryID] = l.Replayed
	}
	return again, err
}

// orders returns the ordering of endpoints that are not deleted. With lock it does not change until the transaction
// ends.
func (w *bulkWork) orders(ctx context.Context, endpoints []id.UUID, lock bool) (map[id.UUID]string, error) {
	orders := make(map[id.UUID]string, len(endpoints))
	if !lock {
		rows, err := w.q.EndpointOrders(ctx, w.tenant, endpoints)
		for _, r := range rows {
			orders[r.ID] = r.Ordering
		}
		return orders, err
	}
	rows, err := w.q.ShareLockEndpoints(ctx, w.tenant, endpoints)
	for _, r := range rows {
		orders[r.ID] = r.Ordering
	}
	return orders, err
}

// sendable reads which of the events still exist, and whether they still have data.
func (w *bulkWork) sendable(ctx context.Context, events []id.UUID) (map[id.UUID]sql.ReplayableEventsRow, error) {
	events = slices.DeleteFunc(events, func(eventID id.UUID) bool { return eventID.Time().Before(w.floor) })
	slices.SortFunc(events, id.UUID.Compare)
	found := make(map[id.UUID]sql.ReplayableEventsRow, len(events))
	for _, day := range splitByDay(slices.Compact(events)) {
		rows, err := w.q.ReplayableEvents(ctx, sql.ReplayableEventsParams{
			Ids:      day.ids,
			Created:  day.created,
			TenantID: w.tenant,
			First:    day.first,
			Last:     day.last,
		})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			found[r.ID] = r
		}
	}
	return found, nil
}

// applyReplay sends the events of settled deliveries again, in their order, at the end of their lanes.
func (w *bulkWork) applyReplay(ctx context.Context, part *bulkPart) error {
	again := make([]againDelivery, len(part.rows))
	for i, d := range part.rows {
		again[i] = againDelivery{
			event:     d.EventID,
			endpoint:  d.Endpoint.ID,
			eventType: d.EventType,
			replayOf:  d.ID,
			first:     d.First(),
		}
		if key := orderKey(part.orders[d.Endpoint.ID], part.keys[d.EventID]); key != nil {
			again[i].orderKey = *key
		}
	}
	made, err := sendAgain(ctx, w.q, w.tenant, again, w.job)
	part.made = made
	return err
}

// againDelivery is a new delivery of an old event.
type againDelivery struct {
	event, endpoint id.UUID
	eventType       string
	replayOf        id.UUID   // zero: the endpoint never got the event
	first           id.UUID   // the first delivery of the chain of replays; zero as replayOf
	orderKey        string    // empty: unordered
	due             time.Time // deliver_at if it is in the future; else zero
}

// Backlog is an event that an endpoint gets which begins in the past.
type Backlog struct {
	Event   id.UUID
	Type    string
	Key     string    // of the event; empty: none
	Deliver time.Time // its deliver_at; zero: none
}

// CatchesUp is an endpoint that gets a backlog.
type CatchesUp struct {
	Tenant, Endpoint id.UUID
	Ordering         string
}

// QueueBacklog stores deliveries of events to an endpoint that catches up, in their order. What the endpoint has had
// before is a replay of its last delivery.
func QueueBacklog(ctx context.Context, q *sql.Queries, to CatchesUp, events []Backlog, now time.Time) error {
	if len(events) == 0 {
		return nil
	}
	earlier, err := earlierDeliveries(ctx, q, to.Tenant, to.Endpoint, events)
	if err != nil {
		return err
	}
	again := make([]againDelivery, len(events))
	for i, e := range events {
		last := earlier[e.Event]
		again[i] = againDelivery{
			event:     e.Event,
			endpoint:  to.Endpoint,
			eventType: e.Type,
			replayOf:  last.ID,
			first:     last.FirstID,
		}
		if to.Ordering == "strict" || e.Key != "" {
			again[i].orderKey = db.OrZero(orderKey(to.Ordering, &e.Key))
		}
		if e.Deliver.After(now) {
			again[i].due = e.Deliver
		}
	}
	_, err = sendAgain(ctx, q, to.Tenant, again, nil)
	return err
}

// earlierDeliveries are the last deliveries of events to an endpoint, by event.
func earlierDeliveries(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, events []Backlog) (map[id.UUID]sql.DeliveriesToEndpointRow, error) {
	p := sql.DeliveriesToEndpointParams{TenantID: tenant, EndpointID: endpointID}
	for _, e := range events {
		p.Events = append(p.Events, e.Event)
		p.Created = append(p.Created, e.Event.Time())
	}
	p.Since = slices.MinFunc(p.Created, time.Time.Compare).Add(-db.ClockSkew)
	rows, err := q.DeliveriesToEndpoint(ctx, p)
	found := make(map[id.UUID]sql.DeliveriesToEndpointRow, len(rows))
	for _, r := range rows {
		found[r.EventID] = r
	}
	return found, err
}

// sendAgain stores new deliveries of old events, in their order, enters them in the ledger and wakes their lanes.
func sendAgain(ctx context.Context, q *sql.Queries, tenant id.UUID, again []againDelivery, job *id.UUID) ([]id.UUID, error) {
	d := sql.InsertReplaysParams{TenantID: tenant, JobID: job}
	row := sql.QueueReplaysParams{TenantID: tenant}
	totals := ledger.Totals{}
	var lanes []id.UUID
	for _, a := range again {
		deliveryID := db.NewID()
		state, due := queue.Ready, time.Unix(0, 0)
		if !a.due.IsZero() {
			state, due = queue.Deferred, a.due
		} else if a.orderKey != "" {
			state = queue.Blocked
		}
		d.Created = append(d.Created, deliveryID.Time())
		d.Ids = append(d.Ids, deliveryID)
		d.Events = append(d.Events, a.event)
		d.Endpoints = append(d.Endpoints, a.endpoint)
		d.Types = append(d.Types, a.eventType)
		d.ReplaysOf = append(d.ReplaysOf, a.replayOf)
		if a.first.IsZero() {
			a.first = deliveryID // it starts the chain
		}
		d.Firsts = append(d.Firsts, a.first)
		row.Firsts = append(row.Firsts, a.first)
		row.Deliveries = append(row.Deliveries, deliveryID)
		row.Events = append(row.Events, a.event)
		row.Endpoints = append(row.Endpoints, a.endpoint)
		row.States = append(row.States, state)
		row.OrderKeys = append(row.OrderKeys, a.orderKey)
		row.Due = append(row.Due, due)
		totals.At(tenant, deliveryID.Time()).Accepted++
		lanes = append(lanes, a.endpoint)
	}
	if err := q.InsertReplays(ctx, d); err != nil {
		return nil, err
	}
	if err := q.QueueReplays(ctx, row); err != nil {
		return nil, err
	}
	if err := noteReplays(ctx, q, tenant, job, d.ReplaysOf, d.Ids); err != nil {
		return nil, err
	}
	if err := ledger.Enter(ctx, q, totals); err != nil {
		return nil, err
	}
	slices.SortFunc(lanes, id.UUID.Compare)
	// The new rows are at the end of their lanes, as after a commit of events, so no lane's revision changes.
	return d.Ids, q.NotifyWake(ctx, db.WakePayload(slices.Compact(lanes), false))
}
