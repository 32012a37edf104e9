package days

import (
	"context"
	"errors"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// Source reads the lines of a part from the store.
type Source interface {
	Lines(ctx context.Context, part sql.HistoryPart) ([]byte, error)
}

// Lent are rows of days in storage that transactions see as if they were in the tables: the rows are inserted, read by
// the code that reads every other row, and undone. So there is one way to read history.
type Lent struct {
	Day    time.Time
	tenant id.UUID
	parts  []lentPart
}

type lentPart struct {
	part sql.HistoryPart
	rows history.Rows
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
	return &Lent{part.Day, tenant, []lentPart{{part, own}}}, err
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
	lent := &Lent{part.Day, tenant, []lentPart{{part, own}}}
	if err != nil || event.IsZero() || len(own.Events) > 0 {
		return lent, err
	}
	of, rows, err := l.at(ctx, event.Time())
	if err != nil || rows == nil {
		return lent, err
	}
	original, err := rows.OfEvent(event)
	lent.parts = append(lent.parts, lentPart{of, original})
	return lent, err
}

// ListPart is a part of a day that a page of a list reads, and where the list goes on after it; nil at the day's end.
type ListPart struct {
	*Lent
	Since, Until time.Time
	Next         []byte
}

// OfList reads the part of a day in storage in which a page of a list begins, in its direction. It returns
// fault.ErrNotFound if the day has none.
func OfList(ctx context.Context, d *db.DB, source Source, tenant id.UUID, day time.Time, r show.Range) (p ListPart, err error) {
	l := lender{d, source, tenant}
	var parts []sql.HistoryPart
	if err := d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		parts, err = q.StoredPartsOf(ctx, tenant, day)
		return err
	}); err != nil {
		return p, err
	}
	if !r.Ascending {
		slices.Reverse(parts)
	}
	for i, part := range parts {
		if after := r.AfterID(); r.After != nil && (r.Ascending && after.Compare(id.FirstAt(part.High)) >= 0 || !r.Ascending && after.Compare(id.FirstAt(part.Low)) <= 0) {
			continue
		}
		rows, err := l.rows(ctx, part)
		if err != nil {
			return p, err
		}
		p = ListPart{Lent: &Lent{part.Day, tenant, []lentPart{{part, rows.OfList()}}}, Since: part.Low, Until: part.High}
		if i+1 < len(parts) {
			boundary := id.FirstAt(part.Low)
			if r.Ascending {
				boundary = id.FirstAt(part.High)
			}
			p.Next = boundary[:]
		}
		return p, nil
	}
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
	lines, err := l.source.Lines(ctx, part)
	if err != nil {
		return history.Rows{}, errors.Join(history.ErrUnreachable, err)
	}
	return history.RowsOf(lines)
}

// Read runs fn as the tenant, in a transaction that sees the rows.
func (l *Lent) Read(ctx context.Context, d *db.DB, fn func(q *sql.Queries) error) error {
	return d.Borrow(ctx, l.tenant, func(q *sql.Queries) error { return l.insert(ctx, q) }, fn, nil)
}

// Act is Read for a function that replays: what it changes stays, and so do the events, which the replays send. The
// deliveries that were lent are taken back.
func (l *Lent) Act(ctx context.Context, d *db.DB, fn func(q *sql.Queries) error) error {
	return d.Borrow(ctx, l.tenant, func(q *sql.Queries) error { return l.insert(ctx, q) }, fn, func(q *sql.Queries) error {
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
	})
}

// insert inserts the rows of the parts that are still in storage. These stay there until the transaction ends.
func (l *Lent) insert(ctx context.Context, q *sql.Queries) error {
	for i, p := range l.parts {
		if _, err := q.ShareHistory(ctx, l.tenant, p.part.Day); err != nil && !db.IsNoRows(err) {
			return err
		}
		stored, err := q.IsPartStored(ctx, sql.IsPartStoredParams{
			TenantID: l.tenant,
			Day:      p.part.Day,
			Low:      p.part.Low,
			Lines:    p.part.Lines,
		})
		if err != nil {
			return err
		}
		if !stored {
			l.parts[i].rows = history.Rows{} // they are in the tables
			continue
		}
		if err := p.insert(ctx, q, l.tenant); err != nil {
			return err
		}
	}
	return nil
}

func (p lentPart) insert(ctx context.Context, q *sql.Queries, tenant id.UUID) error {
	events, err := p.missing(ctx, q, tenant)
	if err != nil {
		return err
	}
	for i, rows := range [...][]string{events, p.rows.Deliveries, p.rows.Attempts, p.rows.DeadLetters, p.rows.Cancellations} {
		if len(rows) == 0 {
			continue
		}
		n, err := q.InsertHistory(ctx, sql.InsertHistoryParams{
			Name:     history.Tables[i],
			Lines:    rows,
			TenantID: tenant,
			Low:      p.part.Low,
			High:     p.part.High,
		})
		if err == nil && n != int64(len(rows)) {
			err = errArrived
		}
		if err != nil {
			return err
		}
	}
	letters, err := p.rows.LetterIDs()
	if err != nil {
		return err
	}
	return markReplayed(ctx, q, tenant, letters)
}

// missing are the events that are not in the table. One that was replayed from storage stays there.
func (p lentPart) missing(ctx context.Context, q *sql.Queries, tenant id.UUID) (events []string, err error) {
	ids, err := p.rows.EventIDs()
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	there, err := q.EventsThere(ctx, sql.EventsThereParams{TenantID: tenant, Low: p.part.Low, High: p.part.High, Ids: ids})
	for i, row := range p.rows.Events {
		if !slices.Contains(there, ids[i]) {
			events = append(events, row)
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
