package events

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// The bounds of a search: how long it lasts, how long one of its statements can take, and how many events each reads. A
// tenant's events can be large, so the first statement reads few events, and the next ones read more while they are
// fast.
const (
	searchTime      = 1500 * time.Millisecond
	searchStatement = 3 * time.Second
	searchFirst     = 200
	searchLimit     = 10_000
	searchQuick     = 150 * time.Millisecond
	searchOpened    = 20 // how many events have their data read together
)

// Search asks for events by a text.
type Search struct {
	event.Query
	InData bool    // the caller has permission to read the data
	Before id.UUID // the search continues below this event; zero: from the newest
	Limit  int
}

// Searched is the result of a search. Reached is the oldest event that it read; zero if it read all.
type Searched struct {
	Found   []show.FoundEvent
	Reached id.UUID
	Looked  int
}

// Find searches a tenant's events, newest first, until it has found enough or its time is over. Each statement
// has a short transaction of its own.
func Find(ctx context.Context, d *db.DB, tenant id.UUID, s Search, now time.Time) (out Searched, err error) {
	started, scan := time.Now(), int32(searchFirst)
	high := s.Before
	for {
		asked := time.Now()
		var page sql.SearchEventsRow
		err = d.Tenant(ctx, tenant, func(q *sql.Queries) error {
			if page, err = s.look(ctx, q, tenant, high, scan, now); err != nil || len(page.Ids) == 0 {
				return err
			}
			var found []show.FoundEvent
			if found, err = s.open(ctx, q, tenant, page.Ids); err == nil {
				out.Found = append(out.Found, found...)
			}
			return err
		})
		if canceled(err) && !high.IsZero() && high != s.Before {
			return out, nil // the earlier statements' results are returned
		}
		if err != nil {
			return out, err
		}
		out.Looked += int(page.Scanned)
		if page.Scanned < scan {
			out.Reached = id.UUID{}
			return s.cut(out), nil
		}
		out.Reached, high = page.Reached, page.Reached
		if len(out.Found) >= s.Limit || time.Since(started) > searchTime {
			return s.cut(out), nil
		}
		if time.Since(asked) < searchQuick {
			scan = min(scan*4, searchLimit)
		}
	}
}

// canceled reports whether a statement exceeded its time limit.
func canceled(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "57014"
}

// cut keeps as many results as were asked for; the next search continues below the last of them.
func (s Search) cut(out Searched) Searched {
	if len(out.Found) > s.Limit {
		out.Found = out.Found[:s.Limit]
		out.Reached = out.Found[s.Limit-1].ID
	}
	return out
}

// look finds candidates among the next events.
func (s Search) look(
	ctx context.Context,
	q *sql.Queries,
	tenant, high id.UUID,
	scan int32,
	now time.Time,
) (page sql.SearchEventsRow, err error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return page, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return page, err
	}
	if err := q.BoundStatements(ctx, int32(searchStatement.Milliseconds())); err != nil {
		return page, err
	}
	ask := sql.SearchEventsParams{
		TenantID: tenant,
		LowAt:    floor,
		HighAt:   now.Add(time.Minute),
		High:     id.Last,
		Text:     s.Text,
		InData:   s.InData,
		Needles:  s.Needles(),
		Certain:  s.Certain(),
		Scan:     scan,
	}
	if !high.IsZero() {
		ask.High, ask.HighAt = high, high.Time()
	}
	return q.SearchEvents(ctx, ask)
}

// open reads candidates and keeps those that contain the text.
func (s Search) open(ctx context.Context, q *sql.Queries, tenant id.UUID, ids []id.UUID) (out []show.FoundEvent, err error) {
	for some := range slices.Chunk(ids, searchOpened) {
		events, err := ReadAll(ctx, q, tenant, some, s.InData)
		if err != nil {
			return out, err
		}
		var where []string
		events = slices.DeleteFunc(events, func(e show.Event) bool {
			in, found := s.find(e)
			if found {
				where = append(where, in)
			}
			return !found
		})
		if err := addOutcomes(ctx, q, events); err != nil {
			return out, err
		}
		for i, e := range events {
			e.Data = nil
			out = append(out, show.FoundEvent{Event: e, Where: where[i]})
		}
		if len(out) > s.Limit {
			return out, nil
		}
	}
	return out, nil
}

// find says where an event has the text.
func (s Search) find(e show.Event) (where string, found bool) {
	switch {
	case e.Type == s.Text:
		return "event type", true
	case e.Key == s.Text:
		return "ordering key", true
	case e.TraceID == s.Text:
		return "trace id", true
	case !s.InData:
		return "", false
	}
	if where, found = s.In(e.Data); where != "" {
		where = "." + where
	}
	return "data" + where, found
}

// maxOfID bounds how many events with the same producer's id a search shows.
const maxOfID = 10

// ByID returns the events with a producer's id, newest first, and the event of an idempotency key, as long as the key
// is kept.
func ByID(ctx context.Context, q *sql.Queries, tenant id.UUID, text string, now time.Time) (out []show.FoundEvent, err error) {
	if event.CheckUnsentID(text) == nil {
		own, err := List(ctx, q, tenant, Filter{ExternalID: text}, show.Range{Limit: maxOfID}, now)
		if err != nil {
			return nil, err
		}
		for _, e := range own.Rows {
			out = append(out, show.FoundEvent{Event: e, Where: "event id"})
		}
	}
	eventID, err := q.EventOfIdempotencyKey(ctx, text)
	if err == nil {
		var e show.Event
		e, err = Read(ctx, q, tenant, eventID)
		if err == nil {
			out = append(out, show.FoundEvent{Event: e, Where: "idempotency key"})
		}
	}
	if db.IsMissing(err) {
		err = nil
	}
	return out, err
}
