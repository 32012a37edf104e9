// Package deliveries lists deliveries and does what people and programs ask for: retry, cancel, replay, archive, one
// by one or in bulk jobs; it exports and expunges them.
package deliveries

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
)

// State is a delivery as people see it.
type State struct {
	sql.Delivery
	Shown  delivery.Status   // with Held where its lane is held
	NextAt *time.Time        // when it will really be tried; nil where that is not known: Wait says why
	Wait   *condition.Wait   // why it waits; nil: it does not
	Paused *endpoints.Paused // the operator's pause that keeps it; nil: none does
	queued queued

	DeadLetter bool     // see delivery.DeadLetter
	ReplayedBy *id.UUID // its newest replay, whose id carries the time of it; nil: none is known
}

// WaitReason is why the delivery waits; empty: it does not.
func (d State) WaitReason() condition.Reason {
	if d.Wait == nil {
		return ""
	}
	return d.Wait.Reason
}

// stateOf derives what is shown of a delivery from its queue row and its lane. explainWaits does the rest.
func stateOf(d sql.Delivery, held bool, row queued) State {
	s := State{Delivery: d, Shown: d.Status, queued: row}
	if row.waits && held && !d.Status.Terminal() {
		s.Shown = delivery.Held
	}
	return s
}

// AllFailed asks for what went wrong at least once and was not delivered: failed, retrying, and canceled after an
// attempt.
const AllFailed delivery.Status = -1

// DeadLetters asks for dead letters alone: what failed and was neither replayed nor archived (delivery.DeadLetter).
const DeadLetters delivery.Status = -3

// ListOptions asks for a page of a tenant's deliveries by id. Zero values of filters select all.
type ListOptions struct {
	Status    *delivery.Status // or AllFailed or DeadLetters
	EventType string
	Channel   string
	Endpoint  *id.UUID
	Event     *id.UUID
	Job       *id.UUID         // what this bulk job made
	Wait      condition.Reason // waiting for this reason; with Status, of that status
	Since     time.Time        // created at or after
	Until     time.Time        // created before
	Archived  bool             // archived ones alone; else none of them
	Ascending bool
	After     id.UUID // the page begins beyond this id; zero at the list's beginning
	Most      int
}

// Page is a page of a list. A filter that matches rarely can leave it short, even empty, before the end.
type Page struct {
	Rows []State
	Next *id.UUID // After of the next page; nil at the end
}

// How many rows a page can read, and how fast. The first scan takes as many as the page has room for, which is all that
// a list without a rare filter needs. Each further scan takes more. Conditions on the delivery's or the event's own row
// are checked row by row, so fewer rows are read.
const (
	scanBudget = 20_000
	readBudget = 2_000
	scanGrowth = 8
)

// firstSlice is how much time the first scan of the deliveries covers: a plan over every partition costs more than all
// rows of most pages. Each further one covers more, and one that would be longer than lastSlice all that is left.
const (
	firstSlice = 48 * time.Hour
	lastSlice  = 2000 * time.Hour
)

// List is a page of a tenant's deliveries. It changes how its transaction plans: it comes last.
func List(ctx context.Context, q *sql.Queries, tenant id.UUID, l ListOptions) (Page, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return Page{}, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return Page{}, err
	}
	w, slice := l.window(floor), firstSlice
	budget, scan := l.budget(), l.Most+1
	var page Page
	for {
		part := w
		if l.partitioned() && slice <= lastSlice {
			part = w.slice(slice, time.Now(), l.Ascending)
		}
		found, err := scanDeliveries(ctx, q, tenant, &l, part, min(scan, budget))
		if err != nil {
			return Page{}, err
		}
		rows, err := readPage(ctx, q, tenant, &l, found.ids, l.Most+1-len(page.Rows))
		if err != nil {
			return Page{}, err
		}
		page.Rows = append(page.Rows, rows...)
		if len(page.Rows) > l.Most {
			page.Rows = page.Rows[:l.Most]
			page.Next = &page.Rows[l.Most-1].ID
			return page, nil
		}
		budget -= found.scanned
		switch {
		case found.scanned == found.asked && budget <= 0:
			page.Next = &found.reached
			return page, nil
		case found.scanned == found.asked:
			w.beyond(found.reached, l.Ascending)
			scan *= scanGrowth
		case part == w:
			return page, nil
		default:
			w.beyond(part.end(l.Ascending), l.Ascending)
			slice *= scanGrowth
		}
	}
}

// budget is how many rows the page can read.
func (l *ListOptions) budget() int {
	waiting := l.Status != nil && *l.Status != DeadLetters && (*l.Status == AllFailed || !l.Status.Terminal())
	if l.Channel != "" || l.Wait != "" || l.Job != nil || waiting && l.EventType != "" {
		return readBudget
	}
	return scanBudget
}

// partitioned reports whether the list is read from the deliveries themselves.
func (l *ListOptions) partitioned() bool {
	return l.Wait == "" && l.Job == nil && (l.Status == nil || *l.Status == delivery.Delivered)
}

// window is an open interval of ids, and so of time.
type window struct{ low, high id.UUID }

func (l *ListOptions) window(floor time.Time) window {
	since := l.Since
	if since.Before(floor) {
		since = floor
	}
	if l.Event != nil && since.Before(l.Event.Time()) {
		since = l.Event.Time().Add(-db.ClockSkew) // no delivery is older than its event
	}
	w := window{low: firstID(since), high: id.Last}
	if !l.Until.IsZero() {
		w.high = firstID(l.Until)
	}
	if !l.After.IsZero() {
		w.beyond(l.After, l.Ascending)
	}
	return w
}

// beyond leaves the part of the window that lies behind an id. It never makes it wider.
func (w *window) beyond(deliveryID id.UUID, ascending bool) {
	if ascending && db.CompareIDs(deliveryID, w.low) > 0 {
		w.low = deliveryID
	} else if !ascending && db.CompareIDs(deliveryID, w.high) < 0 {
		w.high = deliveryID
	}
}

// slice is the part of the window where a list begins that covers so much time, or all of it. It decides nothing but
// where to look first, so any clock will do.
func (w window) slice(length time.Duration, now time.Time, ascending bool) window {
	if ascending {
		if high := firstID(w.low.Time().Add(length)); db.CompareIDs(high, w.high) < 0 {
			w.high = high
		}
		return w
	}
	from := w.high.Time()
	if from.After(now) {
		from = now
	}
	if low := firstID(from.Add(-length)); db.CompareIDs(low, w.low) > 0 {
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

// CompareIDs orders ids as the database does.

// firstID lies below every id of a moment and above every earlier one. A part of a millisecond counts as the next one,
// since ids know whole ones alone.
func firstID(at time.Time) id.UUID {
	if whole := at.Truncate(time.Millisecond); whole.Before(at) {
		at = whole.Add(time.Millisecond)
	}
	ms := max(at.UnixMilli(), 0)
	var deliveryID id.UUID
	for i := range 6 {
		deliveryID[i] = byte(ms >> (40 - 8*i))
	}
	return deliveryID
}
