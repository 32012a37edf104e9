// Package events reads a tenant's events, how they were routed, and the catalog of their types.
package events

import (
	"context"
	"math"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/event"
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
	Outcome    string // one of show.Outcomes
	Values     bool   // with the first value of each event's data: the caller has permission to read the data
}

// maxScan bounds how many rows a filtered page examines.
const maxScan = 10_000

// List returns a page of a tenant's events. With a rare filter, a page ends when enough rows were examined. It changes
// the planner settings of its transaction, so call it last.
func List(ctx context.Context, q *sql.Queries, tenant id.UUID, f Filter, r show.Range, now time.Time) (show.Page[show.Event], error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return show.Page[show.Event]{}, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return show.Page[show.Event]{}, err
	}
	return scan{q: q, tenant: tenant, f: f, floor: floor, now: now}.page(ctx, r)
}

// Read reads an event within the tenant's retention, with its data.
func Read(ctx context.Context, q *sql.Queries, tenant, eventID id.UUID) (show.Event, error) {
	row, err := ReadRow(ctx, q, tenant, eventID)
	if err != nil {
		return show.Event{}, err
	}
	one := []show.Event{Of(row)}
	err = addOutcomes(ctx, q, one)
	return one[0], err
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
	octets := int32(0)
	if data {
		octets = math.MaxInt32
	}
	return readAll(ctx, q, tenant, ids, octets)
}

// readAll is ReadAll with the first octets of the data.
func readAll(ctx context.Context, q *sql.Queries, tenant id.UUID, ids []id.UUID, octets int32) ([]show.Event, error) {
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
		Octets:   octets,
	})
	events := make([]show.Event, len(rows))
	for i, row := range rows {
		events[i] = Of(sql.Event(row))
		events[i].Value = event.FirstValue(row.Data)
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
		ExpiresAt:   db.OrZero(row.ExpiresAt),
		DeliverAt:   db.OrZero(row.DeliverAt),
		Data:        row.Data,
	}
}
