// Package deliveries lists deliveries and does the actions on them: retry, cancel, replay and archive, one by one or in
// bulk jobs. It also exports and expunges them.
package deliveries

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// ListOptions asks for a page of deliveries by id, of one tenant or of all. Zero values of filters select all.
type ListOptions struct {
	show.Range
	Status    string // the word of a status; or delivery.OnHold, delivery.DeadLetter, delivery.AllFailed
	EventType string
	Channel   string
	Tenant    id.UUID // of a list of all tenants
	Endpoint  id.UUID
	Host      string // of an endpoint's URL; of a list of all tenants
	Event     id.UUID
	Job       id.UUID          // created by this bulk job
	Batch     id.UUID          // with an attempt in this request, which it shared with others
	Wait      condition.Reason // waiting for this reason; with Status, of that status
	Archived  bool             // archived ones only; else none of them
}

// Page is a page of a list. A filter that matches rarely can leave it short, even empty, before the end.
type Page = show.Page[show.Delivery]

// How many rows a page can read, and how fast. The first scan reads as many rows as fit on the page, which is enough
// for a list without a rare filter. Each further scan reads more. Conditions on the delivery's or the event's own row
// are checked row by row, so fewer rows are read.
const (
	scanBudget = 20_000
	readBudget = 2_000
	scanGrowth = 8
)

// firstSlice is how much time the first scan of the deliveries covers: a plan over every partition costs more than all
// rows of most pages. Each further scan covers more. A scan that would be longer than lastSlice covers everything that
// is left.
const (
	firstSlice = 48 * time.Hour
	lastSlice  = 2000 * time.Hour
)

// List returns a page of a tenant's deliveries. It changes the planner settings of its transaction, so call it last.
func List(ctx context.Context, q *sql.Queries, tenant id.UUID, l ListOptions) (Page, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return Page{}, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return Page{}, err
	}
	w, slice := l.window(floor), firstSlice
	budget, scan := l.budget(), l.Limit+1
	var page Page
	for {
		part := w
		if l.partitioned() && slice <= lastSlice {
			part = w.slice(slice, time.Now(), l.Ascending)
		}
		asked := min(scan, budget)
		found, err := scanDeliveries(ctx, q, tenant, &l, part, asked)
		if err != nil {
			return Page{}, err
		}
		rows, err := readPage(ctx, q, tenant, &l, found.Ids, l.Limit+1-len(page.Rows))
		if err != nil {
			return Page{}, err
		}
		page.Rows = append(page.Rows, rows...)
		if len(page.Rows) > l.Limit {
			return show.CutByID(page.Rows, l.Limit, deliveryID), nil
		}
		budget -= int(found.Scanned)
		switch {
		case int(found.Scanned) == asked && budget <= 0:
			page.Next = found.Reached[:]
			return page, nil
		case int(found.Scanned) == asked:
			w.beyond(found.Reached, l.Ascending)
			scan *= scanGrowth
		case part == w:
			return page, nil
		default:
			w.beyond(part.end(l.Ascending), l.Ascending)
			slice *= scanGrowth
		}
	}
}

func deliveryID(d show.Delivery) id.UUID { return d.ID }

// budget is how many rows the page can read.
func (l *ListOptions) budget() int {
	if l.Channel != "" || l.Wait != "" || !l.Job.IsZero() || !l.Batch.IsZero() || l.Status == delivery.OnHold || l.waiting() && l.EventType != "" {
		return readBudget
	}
	return scanBudget
}

// waiting reports whether the list is of a status that the queue knows.
func (l *ListOptions) waiting() bool {
	s, known := delivery.ParseStatus(l.Status)
	return l.Status == delivery.AllFailed || l.Status == delivery.OnHold || known && !s.Terminal()
}

// partitioned reports whether the list is read from the deliveries themselves.
func (l *ListOptions) partitioned() bool {
	return l.Wait == "" && l.Job.IsZero() && (l.Status == "" || l.Status == delivery.Delivered.String())
}

// window is an open interval of ids, and so of time.
type window struct{ low, high id.UUID }

func (l *ListOptions) window(floor time.Time) window {
	if at := l.Event.Time().Add(-db.ClockSkew); !l.Event.IsZero() && floor.Before(at) {
		floor = at // no delivery is older than its event
	}
	low, high := l.Between(floor, time.Time{})
	w := window{low, high}
	if !l.Batch.IsZero() { // what it contains was there before it
		w.beyond(id.FirstAt(l.Batch.Time().Add(db.ClockSkew)), false)
	}
	return w
}

// beyond returns the part of the window beyond an id. It never widens the window.
func (w *window) beyond(deliveryID id.UUID, ascending bool) {
	if ascending && deliveryID.Compare(w.low) > 0 {
		w.low = deliveryID
	} else if !ascending && deliveryID.Compare(w.high) < 0 {
		w.high = deliveryID
	}
}

// slice returns the part of the window at the start of the list that covers this much time, or all of it. It only
// decides where to read first, so any clock is exact enough.
func (w window) slice(length time.Duration, now time.Time, ascending bool) window {
	if ascending {
		if high := id.FirstAt(w.low.Time().Add(length)); high.Compare(w.high) < 0 {
			w.high = high
		}
		return w
	}
	from := w.high.Time()
	if from.After(now) {
		from = now
	}
	if low := id.FirstAt(from.Add(-length)); low.Compare(w.low) > 0 {
		w.low = low
	}
	return w
}

// end is where a list leaves the window.
func (w window) end(ascending bool) id.UUID {
	if ascending {
		return w.high
	}
	return w.low
}
