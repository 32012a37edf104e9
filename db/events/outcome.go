package events

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/routing"
	"posthorn/domain/show"
)

// addOutcomes reads what became of events. An event of another tenant than the transaction's gets nothing.
func addOutcomes(ctx context.Context, q *sql.Queries, events []show.Event) error {
	if len(events) == 0 {
		return nil
	}
	ask := sql.OutcomesOfEventsParams{Since: events[0].ID.Time()}
	place := make(map[id.UUID]int, len(events))
	for i, e := range events {
		at := e.ID.Time()
		ask.Tenants = append(ask.Tenants, e.TenantID)
		ask.Events = append(ask.Events, e.ID)
		ask.Created = append(ask.Created, at)
		if at.Before(ask.Since) {
			ask.Since = at
		}
		place[e.ID] = i
	}
	ask.Since = ask.Since.Add(-db.ClockSkew)
	rows, err := q.OutcomesOfEvents(ctx, ask)
	for _, r := range rows {
		events[place[r.ID]].Outcome = &show.Outcome{
			Waiting:   int(r.Waiting),
			Delivered: int(r.Delivered),
			Failed:    int(r.Failed),
			Canceled:  int(r.Canceled),
		}
	}
	if err != nil {
		return err
	}
	return addFeeds(ctx, q, events)
}

// addFeeds counts the feeds that have an event without deliveries. A feed is a filter over all events, so its filter of
// now decides. A tenant without feeds costs nothing.
func addFeeds(ctx context.Context, q *sql.Queries, events []show.Event) error {
	alone := map[id.UUID][]*show.Event{} // by tenant
	for i := range events {
		if e := &events[i]; e.Outcome != nil && e.Outcome.Is(show.MatchedNothing) {
			alone[e.TenantID] = append(alone[e.TenantID], e)
		}
	}
	if len(alone) == 0 {
		return nil
	}
	rows, err := q.FeedRules(ctx, slices.Collect(maps.Keys(alone)))
	if err != nil {
		return err
	}
	feeds := map[id.UUID][]routing.Route{}
	octets := map[id.UUID]int32{} // of the events' data that a filter needs
	for _, r := range rows {
		feeds[r.TenantID] = append(feeds[r.TenantID], routing.Compile(routing.Rule{
			EventTypes: r.EventTypes,
			Channels:   r.Channels,
			Filter:     r.Filter,
			Status:     endpoint.Active,
			Version:    r.PayloadVersion,
		}))
		if r.Filter != "" {
			octets[r.TenantID] = math.MaxInt32
		}
	}
	for tenant, routes := range feeds {
		for part := range slices.Chunk(alone[tenant], feedChunk) {
			p := sql.EventsByIDParams{TenantID: tenant, Octets: octets[tenant]}
			if err := countFeeds(ctx, q, p, routes, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// feedChunk is how many events are read together to compare them with the filters of feeds.
const feedChunk = 20

func countFeeds(ctx context.Context, q *sql.Queries, p sql.EventsByIDParams, feeds []routing.Route, events []*show.Event) error {
	byID := make(map[id.UUID]*show.Event, len(events))
	for _, e := range events {
		byID[e.ID] = e
		p.Ids, p.Created = append(p.Ids, e.ID), append(p.Created, e.ID.Time())
	}
	p.First, p.Last = slices.MinFunc(p.Created, time.Time.Compare), slices.MaxFunc(p.Created, time.Time.Compare)
	rows, err := q.EventsByID(ctx, p)
	for _, row := range rows {
		in := filter.NewInput(row.Type, row.Data, row.Channels)
		for i := range feeds {
			if matched, _, _ := feeds[i].Takes(in, db.TextOf(row.Version)); matched {
				byID[row.ID].Outcome.Feeds++
			}
		}
	}
	return err
}

// WithOutcomes adds to events what became of them, and leaves out those with another outcome than the filter selects.
func WithOutcomes(ctx context.Context, q *sql.Queries, events []show.Event, filter string) ([]show.Event, error) {
	err := addOutcomes(ctx, q, events)
	return slices.DeleteFunc(events, func(e show.Event) bool { return e.Outcome == nil || !e.Outcome.Is(filter) }), err
}

// scan reads the ids of a list of events.
type scan struct {
	q      *sql.Queries
	tenant id.UUID
	f      Filter
	floor  time.Time // the oldest that can be shown
	now    time.Time
}

// outcomeScan is how many events of a page are compared with a filter by outcome together.
const outcomeScan = 500

// page reads a page of events. Filtered by outcome, it reads what became of each event that the other filters select,
// and ends when enough were examined.
func (s scan) page(ctx context.Context, r show.Range) (page show.Page[show.Event], err error) {
	want, ask := show.Page[id.UUID]{}, r
	if s.f.Outcome != show.AnyOutcome {
		ask.Limit = outcomeScan
	}
	for read := 0; ; {
		some, scanned, err := s.ids(ctx, ask)
		if err != nil {
			return page, err
		}
		if err := s.ofOutcome(ctx, &some); err != nil {
			return page, err
		}
		want.Rows, want.Next = append(want.Rows, some.Rows...), some.Next
		if read += scanned; some.Next == nil || len(want.Rows) > r.Limit || read >= maxScan || ask.Limit == r.Limit {
			break
		}
		ask.After = some.Next
	}
	if len(want.Rows) > r.Limit {
		want = show.CutByID(want.Rows, r.Limit, func(eventID id.UUID) id.UUID { return eventID })
	}
	octets := int32(0)
	if s.f.Values {
		octets = event.ValueIn
	}
	if page.Rows, err = readAll(ctx, s.q, s.tenant, want.Rows, octets); err == nil {
		err = addOutcomes(ctx, s.q, page.Rows)
	}
	page.Next = want.Next
	return page, err
}

// ofOutcome leaves out the events of another outcome than the filter selects.
func (s scan) ofOutcome(ctx context.Context, ids *show.Page[id.UUID]) error {
	if s.f.Outcome == show.AnyOutcome {
		return nil
	}
	events := make([]show.Event, len(ids.Rows))
	for i, eventID := range ids.Rows {
		events[i] = show.Event{ID: eventID, TenantID: s.tenant}
	}
	events, err := WithOutcomes(ctx, s.q, events, s.f.Outcome)
	ids.Rows = ids.Rows[:0]
	for _, e := range events {
		ids.Rows = append(ids.Rows, e.ID)
	}
	return err
}

// ids reads the ids of a page, and says how many rows were examined for it.
func (s scan) ids(ctx context.Context, r show.Range) (page show.Page[id.UUID], scanned int, err error) {
	rows := int32(r.Limit + 1)
	if s.f.Outcome == show.AnyOutcome && (s.f.Type != "" || s.f.Channel != "" || s.f.TraceID != "") {
		rows = maxScan
	}
	low, high := r.Between(s.floor, s.now)
	var found sql.ScanEventsRow
	if s.f.ExternalID == "" {
		found, err = s.q.ScanEvents(ctx, sql.ScanEventsParams{
			Newest:   !r.Ascending,
			TenantID: s.tenant,
			Low:      low,
			LowAt:    low.Time(),
			High:     high,
			HighAt:   high.Time(),
			Type:     s.f.Type,
			Channel:  s.f.Channel,
			TraceID:  s.f.TraceID,
			Scan:     rows,
			Limit:    int32(r.Limit + 1),
		})
	} else {
		found.Ids, err = s.q.EventsOfExternalID(ctx, sql.EventsOfExternalIDParams{
			Newest:     !r.Ascending,
			TenantID:   s.tenant,
			ExternalID: s.f.ExternalID,
			Low:        low,
			LowAt:      low.Time(),
			High:       high,
			HighAt:     high.Time(),
			Type:       s.f.Type,
			Channel:    s.f.Channel,
			TraceID:    s.f.TraceID,
			Limit:      int32(r.Limit + 1),
		})
	}
	page = show.CutByID(found.Ids, r.Limit, func(eventID id.UUID) id.UUID { return eventID })
	if page.Next == nil && found.Scanned == rows {
		page.Next = found.Reached[:]
	}
	return page, int(found.Scanned), err
}
