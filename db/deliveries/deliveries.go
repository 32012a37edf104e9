// Package deliveries lists deliveries and does the actions on them: retry, cancel, replay and archive, one by one or in
// bulk jobs. It also exports and expunges them.
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

// State is a delivery as the API and the pages show it.
type State struct {
	sql.Delivery
	Shown  delivery.Status   // Held if its lane is held
	NextAt *time.Time        // when the next attempt starts; nil if that is unknown: Wait says why
	Wait   *condition.Wait   // why it waits; nil: it does not wait
	Paused *endpoints.Paused // the operator's pause that holds it; nil: none
	queued queued

	DeadLetter bool     // see delivery.DeadLetter
	ReplayedBy *id.UUID // its newest replay, whose id contains its time; nil: none is known
}

// WaitReason is why the delivery waits; empty: it does not.
func (d State) WaitReason() condition.Reason {
	if d.Wait == nil {
		return ""
	}
	return d.Wait.Reason
}

// stateOf derives the shown state of a delivery from its queue row and its lane. explainWaits adds the rest.
func stateOf(d sql.Delivery, held bool, row queued) State {
	s := State{Delivery: d, Shown: d.Status, queued: row}
	if row.waits && held && !d.Status.Terminal() {
		s.Shown = delivery.Held
	}
	return s
}

// AllFailed selects deliveries that had a failed attempt and were not delivered: failed, retrying, and canceled after
// an attempt.
const AllFailed delivery.Status = -1

// DeadLetters selects dead letters only: deliveries that failed and were neither replayed nor archived
// (delivery.DeadLetter).
const DeadLetters delivery.Status = -3

// ListOptions asks for a page of a tenant's deliveries by id. Zero values of filters select all.
type ListOptions struct {
	Status    *delivery.Status // or AllFailed or DeadLetters
	EventType string
	Channel   string
	Endpoint  *id.UUID
	Event     *id.UUID
	Job       *id.UUID         // created by this bulk job
	Wait      condition.Reason // waiting for this reason; with Status, of that status
	Since     time.Time        // created at or after
	Until     time.Time        // created before
	Archived  bool             // archived ones only; else none of them
	Ascending bool
	After     id.UUID // the page starts beyond this id; zero at the start of the list
	Most      int
}

// Page is a page of a list. A filter that matches rarely can leave it short, even empty, before the end.
type Page struct {
	Rows []State
	Next *id.UUID // After of the next page; nil at the end
}

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
	w := window{low: id.FirstAt(since), high: id.Last}
	if !l.Until.IsZero() {
		w.high = id.FirstAt(l.Until)
	}
	if !l.After.IsZero() {
		w.beyond(l.After, l.Ascending)
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

// CompareIDs orders ids as the database does.
