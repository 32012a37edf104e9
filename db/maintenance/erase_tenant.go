package maintenance

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// Erased is how much of a deleted tenant was erased. Done says that only its row, its audit log and its ledger remain.
type Erased struct {
	Events, Deliveries, Attempts, Rows int64 // rows of all other tables
	Done                               bool
}

// TenantsToErase lists the tenants that were deleted at least this long ago and are not erased yet.
func TenantsToErase(ctx context.Context, d *db.DB, after time.Duration) (ids []id.UUID, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		ids, err = q.TenantsToErase(ctx, after.Seconds())
		return err
	})
	return ids, err
}

// EraseTenant erases a deleted tenant, in transactions of a bounded number of rows for each table, one day of the bulk
// tables after the other. Other tenants share the partitions, so it neither drops nor locks one. After each batch it
// calls rest with the batch's duration. It stops if another worker works on the same tenant, if a delivery still waits,
// or if rest fails. The next call continues from there.
func EraseTenant(ctx context.Context, d *db.DB, tenant id.UUID, most int32, rest func(took time.Duration) error) (out Erased, err error) {
	if err := endQueued(ctx, d, tenant, most); err != nil {
		return out, err
	}
	days, err := PartitionDays(ctx, d)
	if err != nil {
		return out, err
	}
	e := erasure{db: d, tenant: tenant, most: most, rest: rest, sum: &out}
	waits, leftovers, err := e.left(ctx, days)
	if err != nil {
		return out, err
	}
	for _, day := range days {
		for _, step := range []eraseStep{e.deliveries, e.events} {
			if err := e.day(ctx, day, step); err != nil || e.busy {
				return out, err
			}
		}
		if leftovers {
			if err := e.leftovers(ctx, day); err != nil || e.busy {
				return out, err
			}
		}
	}
	for {
		n, err := e.batch(ctx, func(q *sql.Queries) (int64, error) {
			keys, err := q.EraseIdempotencyKeys(ctx, tenant, most)
			if err != nil {
				return 0, err
			}
			rows, err := q.EraseRest(ctx, tenant, most)
			out.Rows += keys + rows
			return keys + rows, err
		})
		if err != nil || e.busy || n == 0 && waits {
			return out, err
		}
		if n == 0 {
			return out, e.end(ctx)
		}
	}
}

// endQueued ends the waiting deliveries of a tenant's endpoints, as the sweep of deleted endpoints does.
func endQueued(ctx context.Context, d *db.DB, tenant id.UUID, most int32) error {
	for {
		var endpoints []id.UUID
		if err := d.Console(ctx, func(q *sql.Queries) (err error) {
			endpoints, err = q.QueuedEndpoints(ctx, tenant)
			return err
		}); err != nil {
			return err
		}
		ended := 0
		for _, endpointID := range endpoints {
			n, err := queue.FailDeletedEndpoint(ctx, d, endpointID, most)
			if err != nil {
				return err
			}
			ended += n
		}
		if ended == 0 {
			return nil // nothing waits, or another worker handles it
		}
	}
}

// erasure is one call of EraseTenant.
type erasure struct {
	db     *db.DB
	tenant id.UUID
	most   int32
	rest   func(time.Duration) error
	sum    *Erased
	busy   bool // another worker works on it, or it is done
}

// span is the range of a day that is not erased yet.
type span struct{ low, high time.Time }

// eraseStep erases some rows of a day, and returns how many, and where the next ones start.
type eraseStep func(ctx context.Context, q *sql.Queries, of span) (n int64, next time.Time, err error)

// batch runs one transaction, under the lock that is the lease, and rests.
func (e *erasure) batch(ctx context.Context, do func(*sql.Queries) (int64, error)) (n int64, err error) {
	began := time.Now()
	err = e.db.Console(ctx, func(q *sql.Queries) error {
		if _, err := q.HoldErasure(ctx, e.tenant); err != nil {
			if e.busy = db.IsNoRows(err); e.busy {
				return nil
			}
			return err
		}
		if err := q.PlanByIndex(ctx); err != nil {
			return err
		}
		n, err = do(q)
		return err
	})
	if err != nil || e.busy || n <= 0 {
		return n, err
	}
	return n, e.rest(time.Since(began))
}

// day repeats a step until the day has no rows for it.
func (e *erasure) day(ctx context.Context, day time.Time, step eraseStep) error {
	left := span{day, day.AddDate(0, 0, 1)}
	for {
		n, err := e.batch(ctx, func(q *sql.Queries) (n int64, err error) {
			n, left.low, err = step(ctx, q, left)
			return n, err
		})
		if err != nil || e.busy || n == 0 {
			return err
		}
	}
}

// leftoverPages is how much of a day's attempts one transaction reads: 32 MiB.
const leftoverPages = 4096

// left reports whether deliveries still wait that this call can't end, and whether there can be attempts without a
// delivery. Those are searched for once.
func (e *erasure) left(ctx context.Context, days []time.Time) (waits, leftovers bool, err error) {
	err = e.db.Console(ctx, func(q *sql.Queries) error {
		if waits, err = q.HasLanes(ctx, e.tenant); err != nil || waits || len(days) == 0 {
			return err
		}
		leftovers, err = q.MayHaveLeftovers(ctx, e.tenant, days[0])
		return err
	})
	return waits, leftovers, err
}

// leftovers erases the attempts of a day that have no delivery.
func (e *erasure) leftovers(ctx context.Context, day time.Time) error {
	for page := int64(0); page >= 0; {
		more, err := e.batch(ctx, func(q *sql.Queries) (int64, error) {
			row, err := q.EraseLeftovers(ctx, sql.EraseLeftoversParams{
				TenantID: e.tenant,
				Day:      day,
				FromPage: page,
				Pages:    leftoverPages,
			})
			e.sum.Attempts += row.N
			page = row.NextPage
			return page, err
		})
		if err != nil || e.busy || more < 0 {
			return err
		}
	}
	return nil
}

func (e *erasure) deliveries(ctx context.Context, q *sql.Queries, of span) (int64, time.Time, error) {
	// An attempt's time comes from the clock of its machine. No clock is wrong by more than a day.
	row, err := q.EraseDeliveries(ctx, sql.EraseDeliveriesParams{
		TenantID: e.tenant,
		Low:      of.low,
		High:     of.high,
		Limit:    e.most,
		Since:    of.low.AddDate(0, 0, -1),
	})
	e.sum.Deliveries += row.Deliveries
	e.sum.Attempts += row.Attempts
	return row.Deliveries, row.Next, err
}

func (e *erasure) events(ctx context.Context, q *sql.Queries, of span) (int64, time.Time, error) {
	row, err := q.EraseEvents(ctx, sql.EraseEventsParams{TenantID: e.tenant, Low: of.low, High: of.high, Limit: e.most})
	e.sum.Events += row.Events
	return row.Events, row.Next, err
}

// end marks the tenant as erased, unless a worker still owns a lane of it.
func (e *erasure) end(ctx context.Context) error {
	_, err := e.batch(ctx, func(q *sql.Queries) (int64, error) {
		waits, err := q.HasLanes(ctx, e.tenant)
		if err != nil || waits {
			return 0, err
		}
		e.sum.Done = true
		if err := q.EndErasure(ctx, e.tenant); err != nil {
			return 0, err
		}
		stored, err := q.PurgedOf(ctx, e.tenant)
		if err != nil {
			return 0, err
		}
		return 0, db.Audit(ctx, q, db.Author{Kind: "system"}, db.Audited{
			Tenant:  &e.tenant,
			Action:  "tenant.erased",
			Kind:    "tenant",
			Object:  id.Tenant.Format(e.tenant),
			Details: map[string]int64{"stored_deliveries": stored},
		})
	})
	return err
}
