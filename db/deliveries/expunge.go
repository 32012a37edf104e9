package deliveries

import (
	"context"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/db/ledger"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// Expunged is the result of destroying the data of events.
type Expunged struct {
	Events   []id.UUID // those that had data
	Canceled int       // deliveries that were waiting
	Cleared  int       // attempts whose responses were destroyed too
	// Stored are days in storage whose files still have some of it. Nobody reads it from there; a worker writes them
	// again.
	Stored []time.Time
}

var errExpungeMoving = &fault.Error{
	Kind:       fault.Unavailable,
	Code:       "tenant_moving",
	RetryAfter: 60,
	Detail:     "This tenant is moving to another server, and its data can be expunged when it is there. Send the same request again in some minutes.",
}

// ExpungeEvent is ExpungeEvents of one event, with an entry in the audit log if it destroyed anything. An unknown event
// is fault.ErrNotFound.
func ExpungeEvent(ctx context.Context, q *sql.Queries, tenant, eventID id.UUID, reason string, by db.Author) (Expunged, error) {
	exists, err := q.EventExists(ctx, sql.EventExistsParams{TenantID: tenant, CreatedAt: eventID.Time(), ID: eventID})
	if err == nil && !exists {
		err = fault.ErrNotFound
	}
	if err != nil {
		return Expunged{}, err
	}
	done, err := ExpungeEvents(ctx, q, tenant, []id.UUID{eventID})
	if err != nil || len(done.Events) == 0 {
		return done, err
	}
	return done, db.Audit(ctx, q, by, db.Audited{
		Tenant:  &tenant,
		Action:  "event.expunge",
		Kind:    "event",
		Object:  id.Event.Format(eventID),
		Reason:  reason,
		Details: map[string]int{"canceled": done.Canceled, "answers": done.Cleared},
	})
}

// ExpungeRequest is who had the data of one event destroyed, and when.
type ExpungeRequest struct {
	By db.Author // with the reason
	At time.Time
}

// ReadExpunge reads the request to destroy the data of one event alone, if there was one.
func ReadExpunge(ctx context.Context, q *sql.Queries, tenant, eventID id.UUID) (r ExpungeRequest, found bool, err error) {
	row, err := q.ExpungeSaid(ctx, &tenant, id.Event.Format(eventID))
	if db.IsMissing(err) {
		return r, false, nil
	}
	return ExpungeRequest{
		By: db.Author{Kind: row.ActorKind, ID: row.ActorID, Reason: row.Reason},
		At: row.At,
	}, true, err
}

// ExpungeEvents destroys the data of events permanently, and the responses of receivers. The rows remain: an event, its
// deliveries and attempts can still be listed with their times and outcomes. Waiting deliveries are canceled, visibly.
// What days in storage have of the events is destroyed too: nobody reads it after the transaction, and a worker writes
// the files again. While the tenant moves, it fails and destroys nothing: the other home would keep responses that are
// copied.
func ExpungeEvents(ctx context.Context, q *sql.Queries, tenant id.UUID, events []id.UUID) (out Expunged, err error) {
	if moving, err := q.IsMovingOut(ctx, tenant); err != nil {
		return out, err
	} else if moving {
		return out, errExpungeMoving
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return out, err
	}
	held, err := days.Share(ctx, q, tenant, events)
	if err != nil {
		return out, err
	}
	slices.SortFunc(events, id.UUID.Compare)
	totals := ledger.Totals{}
	for _, day := range splitByDay(slices.Compact(events)) {
		ids, err := q.DestroyData(ctx, sql.DestroyDataParams{
			Ids:      day.ids,
			Created:  day.created,
			TenantID: tenant,
			First:    day.first,
			Last:     day.last,
		})
		if err != nil {
			return out, err
		}
		out.Events = append(out.Events, ids...)
		for _, deliveryID := range ids {
			totals.At(tenant, deliveryID.Time()).Expunged++
		}
	}
	if len(out.Events) == 0 {
		return out, nil
	}
	slices.SortFunc(out.Events, id.UUID.Compare)
	since := out.Events[0].Time().Add(-db.ClockSkew)
	rows, err := q.DeliveriesOfEvents(ctx, sql.DeliveriesOfEventsParams{
		TenantID: tenant,
		Events:   out.Events,
		Created:  moments(out.Events),
		Since:    since,
	})
	if err != nil {
		return out, err
	}
	if out.Canceled, err = cancelExpunged(ctx, q, tenant, rows); err != nil {
		return out, err
	}
	ids := make([]id.UUID, len(rows))
	for i, d := range rows {
		ids[i] = d.ID
	}
	cleared, err := q.ExpungeAttempts(ctx, sql.ExpungeAttemptsParams{TenantID: tenant, Deliveries: ids, Since: since})
	if err != nil {
		return out, err
	}
	out.Cleared = int(cleared)
	if err := forgetLastAnswers(ctx, q, tenant, rows); err != nil {
		return out, err
	}
	if err := q.CheckLargePayloadsNow(ctx, tenant, out.Events); err != nil {
		return out, err
	}
	if err := forgetBodies(ctx, q, out.Events); err != nil {
		return out, err
	}
	if err := ledger.Enter(ctx, q, totals); err != nil {
		return out, err
	}
	// Last, so that it sees days that left the tables in between.
	out.Stored, err = days.Expunge(ctx, q, tenant, out.Events, held)
	return out, err
}

// forgetLastAnswers clears the other copies of responses, which the endpoints' rows hold.
func forgetLastAnswers(ctx context.Context, q *sql.Queries, tenant id.UUID, rows []sql.DeliveriesOfEventsRow) error {
	endpoints := make([]id.UUID, len(rows))
	for i, d := range rows {
		endpoints[i] = d.EndpointID
	}
	slices.SortFunc(endpoints, id.UUID.Compare)
	endpoints = slices.Compact(endpoints)
	if err := q.ClearInboxes(ctx, tenant, endpoints); err != nil {
		return err
	}
	if err := q.ForgetLastAnswers(ctx, tenant, endpoints); err != nil {
		return err
	}
	return q.ForgetAnswersInNotices(ctx, tenant, endpoints)
}

// cancelExpunged cancels the waiting deliveries. It waits for rows that the recorder has locked. If the two deadlock
// and the database cancels this transaction, it starts over.
func cancelExpunged(ctx context.Context, q *sql.Queries, tenant id.UUID, rows []sql.DeliveriesOfEventsRow) (int, error) {
	var waiting []id.UUID
	for _, d := range rows {
		if !d.Status.Terminal() {
			waiting = append(waiting, d.ID)
		}
	}
	locked, err := q.LockManyQueued(ctx, tenant, waiting)
	if err != nil || len(locked) == 0 {
		return 0, err
	}
	queued := make(map[id.UUID]sql.Queue, len(locked))
	ids, lanes := make([]id.UUID, len(locked)), make([]id.UUID, len(locked))
	for i, r := range locked {
		queued[r.DeliveryID], ids[i], lanes[i] = r, r.DeliveryID, r.EndpointID
	}
	if err := cancelMany(ctx, q, tenant, ids, queued, delivery.Expunged); err != nil {
		return 0, err
	}
	slices.SortFunc(lanes, id.UUID.Compare)
	return len(ids), wakeLanes(ctx, q, tenant, slices.Compact(lanes))
}

// idempotencyLife is the longest life of an idempotency key, with a margin.
const idempotencyLife = 25 * time.Hour

// forgetBodies destroys the hashes of a young event's request body.
func forgetBodies(ctx context.Context, q *sql.Queries, events []id.UUID) error {
	var young []id.UUID
	for _, eventID := range events {
		if time.Since(eventID.Time()) < idempotencyLife {
			young = append(young, eventID)
		}
	}
	if len(young) == 0 {
		return nil
	}
	return q.ForgetBodies(ctx, young)
}

// expungeMost is how many events one chunk expunges: each can have many deliveries.
const expungeMost = 100

// planExpunge finds the next events with matching data, whatever the tenant's retention hides.
func (w *bulkWork) planExpunge(ctx context.Context, after id.UUID, most int) (bulkPart, error) {
	part := newPart(after)
	match, err := filter.Compile(w.filter.Match)
	if err != nil {
		return part, err
	}
	if match == nil {
		part.end, part.failure = true, "The job doesn't say which data to expunge."
		return part, nil
	}
	w.floor = time.Unix(0, 0)
	events, err := w.scanEvents(ctx, &part, most)
	if err != nil {
		return part, err
	}
	return part, w.readData(ctx, &part, events, func(e show.Event, data sql.EventsDataRow) bool {
		matches, err := match.Match(filter.NewInput(e.Type, data.Data, e.Channels))
		if err != nil || !matches {
			return true
		}
		if len(part.events) == expungeMost {
			return false
		}
		part.events = append(part.events, e.ID)
		return true
	})
}

// applyExpunge destroys the data of the planned events. An event that another transaction has expunged in between
// counts as left alone.
func (w *bulkWork) applyExpunge(ctx context.Context, part *bulkPart) error {
	found := int64(len(part.events))
	done, err := ExpungeEvents(ctx, w.q, w.tenant, part.events)
	if err != nil {
		return err
	}
	part.events = done.Events
	if rest := found - int64(len(done.Events)); rest > 0 {
		part.skipped[bulk.SkipExpunged] += rest
	}
	return nil
}
