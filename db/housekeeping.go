package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// Chore runs fn when a named chore has not been done for a while, by the database's clock, whichever worker asks. fn runs
// inside the transaction that marks it done: it is done once, or not marked.
func (d *DB) Chore(ctx context.Context, name string, every time.Duration, fn func(*Queries) error) (did bool, err error) {
	err = d.Worker(ctx, func(q *Queries) error {
		if err := q.InsertChore(ctx, name); err != nil {
			return err
		}
		if _, err := q.ClaimChore(ctx, ClaimChoreParams{Chore: name, Seconds: every.Seconds()}); err != nil {
			if isNotFound(translate(err)) {
				return nil
			}
			return err
		}
		did = true
		return fn(q)
	})
	return did && err == nil, err
}

// takenRow is a queue row that was taken away because its delivery ends without a send.
type takenRow = TakeDeletedRowsRow

// FailDeletedEndpoint ends up to most deliveries that wait for a deleted endpoint: they fail, or are canceled where a
// developer's own program would have got them. It returns how many it found.
func (d *DB) FailDeletedEndpoint(ctx context.Context, endpointID id.UUID, most int32) (n int, err error) {
	err = d.Worker(ctx, func(q *Queries) error {
		rows, err := q.TakeDeletedRows(ctx, TakeDeletedRowsParams{Endpoint: endpointID, Most: most})
		if err != nil {
			return err
		}
		if n = len(rows); n == 0 {
			_, err := q.RemoveLane(ctx, endpointID)
			return err
		}
		kind, err := q.EndpointKind(ctx, endpointID)
		switch {
		case err != nil && !noRows(err):
			return err
		case kind == string(endpoint.Listen):
			return cancelTaken(ctx, q, rows)
		}
		return failTaken(ctx, q, rows, delivery.EndpointDeleted)
	})
	return n, err
}

// FailBefore ends up to most deliveries that themselves, or whose events, were created before a moment.
func (d *DB) FailBefore(ctx context.Context, before time.Time, most int32) (n int, err error) {
	err = d.Worker(ctx, func(q *Queries) error {
		rows, err := q.TakeExpiringRows(ctx, TakeExpiringRowsParams{Before: FirstID(before), Most: most})
		if err != nil {
			return err
		}
		if n = len(rows); n == 0 {
			return nil
		}
		taken := make([]takenRow, n)
		for i, r := range rows {
			taken[i] = takenRow(r)
		}
		return failTaken(ctx, q, taken, delivery.Expired)
	})
	return n, err
}

// failTaken fails the deliveries of rows that were just taken from the queue, lists them as dead letters and enters the
// books.
func failTaken(ctx context.Context, q *Queries, rows []takenRow, reason delivery.Reason) error {
	books := Books{}
	days := map[int64]*FailDeliveriesParams{}
	for _, r := range rows {
		created := r.DeliveryID.Time()
		p := days[created.Unix()/86400]
		if p == nil {
			p = &FailDeliveriesParams{Reason: reason}
			days[created.Unix()/86400] = p
		}
		p.Tenants, p.Ids, p.Created = append(p.Tenants, r.TenantID), append(p.Ids, r.DeliveryID), append(p.Created, created)
		p.Low, p.High = widen(p.Low, p.High, created)
		books.At(r.TenantID, created).Failed++
	}
	for _, p := range days {
		ended, err := q.FailDeliveries(ctx, *p)
		if err != nil {
			return err
		}
		letters := InsertDeadLettersParams{}
		for _, e := range ended {
			letters.Tenants, letters.Deliveries = append(letters.Tenants, e.TenantID), append(letters.Deliveries, e.ID)
			letters.Endpoints, letters.Types = append(letters.Endpoints, e.EndpointID), append(letters.Types, e.EventType)
			letters.Reasons = append(letters.Reasons, int16(reason))
		}
		if len(letters.Tenants) > 0 {
			if err := q.InsertDeadLetters(ctx, letters); err != nil {
				return err
			}
		}
	}
	return q.enterSettled(ctx, books)
}

// enterSettled enters the books of any tenants, under the worker's role.
func (q *Queries) enterSettled(ctx context.Context, books Books) error {
	tenants, bookDays, counts := books.columns()
	return q.EnterSettled(ctx, EnterSettledParams{
		Tenants: tenants, Days: bookDays, Accepted: counts[0], Delivered: counts[1], Failed: counts[2], Canceled: counts[3], Expunged: counts[4],
	})
}

// FirstID is the smallest id of a moment.
func FirstID(at time.Time) id.UUID { return id.New(at, [10]byte{}) }

// MakePartitions makes sure that the days from first to last have their partitions. The owner does it: no role may.
func (d *DB) MakePartitions(ctx context.Context, first, last time.Time) (made int, err error) {
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		// Several workers make the same day's at the same moment: one after the other.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", partitionsLock); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT posthorn.make_partitions($1::date, $2::date)", first, last).Scan(&made)
	})
	return made, translate(err)
}

// partitionsLock is the key of the lock under which partitions are made; any number that nobody else takes.
const partitionsLock = 0x706f7374_70617274

// PartitionDays lists the days that have partitions, oldest first.
func (d *DB) PartitionDays(ctx context.Context) (days []time.Time, err error) {
	rows, err := d.pool.Query(ctx, "SELECT posthorn.partition_days()")
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var day time.Time
		if err := rows.Scan(&day); err != nil {
			return nil, translate(err)
		}
		days = append(days, day)
	}
	return days, translate(rows.Err())
}

// DropDay drops one day of the bulk tables. It waits for locks a short while only: everything else would queue behind it.
func (d *DB) DropDay(ctx context.Context, day time.Time) error {
	for _, parent := range []string{"attempts", "deliveries", "events"} {
		conn, err := d.pool.Acquire(ctx)
		if err != nil {
			return translate(err)
		}
		_, err = conn.Exec(ctx, "BEGIN; SET LOCAL lock_timeout = '2s'")
		if err == nil {
			_, err = conn.Exec(ctx, "SELECT posthorn.drop_partition($1, $2::date)", parent, day)
		}
		if err == nil {
			_, err = conn.Exec(ctx, "COMMIT")
		} else {
			_, _ = conn.Exec(context.WithoutCancel(ctx), "ROLLBACK")
		}
		conn.Release()
		if err != nil {
			return translate(err)
		}
	}
	return nil
}
