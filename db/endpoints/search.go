package endpoints

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
	"posthorn/domain/search"
	"posthorn/domain/trace"
)

// The bounds of a search: how long it lasts, how long one of its statements can take, and how many events each reads. A
// tenant's events can be large, so the first statement reads few events, and the next ones read more while they are
// fast.
const (
	searchTime      = 1500 * time.Millisecond
	searchStatement = 3 * time.Second
	searchFirst     = 200
	searchMost      = 10_000
	searchQuick     = 150 * time.Millisecond
	searchOpened    = 20 // how many events have their data read together
)

// EventSearch asks for events by a text.
type EventSearch struct {
	search.Query
	InData bool    // the caller has permission to read the data
	Before id.UUID // the search continues below this event; zero: from the newest
	Most   int
}

// FoundEvent is an event that a search found, and where the text was.
type FoundEvent struct {
	sql.FoundEventsRow
	ByKey   bool   // its ordering key is the text
	ByTrace bool   // the text is the id of its trace
	Where   string // the field of its data; empty with ByKey and ByTrace
}

// SearchedEvents is the result of a search. Reached is the oldest event that it read; zero if it read all.
type SearchedEvents struct {
	Found   []FoundEvent
	Reached id.UUID
	Looked  int
}

// SearchEvents searches a tenant's events, newest first, until it has found enough or its time is over. Each statement
// has a short transaction of its own.
func SearchEvents(ctx context.Context, d *db.DB, tenant id.UUID, s EventSearch, now time.Time) (out SearchedEvents,
	err error,
) {
	started, scan := time.Now(), int32(searchFirst)
	high := s.Before
	for {
		asked := time.Now()
		var page sql.SearchEventsRow
		err = d.Tenant(ctx, tenant, func(q *sql.Queries) error {
			if page, err = s.look(ctx, q, tenant, high, scan, now); err != nil || len(page.Ids) == 0 {
				return err
			}
			var found []FoundEvent
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
		if len(out.Found) >= s.Most || time.Since(started) > searchTime {
			return s.cut(out), nil
		}
		if time.Since(asked) < searchQuick {
			scan = min(scan*4, searchMost)
		}
	}
}

// canceled reports whether a statement exceeded its time limit.
func canceled(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "57014"
}

// cut keeps as many results as were asked for; the next search continues below the last of them.
func (s EventSearch) cut(out SearchedEvents) SearchedEvents {
	if len(out.Found) > s.Most {
		out.Found = out.Found[:s.Most]
		out.Reached = out.Found[s.Most-1].ID
	}
	return out
}

// look finds candidates among the next events.
func (s EventSearch) look(ctx context.Context, q *sql.Queries, tenant, high id.UUID, scan int32,
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
		TenantID: tenant, LowAt: floor, HighAt: now.Add(time.Minute), High: id.Last,
		Key: s.Text, InData: s.InData, Needle: s.Needle(), Scan: scan,
	}
	if !high.IsZero() {
		ask.High, ask.HighAt = high, high.Time()
	}
	return q.SearchEvents(ctx, ask)
}

// open reads candidates and keeps those that contain the text.
func (s EventSearch) open(ctx context.Context, q *sql.Queries, tenant id.UUID, ids []id.UUID) (out []FoundEvent,
	err error,
) {
	for some := range slices.Chunk(ids, searchOpened) {
		ask := sql.FoundEventsParams{TenantID: tenant, Ids: some, WithData: s.InData}
		for _, u := range some {
			ask.Created = append(ask.Created, u.Time())
		}
		ask.First, ask.Last = some[len(some)-1].Time(), some[0].Time()
		rows, err := q.FoundEvents(ctx, ask)
		if err != nil {
			return out, err
		}
		for _, r := range rows {
			f := FoundEvent{
				FoundEventsRow: r, ByKey: r.Key != nil && *r.Key == s.Text, ByTrace: trace.ID(r.Traceparent) == s.Text,
			}
			in := false
			if !f.ByKey && !f.ByTrace && s.InData {
				f.Where, in = s.In(r.Data)
			}
			if f.Data = nil; f.ByKey || f.ByTrace || in {
				out = append(out, f)
			}
		}
		if len(out) > s.Most {
			return out, nil
		}
	}
	return out, nil
}

// maxOfID bounds how many events with the same producer's id a search shows.
const maxOfID = 10

// EventsOfID returns the events with a producer's id, newest first.
func EventsOfID(ctx context.Context, q *sql.Queries, tenant id.UUID, text string, now time.Time) ([]sql.Event, error) {
	if event.CheckEventID(text) != nil {
		return nil, nil
	}
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return nil, err
	}
	rows, err := q.EventsOfExternalID(ctx, sql.EventsOfExternalIDParams{
		TenantID: tenant, ExternalID: text,
		Since: floor, Until: now.Add(time.Minute), Most: maxOfID,
	})
	out := make([]sql.Event, len(rows))
	for i, r := range rows {
		out[i] = sql.Event{
			TenantID: tenant, ID: r.ID, CreatedAt: r.CreatedAt, Type: r.Type, Key: r.Key,
			Channels: r.Channels, ExternalID: r.ExternalID,
		}
	}
	return out, err
}

// EventOfKey returns the event of an idempotency key, as long as the key is kept; zero if there is none.
func EventOfKey(ctx context.Context, q *sql.Queries, key string) (id.UUID, error) {
	u, err := q.EventOfIdempotencyKey(ctx, key)
	if db.IsMissing(err) {
		return id.UUID{}, nil
	}
	return u, err
}
