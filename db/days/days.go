// Package days moves closed days of a tenant out of the tables and back (docs/adr/0023-history-elsewhere.md). It reads
// and writes rows as lines; the caller decides where the lines are stored. Every step is a transaction of its own that
// first checks the day's state, so a step that is repeated, or done by two processes, changes nothing.
package days

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/domain/reconcile"
	"posthorn/domain/show"
)

// Day is a day of a tenant. At is its first moment, UTC.
type Day struct {
	Tenant id.UUID
	At     time.Time
	State  history.State
}

func (y Day) end() time.Time { return y.At.AddDate(0, 0, 1) }

// Part is what was created in a day from Low until before High, with all rows that belong to it.
type Part struct {
	Low, High time.Time
	Lines     []byte
	Sum       [sha256.Size]byte // of the lines
	Size      int64             // of the lines
	N         int64
	Counts    history.Counts
	Others    []id.UUID // events of other days that deliveries of this part replayed
}

// How much one part holds: one transaction reads it, and one deletes it.
const (
	partRows  = 10_000
	partBytes = 8 << 20
	// afterSettled is how long after a delivery was settled another attempt of it can still start.
	afterSettled = 24 * time.Hour
	periodic     = "history"
)

// ErrRows says that a day's rows differ from its objects.
var ErrRows = errors.New("the day has other rows than its objects")

// Errors that say why a day was not moved. Operators see them.
var (
	errTotals  = errors.New("the books differ from the deliveries of this day: see Books in the console, and accept or fix the difference")
	errNeeded  = errors.New("a delivery that waits needs an event of this day")
	errMoving  = errors.New("the tenant moves to another home")
	errState   = errors.New("the day is no longer in this state")
	errArrived = errors.New("rows of an object did not arrive")
)

// IsPassing reports whether an error says that a day can't be moved now, which is not a failure.
func IsPassing(err error) bool {
	return errors.Is(err, errNeeded) || errors.Is(err, errMoving) || errors.Is(err, errState)
}

// Hold takes or extends the lease of the one process that moves history. held is what the last call returned. It
// returns false if another process has the lease.
func Hold(ctx context.Context, d *db.DB, held time.Time, lasts time.Duration) (until time.Time, mine bool, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		if held.IsZero() {
			if err := q.InsertPeriodic(ctx, periodic); err != nil {
				return err
			}
		}
		until, err = q.HoldHistory(ctx, sql.HoldHistoryParams{Seconds: lasts.Seconds(), Name: periodic, Held: held})
		if mine = err == nil; db.IsNoRows(err) {
			return nil
		}
		return err
	})
	return until, mine, err
}

// Release returns the lease.
func Release(ctx context.Context, d *db.DB, held time.Time) error {
	return d.Worker(ctx, func(q *sql.Queries) error {
		return q.ReleaseHistory(ctx, periodic, held)
	})
}

// Begin marks the days to be stored: those before a day, and those that were restored some days ago. It returns how
// many.
func Begin(ctx context.Context, d *db.DB, before time.Time, backDays, most int32) (n int64, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		rested, err := q.RestHistory(ctx, backDays)
		if err != nil {
			return err
		}
		n, err = q.BeginHistory(ctx, before, most)
		n += rested
		return err
	})
	return n, err
}

// Next returns a day to work on, or false if there is none. It skips a day that failed less than retry ago.
func Next(ctx context.Context, d *db.DB, retry time.Duration) (day Day, found bool, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		row, err := q.NextHistory(ctx, retry.Seconds())
		if found = err == nil; db.IsNoRows(err) {
			return nil
		}
		day = Day{row.TenantID, row.Day, history.State(row.State)}
		return err
	})
	return day, found, err
}

// Expired lists days in the store that are older than their tenants' retention.
func Expired(ctx context.Context, d *db.DB, most int32) (days []Day, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		rows, err := q.ExpiredHistory(ctx, most)
		for _, r := range rows {
			days = append(days, Day{Tenant: r.TenantID, At: r.Day})
		}
		return err
	})
	return days, err
}

// as runs a step as the console role if the day is in its state. It locks the day's row.
func (y Day) as(ctx context.Context, d *db.DB, fn func(q *sql.Queries) error) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		if _, err := q.LockHistory(ctx, sql.LockHistoryParams{
			TenantID: y.Tenant,
			Day:      y.At,
			State:    string(y.State),
		}); err != nil {
			if db.IsNoRows(err) {
				return errState
			}
			return err
		}
		stays, err := q.StayHome(ctx, y.Tenant)
		if err != nil {
			return err
		}
		if !stays {
			return errMoving
		}
		return fn(q)
	})
}

// Fail records why a day was not moved.
func (y Day) Fail(ctx context.Context, d *db.DB, why string) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		return q.FailHistory(ctx, sql.FailHistoryParams{TenantID: y.Tenant, Day: y.At, Failure: why})
	})
}

// Well forgets that a day was not moved before.
func (y Day) Well(ctx context.Context, d *db.DB) error {
	return d.Console(ctx, func(q *sql.Queries) error { return q.HistoryIsWell(ctx, y.Tenant, y.At) })
}

// Forget deletes the record of a day whose objects are deleted.
func (y Day) Forget(ctx context.Context, d *db.DB) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		if err := q.ForgetHistoryParts(ctx, y.Tenant, y.At); err != nil {
			return err
		}
		return q.ForgetHistory(ctx, y.Tenant, y.At)
	})
}

// Parts lists the day's objects, oldest first.
func (y Day) Parts(ctx context.Context, d *db.DB) (parts []sql.HistoryPart, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		parts, err = q.HistoryParts(ctx, y.Tenant, y.At)
		return err
	})
	return parts, err
}

// ReadPart reads what was created from a moment on, as much as one part holds; high ends it earlier.
func (y Day) ReadPart(ctx context.Context, d *db.DB, low, high time.Time) (p Part, err error) {
	if end := y.end(); high.IsZero() || high.After(end) {
		high = end
	}
	err = d.Console(db.ReadOnly(ctx), func(q *sql.Queries) error {
		if err := q.PlanByIndex(ctx); err != nil {
			return err
		}
		p.Low = low
		if p.High, err = q.HistoryPartEnd(ctx, sql.HistoryPartEndParams{
			TenantID: y.Tenant,
			Low:      low,
			High:     high,
			Limit:    partRows,
			Bytes:    partBytes,
		}); err != nil {
			return err
		}
		_, err = y.read(ctx, q, &p, false)
		return err
	})
	p.Sum, p.Size = sha256.Sum256(p.Lines), int64(len(p.Lines))
	return p, err
}

// belongs is the condition for rows that belong to deliveries of a part.
type belongs struct {
	deliveries   []id.UUID
	since, until time.Time
}

// read reads the rows of a part as lines, with or without locks.
func (y Day) read(ctx context.Context, q *sql.Queries, p *Part, locked bool) (of belongs, err error) {
	if err := q.ReadAsHistory(ctx); err != nil {
		return of, err
	}
	if locked {
		if err := q.LockHistoryRows(ctx, sql.LockHistoryRowsParams{
			TenantID: y.Tenant,
			Low:      p.Low,
			High:     p.High,
		}); err != nil {
			return of, err
		}
	}
	p.Counts = history.Counts{States: map[string]int64{}, Endpoints: map[string]int64{}, Types: map[string]int64{}}
	add := func(table string, n *int64, lines ...string) {
		for _, line := range lines {
			p.Lines = history.AppendLine(p.Lines, table, line)
		}
		*n += int64(len(lines))
		p.N += int64(len(lines))
	}
	events, err := q.HistoryEvents(ctx, sql.HistoryEventsParams{TenantID: y.Tenant, Low: p.Low, High: p.High})
	if err != nil {
		return of, err
	}
	for _, e := range events {
		add("events", &p.Counts.Events, e.Line)
		p.Counts.Types[e.Type]++
	}
	deliveries, err := q.HistoryDeliveries(ctx, sql.HistoryDeliveriesParams{
		TenantID: y.Tenant,
		Low:      p.Low,
		High:     p.High,
	})
	if err != nil {
		return of, err
	}
	of.since, of.until = p.Low.Add(-db.ClockSkew), p.High
	for _, one := range deliveries {
		add("deliveries", &p.Counts.Deliveries, one.Line)
		p.Counts.States[one.Status.String()]++
		p.Counts.Endpoints[id.Endpoint.Format(one.EndpointID)]++
		of.deliveries = append(of.deliveries, one.ID)
		if at := one.EventID.Time(); at.Before(y.At) || !at.Before(y.end()) {
			p.Others = append(p.Others, one.EventID)
		}
		if !one.Status.Terminal() {
			return of, errNeeded
		}
		if one.SettledAt != nil && one.SettledAt.Add(afterSettled).After(of.until) {
			of.until = one.SettledAt.Add(afterSettled)
		}
	}
	return of, y.readBelongings(ctx, q, of, locked, func(table string, lines []string) {
		add(table, map[string]*int64{"attempts": &p.Counts.Attempts, "dead_letters": &p.Counts.DeadLetters, "cancellations": &p.Counts.Cancellations}[table],
			lines...)
	})
}

func (y Day) readBelongings(ctx context.Context, q *sql.Queries, of belongs, locked bool, add func(table string, lines []string)) error {
	if len(of.deliveries) == 0 {
		return nil
	}
	if locked {
		if err := q.LockHistoryAttempts(ctx, sql.LockHistoryAttemptsParams{
			TenantID:   y.Tenant,
			Deliveries: of.deliveries,
			Since:      of.since,
			Until:      of.until,
		}); err != nil {
			return err
		}
	}
	attempts, err := q.HistoryAttempts(ctx, sql.HistoryAttemptsParams{
		TenantID:   y.Tenant,
		Deliveries: of.deliveries,
		Since:      of.since,
		Until:      of.until,
	})
	if err != nil {
		return err
	}
	add("attempts", attempts)
	dead, err := q.HistoryDeadLetters(ctx, y.Tenant, of.deliveries)
	if err != nil {
		return err
	}
	add("dead_letters", dead)
	canceled, err := q.HistoryCancellations(ctx, y.Tenant, of.deliveries)
	if err != nil {
		return err
	}
	add("cancellations", canceled)
	return nil
}

// Placed says where in a set of files a part's rows are: the first row and the number of rows in each table.
type Placed struct {
	Places []int64
	Bytes  int64 // the part's share of the objects
}

// Keep records the files of a part. They replace those that the part had.
func (y Day) Keep(ctx context.Context, d *db.DB, p Part, in File, at Placed) error {
	counts, err := json.Marshal(p.Counts)
	if err != nil {
		return err
	}
	return y.as(ctx, d, func(q *sql.Queries) error {
		others := p.Others
		if others == nil {
			others = []id.UUID{}
		}
		return q.KeepHistoryPart(ctx, sql.KeepHistoryPartParams{
			TenantID: y.Tenant,
			Day:      y.At,
			Low:      p.Low,
			High:     p.High,
			Object:   in.ID.String(),
			Lines:    p.Sum[:],
			N:        p.N,
			Bytes:    at.Bytes,
			Size:     p.Size,
			Counts:   counts,
			Others:   others,
			FileID:   &in.ID,
			Places:   at.Places,
		})
	})
}

// Ready reports why a day can't leave now, if it can't: something waits, or its ledger differs from its rows.
func (y Day) Ready(ctx context.Context, d *db.DB) error {
	return y.as(ctx, d, func(q *sql.Queries) error {
		_, err := y.agree(ctx, q)
		return err
	})
}

// Check compares a day's ledger with its rows and with its objects, and records the totals.
func (y Day) Check(ctx context.Context, d *db.DB, sum history.Counts, bytes int64) error {
	counts, err := json.Marshal(sum)
	if err != nil {
		return err
	}
	return y.as(ctx, d, func(q *sql.Queries) error {
		r, err := y.agree(ctx, q)
		if r.RowsN != sum.Deliveries || r.RowsEvents != sum.Events {
			return errors.Join(err, ErrRows)
		}
		if err != nil {
			return err
		}
		return q.SetHistoryCounts(ctx, sql.SetHistoryCountsParams{
			TenantID: y.Tenant,
			Day:      y.At,
			Counts:   counts,
			Bytes:    bytes,
		})
	})
}

// agree compares a day's ledger with its rows.
func (y Day) agree(ctx context.Context, q *sql.Queries) (r sql.ReconcilePagesRow, err error) {
	entered, err := q.AreEventsEntered(ctx, y.At)
	if err != nil {
		return r, err
	}
	rows, err := q.ReconcilePages(ctx, sql.ReconcilePagesParams{
		Day:         y.At,
		Tenants:     []id.UUID{y.Tenant},
		Low:         y.At,
		High:        y.end(),
		First:       id.FirstAt(y.At),
		Last:        id.FirstAt(y.end()),
		CountEvents: true,
	})
	if err != nil || len(rows) != 1 {
		return r, errors.Join(err, errState)
	}
	r = rows[0]
	if r.RowsWaiting > 0 || r.Queued > 0 {
		return r, errNeeded
	}
	totals := reconcile.Entered(r.Accepted, r.Delivered, r.Failed, r.Canceled)
	tables := reconcile.Page{
		Accepted:  r.RowsN,
		Delivered: r.RowsDelivered,
		Failed:    r.RowsFailed,
		Canceled:  r.RowsCanceled,
	}
	if entered {
		totals.Events, tables.Events = r.Events, r.RowsEvents
	}
	if reconcile.Amount(totals, tables) == 0 {
		return r, nil
	}
	accepted, err := q.IsDifferenceAccepted(ctx, y.Tenant, y.At)
	if err == nil && !accepted {
		err = errTotals
	}
	return r, err
}

// To moves the day to another state.
func (y *Day) To(ctx context.Context, d *db.DB, state history.State) error {
	err := y.as(ctx, d, func(q *sql.Queries) error {
		if state == history.Back || state == history.Exporting {
			if err := q.ForgetHistoryParts(ctx, y.Tenant, y.At); err != nil {
				return err
			}
		}
		return q.SetHistory(ctx, sql.SetHistoryParams{TenantID: y.Tenant, Day: y.At, State: string(state)})
	})
	if err == nil {
		y.State = state
	}
	return err
}

// Leave deletes the rows of a part if they still match its object. Otherwise it returns false and changes nothing.
func (y Day) Leave(ctx context.Context, d *db.DB, part sql.HistoryPart) (left bool, err error) {
	err = y.as(ctx, d, func(q *sql.Queries) error {
		if err := q.PlanByIndex(ctx); err != nil {
			return err
		}
		p := Part{Low: part.Low, High: part.High}
		of, err := y.read(ctx, q, &p, true)
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(p.Lines); string(sum[:]) != string(part.Lines) {
			return ErrRows
		}
		needed, err := q.NeedsHistory(ctx, sql.NeedsHistoryParams{
			TenantID: y.Tenant,
			First:    id.FirstAt(p.Low),
			Last:     id.FirstAt(p.High),
		})
		if err != nil {
			return err
		}
		if needed {
			return errNeeded
		}
		n, err := q.DeleteHistory(ctx, sql.DeleteHistoryParams{
			TenantID:   y.Tenant,
			Deliveries: of.deliveries,
			Since:      of.since,
			Until:      of.until,
			Low:        p.Low,
			High:       p.High,
		})
		if err != nil {
			return err
		}
		if n != part.N {
			return ErrRows
		}
		return q.MarkHistoryPart(ctx, sql.MarkHistoryPartParams{
			TenantID: y.Tenant,
			Day:      y.At,
			Low:      part.Low,
			Gone:     true,
		})
	})
	if errors.Is(err, ErrRows) {
		return false, nil
	}
	return err == nil, err
}

// Return inserts the rows of a part again.
func (y Day) Return(ctx context.Context, d *db.DB, low time.Time, rows history.Rows) error {
	sum := rows.Sum()
	return y.as(ctx, d, func(q *sql.Queries) error {
		parts, err := q.HistoryParts(ctx, y.Tenant, y.At)
		if err != nil {
			return err
		}
		for _, part := range parts {
			if !part.Low.Equal(low) || !part.Gone {
				continue
			}
			if string(sum[:]) != string(part.Lines) {
				return history.ErrLines
			}
			if err := q.DropLentEvents(ctx, sql.DropLentEventsParams{TenantID: y.Tenant, Low: part.Low, High: part.High}); err != nil {
				return err
			}
			var n int64
			for i, of := range rows.ByTable() {
				if err := insertRows(ctx, q, part, history.Tables[i], of); err != nil {
					return err
				}
				n += int64(len(of))
			}
			if n != part.N {
				return errArrived
			}
			if err := withhold(ctx, q, part, rows); err != nil {
				return err
			}
			letters, err := rows.LetterIDs()
			if err != nil {
				return err
			}
			if err := markReplayed(ctx, q, y.Tenant, letters); err != nil {
				return err
			}
			return q.MarkHistoryPart(ctx, sql.MarkHistoryPartParams{
				TenantID: y.Tenant,
				Day:      y.At,
				Low:      part.Low,
				Gone:     false,
			})
		}
		return nil // they are there already
	})
}

// OfTenant reports whether a tenant has anything in the store, and whether the tenant now lives in another home.
func OfTenant(ctx context.Context, d *db.DB, tenant id.UUID) (has, moved bool, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		if has, err = q.HasHistory(ctx, tenant); err != nil {
			return err
		}
		moved, err = q.HasMovedOut(ctx, tenant)
		return err
	})
	return has, moved, err
}

// List returns a page of the days of a tenant that are in the store or were, newest first. Positions are dates.
func List(ctx context.Context, q *sql.Queries, tenant id.UUID, r show.Range) (show.Page[history.Day], error) {
	before := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if r.After != nil {
		before, _ = time.Parse(time.DateOnly, string(r.After)) // as Cut wrote it
	}
	rows, err := q.ListHistory(ctx, sql.ListHistoryParams{TenantID: tenant, Before: before, Limit: int32(r.Limit + 1)})
	page := show.Cut(rows, r.Limit, func(row sql.ListHistoryRow) []byte { return []byte(row.HistoryDay.Day.Format(time.DateOnly)) })
	return show.Each(page, func(row sql.ListHistoryRow) history.Day {
		day := dayOf(row.HistoryDay)
		day.Expunging = row.Expunging
		return day
	}), err
}

// InStorage lists the days of a tenant between two moments whose rows are not all in the tables, newest first.
func InStorage(ctx context.Context, q *sql.Queries, tenant id.UUID, since, until time.Time) ([]history.Day, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if since.Before(floor) {
		since = floor
	}
	rows, err := q.DaysInStorage(ctx, sql.DaysInStorageParams{
		TenantID: tenant,
		Since:    since.UTC(),
		Until:    until.UTC(),
		Limit:    history.MaxDays,
	})
	found := make([]history.Day, len(rows))
	for i, row := range rows {
		found[i] = history.Day{
			At:      row.Day,
			State:   history.State(row.State),
			Delayed: row.Delayed,
			Counts:  history.Counts{Events: row.Events, Deliveries: row.Deliveries},
		}
	}
	return found, err
}

// Ask requests that a day is restored, or stays restored for longer, with an entry in the audit log. A day that is not
// in the store is fault.ErrNotFound.
func Ask(ctx context.Context, q *sql.Queries, tenant id.UUID, day time.Time, by db.Author) (history.Day, error) {
	row, err := q.AskHistory(ctx, tenant, day)
	if err != nil {
		return history.Day{}, err
	}
	return dayOf(row), db.Audit(ctx, q, by, db.Audited{
		Tenant: &tenant,
		Action: "history.restored",
		Kind:   "day",
		Object: day.Format(time.DateOnly),
	})
}

func dayOf(row sql.HistoryDay) history.Day {
	day := history.Day{
		At:       row.Day,
		State:    history.State(row.State),
		Bytes:    row.Bytes,
		StoredAt: db.OrZero(row.StoredAt),
		AskedAt:  db.OrZero(row.BackAt),
		Delayed:  row.FailedAt != nil,
	}
	_ = json.Unmarshal(row.Counts, &day.Counts) // written by Posthorn
	return day
}
