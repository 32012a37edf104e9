// Package events reads a tenant's events, how they were routed, and the catalog of their types.
package events

import (
	"context"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/trace"
)

// Filter narrows a list of events. Empty texts match every event.
type Filter struct {
	Type       string // or all types below a prefix: order.*
	Channel    string
	TraceID    string
	ExternalID string // the producer's own id
}

// maxScan bounds how many rows a filtered page examines.
const maxScan = 10_000

// List returns a page of a tenant's events. With a rare filter, a page ends when enough rows were examined. It changes
// the planner settings of its transaction, so call it last.
func List(ctx context.Context, q *sql.Queries, tenant id.UUID, f Filter, r show.Range, now time.Time) (show.Page[show.Event], error) {
	var none show.Page[show.Event]
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return none, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return none, err
	}
	scan := int32(r.Limit + 1)
	if f.Type != "" || f.Channel != "" || f.TraceID != "" {
		scan = maxScan
	}
	low, high := r.Between(floor, now)
	found := sql.ScanEventsRow{}
	if f.ExternalID == "" {
		found, err = q.ScanEvents(ctx, sql.ScanEventsParams{
			Newest:   !r.Ascending,
			TenantID: tenant,
			Low:      low,
			LowAt:    low.Time(),
			High:     high,
			HighAt:   high.Time(),
			Type:     f.Type,
			Channel:  f.Channel,
			TraceID:  f.TraceID,
			Scan:     scan,
			Limit:    int32(r.Limit + 1),
		})
	} else {
		found.Ids, err = q.EventsOfExternalID(ctx, sql.EventsOfExternalIDParams{
			Newest:     !r.Ascending,
			TenantID:   tenant,
			ExternalID: f.ExternalID,
			Low:        low,
			LowAt:      low.Time(),
			High:       high,
			HighAt:     high.Time(),
			Type:       f.Type,
			Channel:    f.Channel,
			TraceID:    f.TraceID,
			Limit:      int32(r.Limit + 1),
		})
	}
	if err != nil {
		return none, err
	}
	page := show.CutByID(found.Ids, r.Limit, func(eventID id.UUID) id.UUID { return eventID })
	if page.Next == nil && found.Scanned == scan {
		page.Next = found.Reached[:]
	}
	rows, err := ReadAll(ctx, q, tenant, page.Rows, false)
	return show.Page[show.Event]{Rows: rows, Next: page.Next}, err
}

// Read reads an event within the tenant's retention, with its data.
func Read(ctx context.Context, q *sql.Queries, tenant, eventID id.UUID) (show.Event, error) {
	row, err := ReadRow(ctx, q, tenant, eventID)
	if err != nil {
		return show.Event{}, err
	}
	return Of(row), nil
}

// ReadRow is Read for who renders the event's request.
func ReadRow(ctx context.Context, q *sql.Queries, tenant, eventID id.UUID) (row sql.Event, err error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return row, err
	}
	if eventID.Time().Before(floor) {
		return row, fault.ErrNotFound
	}
	return q.GetEvent(ctx, sql.GetEventParams{TenantID: tenant, CreatedAt: eventID.Time(), ID: eventID})
}

// ReadAll reads events in the order of their ids, with or without their data. Those that do not exist are left out.
func ReadAll(ctx context.Context, q *sql.Queries, tenant id.UUID, ids []id.UUID, data bool) ([]show.Event, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	created := make([]time.Time, len(ids))
	place := make(map[id.UUID]int, len(ids))
	for i, one := range ids {
		created[i] = one.Time()
		place[one] = i
	}
	rows, err := q.EventsByID(ctx, sql.EventsByIDParams{
		TenantID: tenant,
		Ids:      ids,
		Created:  created,
		First:    slices.MinFunc(created, time.Time.Compare),
		Last:     slices.MaxFunc(created, time.Time.Compare),
		WithData: data,
	})
	events := make([]show.Event, len(rows))
	for i, row := range rows {
		events[i] = Of(sql.Event(row))
	}
	slices.SortFunc(events, func(a, b show.Event) int { return place[a.ID] - place[b.ID] })
	return events, err
}

// Of is an event by its row.
func Of(row sql.Event) show.Event {
	return show.Event{
		ID:          row.ID,
		TenantID:    row.TenantID,
		Type:        row.Type,
		Key:         db.TextOf(row.Key),
		Channels:    row.Channels,
		Version:     db.TextOf(row.Version),
		ExternalID:  db.TextOf(row.ExternalID),
		Unsent:      row.ExternalIDUnsent != nil,
		ContentType: db.TextOf(row.ContentType),
		TraceID:     trace.ID(row.Traceparent),
		CreatedAt:   row.CreatedAt,
		OccurredAt:  db.OrZero(row.OccurredAt),
		DeliverAt:   db.OrZero(row.DeliverAt),
		Data:        row.Data,
	}
}
