package days

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/history"
	"posthorn/domain/id"
)

// Source reads the rows of a part from the store.
type Source interface {
	Rows(ctx context.Context, part sql.HistoryPart) (history.Rows, error)
}

// Lent are rows of days in storage that transactions see as if they were in the tables: the rows are inserted, read by
// the code that reads every other row, and undone. So there is one way to read history.
type Lent struct {
	Day    time.Time
	tenant id.UUID
	parts  []lentPart
}

type lentPart struct {
	part   sql.HistoryPart
	rows   history.Rows
	events []id.UUID // those that were lent: others are in the table
}

// lender reads parts for a Lent.
type lender struct {
	db     *db.DB
	source Source
	tenant id.UUID
}

// OfEvent reads what storage has of an event. It returns nil if the event's day is not in storage.
func OfEvent(ctx context.Context, d *db.DB, source Source, tenant, event id.UUID) (*Lent, error) {
	l := lender{d, source, tenant}
	part, rows, err := l.at(ctx, event.Time())
	if err != nil || rows == nil {
		return nil, err
	}
	own, err := rows.OfEvent(event)
	return &Lent{part.Day, tenant, []lentPart{{part: part, rows: own}}}, err
}

// OfDelivery reads what storage has of a delivery and of its event, which can be of an earlier day. It returns nil if
// the delivery's day is not in storage.
func OfDelivery(ctx context.Context, d *db.DB, source Source, tenant, delivery id.UUID) (*Lent, error) {
	l := lender{d, source, tenant}
	part, rows, err := l.at(ctx, delivery.Time())
	if err != nil || rows == nil {
		return nil, err
	}
	own, event, err := rows.OfDelivery(delivery)
	lent := &Lent{part.Day, tenant, []lentPart{{part: part, rows: own}}}
	if err != nil || event.IsZero() || len(own.Events) > 0 {
		return lent, err
	}
	of, rows, err := l.at(ctx, event.Time())
	if err != nil || rows == nil {
		return lent, err
	}
	original, err := rows.OfEvent(event)
	lent.parts = append(lent.parts, lentPart{part: of, rows: original})
	return lent, err
}

// ListPart is what a page of a list reads of a day, and where the list goes on after it; nil at the day's end.
type ListPart struct {
	*Lent
	Since, Until time.Time
	Next         []byte
}

// OfList reads the rows of a day in storage with which a page of a list begins: enough of one part. Lent is nil if the
// day has none.
func OfList(ctx context.Context, d *db.DB, source Source, tenant id.UUID, day time.Time, w history.Wanted) (p ListPart, err error) {
	l := lender{d, source, tenant}
	var parts []sql.HistoryPart
	if err := d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		parts, err = q.StoredPartsOf(ctx, tenant, day)
		return err
	}); err != nil || len(parts) == 0 {
		return p, err
	}
	p = ListPart{Lent: &Lent{Day: day, tenant: tenant}, Since: day, Until: day.AddDate(0, 0, 1)}
	parts = slices.DeleteFunc(parts, func(part sql.HistoryPart) bool {
		return w.Low.Compare(id.FirstAt(part.High)) >= 0 || w.High.Compare(id.FirstAt(part.Low)) <= 0
	})
	if len(parts) == 0 {
		return p, nil
	}
	if !w.Ascending {
		slices.Reverse(parts)
	}
	part := parts[0]
	all, err := l.rows(ctx, part)
	if err != nil {
		return p, err
	}
	rows, last, err := all.OfList(w)
	if err != nil {
		return p, err
	}
	p.parts = []lentPart{{part: part, rows: rows}}
	p.Since, p.Until = part.Low, part.High
	switch {
	case last.IsZero() && len(parts) == 1:
		return p, nil
	case last.IsZero():
	case w.Ascending:
		p.Until = last.Add(time.Millisecond)
	default:
		p.Since = last
	}
	next := id.FirstAt(p.Since)
	if w.Ascending {
		next = id.FirstAt(p.Until)
	}
	p.Next = next[:]
	return p, nil
}

// at reads the part of a moment; nil if there is none.
func (l lender) at(ctx context.Context, created time.Time) (part sql.HistoryPart, rows *history.Rows, err error) {
	found := false
	if err := l.db.Tenant(ctx, l.tenant, func(q *sql.Queries) error {
		part, err = q.StoredPartAt(ctx, sql.StoredPartAtParams{TenantID: l.tenant, Day: created.Truncate(24 * time.Hour), Created: created})
		if found = err == nil; db.IsNoRows(err) {
			return nil
		}
		return err
	}); err != nil || !found {
		return part, nil, err
	}
	all, err := l.rows(ctx, part)
	return part, &all, err
}

func (l lender) rows(ctx context.Context, part sql.HistoryPart) (history.Rows, error) {
	rows, err := l.source.Rows(ctx, part)
	if err != nil {
		return rows, errors.Join(history.ErrUnreachable, err)
	}
	return rows, nil
}

// Read runs fn as the tenant, in a transaction that sees the rows.
func (l *Lent) Read(ctx context.Context, d *db.DB, fn func(q *sql.Queries) error) error {
	return d.Borrow(ctx, l.tenant, func(q *sql.Queries) error { return l.insert(ctx, q) }, fn, nil)
}

// Act is Read for a function that replays: what it changes stays, and so do the events, which the replays send. The
// deliveries that were lent are taken back.
func (l *Lent) Act(ctx context.Context, d *db.DB, fn func(q *sql.Queries) error) error {
	return d.Borrow(ctx, l.tenant, func(q *sql.Queries) error { return l.insert(ctx, q) }, fn, func(q *sql.Queries) error {
		return l.takeBack(ctx, q)
	})
}

// Destroy is Read for a function that expunges: what it changes stays, and all that was lent is taken back.
func (l *Lent) Destroy(ctx context.Context, d *db.DB, fn func(q *sql.Queries) error) error {
	return d.Borrow(ctx, l.tenant, func(q *sql.Queries) error { return l.insert(ctx, q) }, fn, func(q *sql.Queries) error {
		for _, p := range l.parts {
			if err := q.DropTheseEvents(ctx, sql.DropTheseEventsParams{
				TenantID: l.tenant,
				Low:      p.part.Low,
				High:     p.part.High,
				Ids:      p.events,
			}); err != nil {
				return err
			}
		}
		return l.takeBack(ctx, q)
	})
}

// takeBack deletes the deliveries that were lent, with what belongs to them.
func (l *Lent) takeBack(ctx context.Context, q *sql.Queries) error {
	for _, p := range l.parts {
		ids, err := p.rows.DeliveryIDs()
		if err != nil {
			return err
		}
		if err := q.DropLent(ctx, sql.DropLentParams{
			TenantID:   l.tenant,
			Deliveries: ids,
			Since:      p.part.Low.Add(-db.ClockSkew),
			Low:        p.part.Low,
			High:       p.part.High,
		}); err != nil {
			return err
		}
	}
	return nil
}

// insert inserts the rows of the parts that are still in storage, without what was expunged. These stay there until the
// transaction ends.
func (l *Lent) insert(ctx context.Context, q *sql.Queries) error {
	for i := range l.parts {
		p := &l.parts[i]
		if _, err := q.ShareHistory(ctx, l.tenant, p.part.Day); err != nil && !db.IsNoRows(err) {
			return err
		}
		lines, err := q.StoredPart(ctx, sql.StoredPartParams{TenantID: l.tenant, Day: p.part.Day, Low: p.part.Low})
		if db.IsNoRows(err) {
			p.rows = history.Rows{} // they are in the tables
			continue
		}
		if err == nil && !bytes.Equal(lines, p.part.Lines) {
			err = history.ErrUnreachable // data was expunged since the rows were read
		}
		if err == nil {
			err = p.insert(ctx, q)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *lentPart) insert(ctx context.Context, q *sql.Queries) error {
	events, err := p.missing(ctx, q)
	if err != nil {
		return err
	}
	missing := p.rows
	missing.Events = events
	for i, rows := range missing.ByTable() {
		if err := insertRows(ctx, q, p.part, history.Tables[i], rows); err != nil {
			return err
		}
	}
	if err := withhold(ctx, q, p.part, p.rows); err != nil {
		return err
	}
	letters, err := p.rows.LetterIDs()
	if err != nil {
		return err
	}
	return markReplayed(ctx, q, p.part.TenantID, letters)
}

// missing are the events that are not in the table. One that was replayed from storage stays there.
func (p *lentPart) missing(ctx context.Context, q *sql.Queries) (events []string, err error) {
	p.events = []id.UUID{}
	ids, err := p.rows.EventIDs()
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	there, err := q.EventsThere(ctx, sql.EventsThereParams{TenantID: p.part.TenantID, Low: p.part.Low, High: p.part.High, Ids: ids})
	for i, row := range p.rows.Events {
		if !slices.Contains(there, ids[i]) {
			events = append(events, row)
			p.events = append(p.events, ids[i])
		}
	}
	return events, err
}

// markReplayed marks the dead letters that were replayed while they were in storage.
func markReplayed(ctx context.Context, q *sql.Queries, tenant id.UUID, letters []id.UUID) error {
	if len(letters) == 0 {
		return nil
	}
	return q.MarkReplayedLetters(ctx, tenant, letters)
}
