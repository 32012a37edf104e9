package days

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/history"
	"posthorn/domain/id"
)

// Share keeps the days that can have some events, or replays of them, in storage where they are, until the transaction
// ends.
func Share(ctx context.Context, q *sql.Queries, tenant id.UUID, events []id.UUID) (held []time.Time, err error) {
	if len(events) == 0 {
		return nil, nil
	}
	days := make([]time.Time, len(events))
	for i, event := range events {
		days[i] = event.Time().UTC().Truncate(24 * time.Hour)
	}
	slices.SortFunc(days, time.Time.Compare)
	days = slices.Compact(days)
	return q.ShareHistoryOf(ctx, sql.ShareHistoryOfParams{TenantID: tenant, Days: days, Since: days[0], Events: events})
}

// Expunge has the data of some events, and the responses to it, expunged from storage. From the transaction's commit on
// nobody reads it. held is what Share returned. It returns the days whose files are written again.
func Expunge(ctx context.Context, q *sql.Queries, tenant id.UUID, events []id.UUID, held []time.Time) (stored []time.Time, err error) {
	created := make([]time.Time, len(events))
	for i, event := range events {
		created[i] = event.Time()
	}
	if held == nil {
		held = []time.Time{}
	}
	rows, err := q.ExpungeStored(ctx, sql.ExpungeStoredParams{TenantID: tenant, Events: events, Created: created, HeldDays: held})
	for _, row := range rows {
		if !row.Held { // it left the tables in between
			return nil, history.ErrUnreachable
		}
		stored = append(stored, row.Day)
	}
	return stored, err
}

// Rewritten is a part whose rows are written into other files, and what they then are.
type Rewritten struct {
	sql.HistoryPart
	Sum      [sha256.Size]byte // of the lines
	Size     int64             // of the lines
	Expunged []id.UUID         // events whose data the lines no longer have
}

// Rewrite returns the lines of a part's rows without the data that was expunged. PostgreSQL destroys the data as it
// does in the tables: in a transaction that is undone.
func Rewrite(ctx context.Context, d *db.DB, part sql.HistoryPart, rows history.Rows) ([]byte, Rewritten, error) {
	out, lines := Rewritten{HistoryPart: part, Expunged: []id.UUID{}}, rows.Lines()
	err := d.Borrow(ctx, part.TenantID, func(q *sql.Queries) error {
		events, err := q.ExpungesOfPart(ctx, sql.ExpungesOfPartParams{TenantID: part.TenantID, Day: part.Day, Low: part.Low})
		if err != nil || len(events) == 0 {
			return err
		}
		out.Expunged = events
		lines, err = expunged(ctx, q, part, rows)
		return err
	}, func(*sql.Queries) error { return nil }, nil)
	out.Sum, out.Size = sha256.Sum256(lines), int64(len(lines))
	return lines, out, err
}

// expunged inserts the rows of a part, without what was expunged, and reads them.
func expunged(ctx context.Context, q *sql.Queries, part sql.HistoryPart, rows history.Rows) ([]byte, error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return nil, err
	}
	if err := q.DropLentEvents(ctx, sql.DropLentEventsParams{TenantID: part.TenantID, Low: part.Low, High: part.High}); err != nil {
		return nil, err
	}
	for i, lines := range rows.ByTable() {
		if err := insertRows(ctx, q, part, history.Tables[i], lines); err != nil {
			return nil, err
		}
	}
	if err := withhold(ctx, q, part, rows); err != nil {
		return nil, err
	}
	p := Part{Low: part.Low, High: part.High}
	if _, err := (Day{Tenant: part.TenantID, At: part.Day}).read(ctx, q, &p, false); err != nil {
		return nil, err
	}
	if p.N != part.N {
		return nil, ErrRows
	}
	return p.Lines, nil
}

// insertRows inserts rows of a part into a table.
func insertRows(ctx context.Context, q *sql.Queries, part sql.HistoryPart, table string, rows []string) error {
	if len(rows) == 0 {
		return nil
	}
	n, err := q.InsertHistory(ctx, sql.InsertHistoryParams{
		Name:     table,
		Lines:    rows,
		TenantID: part.TenantID,
		Low:      part.Low,
		High:     part.High,
	})
	if err == nil && n != int64(len(rows)) {
		err = errArrived
	}
	return err
}

// withhold destroys what was expunged and that the files of a part still have, among rows that a transaction has
// inserted.
func withhold(ctx context.Context, q *sql.Queries, part sql.HistoryPart, rows history.Rows) error {
	events, err := q.ExpungesOfPart(ctx, sql.ExpungesOfPartParams{TenantID: part.TenantID, Day: part.Day, Low: part.Low})
	if err != nil || len(events) == 0 {
		return err
	}
	var own []id.UUID // the part can have deliveries of other parts' events
	var created []time.Time
	for _, event := range events {
		if at := event.Time(); !at.Before(part.Low) && at.Before(part.High) {
			own, created = append(own, event), append(created, at)
		}
	}
	if len(own) > 0 {
		if _, err := q.DestroyData(ctx, sql.DestroyDataParams{
			Ids:      own,
			Created:  created,
			TenantID: part.TenantID,
			First:    slices.MinFunc(created, time.Time.Compare),
			Last:     slices.MaxFunc(created, time.Time.Compare),
		}); err != nil {
			return err
		}
	}
	deliveries, err := rows.DeliveriesOf(events)
	if err != nil || len(deliveries) == 0 {
		return err
	}
	_, err = q.ExpungeAttempts(ctx, sql.ExpungeAttemptsParams{
		TenantID:   part.TenantID,
		Deliveries: deliveries,
		Since:      part.Low.Add(-db.ClockSkew),
	})
	return err
}

// MarkExpunged marks the sets of files that have data that was expunged: they are written again.
func MarkExpunged(ctx context.Context, d *db.DB) error {
	return d.Console(ctx, func(q *sql.Queries) error { return q.DirtyExpungedFiles(ctx) })
}

// HasExpunged reports whether a set of files has data that was expunged.
func HasExpunged(ctx context.Context, d *db.DB, parts []sql.HistoryPart) (has bool, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		for _, part := range parts {
			events, err := q.ExpungesOfPart(ctx, sql.ExpungesOfPartParams{TenantID: part.TenantID, Day: part.Day, Low: part.Low})
			if err != nil {
				return err
			}
			has = has || len(events) > 0
		}
		return nil
	})
	return has, err
}

// EndExpunges ends the expunges whose data no object has any more, with an entry in the audit log for each day. It
// returns of how many events.
func EndExpunges(ctx context.Context, d *db.DB) (n int64, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		n = 0
		ended, err := q.EndExpunges(ctx)
		if err != nil {
			return err
		}
		for _, e := range ended {
			n += e.Events
			err = errors.Join(err, db.Audit(ctx, q, db.Author{Kind: "system"}, db.Audited{
				Tenant:  &e.TenantID,
				Action:  "history.expunged",
				Kind:    "day",
				Object:  e.Day.Format(time.DateOnly),
				Details: map[string]int64{"events": e.Events},
			}))
		}
		return err
	})
	return n, err
}
