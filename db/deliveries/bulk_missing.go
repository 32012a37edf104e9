package deliveries

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/endpoint"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/routing"
	"posthorn/domain/show"
)

// missing finds past events that an endpoint never got but matches now: the endpoint is new, or its subscription is
// wider than before.
type missing struct {
	endpoint id.UUID
	ordering string
	route    routing.Route
	loose    routing.Route // the same route without the filter, which needs the data
	deleted  bool
}

// readMissing reads which events the endpoint matches now. With lock the result holds until the transaction ends, and
// no other transaction finds the same events missing in that time.
func (w *bulkWork) readMissing(ctx context.Context, lock bool) (m missing, err error) {
	if m.endpoint, err = id.Endpoint.Parse(w.filter.Endpoint); err != nil {
		return m, err
	}
	var e sql.Endpoint
	if lock {
		e, err = w.q.LockEndpoint(ctx, w.tenant, m.endpoint)
	} else {
		e, err = w.q.GetEndpoint(ctx, w.tenant, m.endpoint)
	}
	if db.IsNoRows(err) {
		m.deleted = true
		return m, nil
	} else if err != nil {
		return m, err
	}
	if endpoint.Kind(e.Kind).Pulls() {
		return m, endpoint.ErrFeed
	}
	rule := routing.Rule{EventTypes: e.EventTypes, Channels: e.Channels, Status: endpoint.Active}
	if e.PayloadVersion != nil {
		rule.Version = *e.PayloadVersion
	}
	m.ordering, m.loose = e.Ordering, routing.Compile(rule)
	if e.Filter != nil {
		rule.Filter = *e.Filter
	}
	m.route = routing.Compile(rule)
	return m, nil
}

// planMissing checks the next events. Events that the endpoint has, or does not match, are not part of the job.
func (w *bulkWork) planMissing(ctx context.Context, after id.UUID, most int, lock bool) (bulkPart, error) {
	part := newPart(after)
	m, err := w.readMissing(ctx, lock)
	if err != nil {
		return part, err
	}
	if m.deleted {
		part.end, part.failure = true, "The endpoint was deleted."
		return part, nil
	}
	rows, err := w.scanEvents(ctx, &part, most)
	if err != nil {
		return part, err
	}
	wanted := make([]show.Event, 0, len(rows))
	for _, e := range rows {
		if takes, _, _ := m.loose.Takes(filter.NewInput(e.Type, nil, e.Channels), e.Version); takes && e.Type != endpoint.TestType {
			wanted = append(wanted, e)
		}
	}
	if wanted, err = w.never(ctx, m.endpoint, wanted); err != nil {
		return part, err
	}
	return part, w.readData(ctx, &part, wanted, func(e show.Event, data sql.EventsDataRow) bool {
		if takes, _, _ := m.route.Takes(filter.NewInput(e.Type, data.Data, e.Channels), e.Version); !takes {
			return true
		}
		if w.sample && len(part.again) == 1 {
			return false
		}
		again := againDelivery{event: e.ID, endpoint: m.endpoint, eventType: e.Type, due: e.DeliverAt}
		if key := orderKey(m.ordering, data.Key); key != nil {
			again.orderKey = *key
		}
		part.again = append(part.again, again)
		return true
	})
}

// never leaves out the events of which an endpoint has or had a delivery.
func (w *bulkWork) never(ctx context.Context, ep id.UUID, events []show.Event) ([]show.Event, error) {
	if len(events) == 0 {
		return nil, nil
	}
	ids := make([]id.UUID, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	had, err := w.q.DeliveredEvents(ctx, sql.DeliveredEventsParams{
		TenantID:   w.tenant,
		Events:     ids,
		Created:    moments(ids),
		EndpointID: ep,
		Since:      events[0].CreatedAt.Add(-db.ClockSkew),
	})
	if err != nil {
		return nil, err
	}
	known := make(map[id.UUID]bool, len(had))
	for _, deliveryID := range had {
		known[deliveryID] = true
	}
	left := events[:0]
	for _, e := range events {
		if !known[e.ID] {
			left = append(left, e)
		}
	}
	return left, nil
}

// dataBudget bounds the payloads that one chunk reads, in bytes.
const dataBudget = 8 << 20

// readData reads the data of events, in order, and passes each to take, until take returns false. It counts expunged
// ones as left alone. If the data exceeds dataBudget, the chunk ends there.
func (w *bulkWork) readData(ctx context.Context, part *bulkPart, events []show.Event, take func(show.Event, sql.EventsDataRow) bool) error {
	ids := make([]id.UUID, len(events))
	of := make(map[id.UUID]show.Event, len(events))
	for i, e := range events {
		ids[i], of[e.ID] = e.ID, e
	}
	budget, last := int64(dataBudget), id.UUID{}
	for _, day := range splitByDay(ids) {
		rows, err := w.q.EventsData(ctx, sql.EventsDataParams{
			Budget:   budget,
			Ids:      day.ids,
			Created:  day.created,
			TenantID: w.tenant,
			First:    day.first,
			Last:     day.last,
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			budget -= int64(len(r.Data))
			switch {
			case r.Cut, budget < 0 && !last.IsZero():
				part.position, part.end = last, false
				return nil
			case r.Expunged && w.kind != bulk.Expunge:
				part.skip(bulk.SkipExpunged)
			case !r.Expunged && !take(of[r.ID], r):
				part.position, part.end = last, false
				return nil
			}
			last = r.ID
		}
	}
	return nil
}

// scanEvents reads the next events that the filter's type, channel and times select, oldest first, and records how far
// it got.
func (w *bulkWork) scanEvents(ctx context.Context, part *bulkPart, most int) ([]show.Event, error) {
	since, until := w.floor, w.ceiling
	if w.filter.Since != nil && w.filter.Since.After(since) {
		since = *w.filter.Since
	}
	if w.filter.Until != nil && w.filter.Until.Before(until) {
		until = *w.filter.Until
	}
	whole := window{low: id.FirstAt(since), high: id.FirstAt(until)}
	whole.beyond(part.position, true)
	for slice := firstSlice; ; slice *= scanGrowth {
		if whole.low.Compare(whole.high) >= 0 {
			part.end = true
			return nil, nil
		}
		look := whole
		if slice <= lastSlice {
			look = whole.slice(slice, time.Time{}, true)
		}
		found, err := w.q.ScanEvents(ctx, sql.ScanEventsParams{
			Type:     w.filter.Type,
			Channel:  w.filter.Channel,
			TenantID: w.tenant,
			LowAt:    look.low.Time(),
			HighAt:   look.high.Time(),
			Low:      look.low,
			High:     look.high,
			Scan:     int32(most),
			Limit:    int32(most),
		})
		if err != nil {
			return nil, err
		}
		rows, err := events.ReadAll(ctx, w.q, w.tenant, found.Ids, false)
		if err != nil {
			return nil, err
		}
		if found.Scanned == int32(most) {
			part.position = found.Reached
			return rows, nil
		}
		part.position, part.end = look.high, look == whole
		if len(rows) > 0 || part.end {
			return rows, nil
		}
		whole.low = look.high
	}
}

// overMissing makes a job read the events of its last seconds twice: an event with an id from before the job can have
// been stored after the first read.
func (w *bulkWork) overMissing(job *sql.BulkJob) (over bool, rest time.Duration) {
	safe := job.CreatedAt.Add(lateCommits)
	if w.filter.Until != nil && w.filter.Until.Before(job.CreatedAt.Add(-lateCommits)) {
		return true, 0
	}
	if rest = time.Until(safe); rest <= 0 {
		return true, 0
	}
	if again := id.FirstAt(job.CreatedAt.Add(-lateCommits)); again.Compare(job.Position) < 0 {
		job.Position = again
	}
	return false, rest
}
