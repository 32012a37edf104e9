package worker

import (
	"context"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/domain/inbox"
)

// The schedule of housekeeping. Every worker looks; a chore that the database knows by name is done by one of them.
const (
	vacuumEvery     = 2 * time.Second
	analyzeEvery    = 5 * time.Second
	analyzeLeast    = 500 // rows; fewer are read in no time by any plan
	foldEvery       = 5 * time.Second
	foldMost        = 2000
	hoursEvery      = time.Minute
	sweepEvery      = time.Second
	sweepMost       = 500
	gaugeEvery      = 15 * time.Second
	gaugeRests      = 400 // times what a look took: 100,000 that wait take 0.1 s of a core, which the slowest hundredth of all would show
	listenEvery     = time.Minute
	listenFor       = 24 * time.Hour // how long a listener of which nothing is heard stays
	expireEvery     = time.Minute
	expireMost      = 10000
	booksEvery      = time.Minute
	quotasEvery     = 30 * time.Second
	booksBudget     = 200_000 // deliveries that are counted at a time
	eraseEvery      = time.Minute
	eraseAfter      = 5 * time.Minute // what was under way when a tenant was deleted has ended, and is recorded
	eraseMost       = 500
	forgetEvery     = 10 * time.Minute
	forgetMost      = 1000
	partitionsEvery = 10 * time.Minute
	partitionsAhead = 7 * 24 * time.Hour
)

// maintain runs the housekeeping until the context ends: each chore in a loop of its own, so that a slow one delays no
// other.
func (w *Worker) maintain(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for _, c := range []struct {
		name  string
		every time.Duration
		do    func(context.Context) error
	}{
		{"vacuum", vacuumEvery, w.vacuum},
		{"analyze young days", analyzeEvery, func(ctx context.Context) error {
			_, err := w.db.AnalyzeYoungPartitions(ctx, analyzeLeast)
			return err
		}},
		{"fold the ledger", foldEvery, w.fold},
		{"fold the hours", hoursEvery, func(ctx context.Context) error {
			_, err := w.db.Chore(ctx, "fold hours", hoursEvery, func(q *db.Queries) error { return q.FoldHours(ctx) })
			return err
		}},
		{"fail deliveries of deleted endpoints", sweepEvery, w.sweepDeleted},
		{"erase deleted tenants", eraseEvery, w.eraseTenants},
		{"end abandoned listeners", listenEvery, func(ctx context.Context) error {
			_, err := w.db.EndAbandoned(ctx, listenFor, sweepMost)
			return err
		}},
		{"expire idempotency keys", expireEvery, w.expireKeys},
		{"forget expired sessions", forgetEvery, w.forgetExpired},
		{"partitions", partitionsEvery, w.partitions},
		{"gauges", gaugeEvery, w.gauges},
		{"assess health", assessEvery, w.assessAll},
		{"expire held deliveries", heldEvery, w.expireHeld},
		{"check the books", booksEvery, w.checkBooks},
		{"notices of quotas", quotasEvery, func(ctx context.Context) error {
			now, err := w.db.ServerTime(ctx)
			if err == nil {
				_, err = w.db.PostQuotaNotices(ctx, now)
			}
			return err
		}},
		{"sweep test inboxes", time.Minute, func(ctx context.Context) error {
			return w.db.Worker(ctx, func(q *db.Queries) error {
				_, err := q.SweepInboxes(ctx, inbox.KeptFor.Seconds())
				return err
			})
		}},
		{"forget dead workers", time.Hour, func(ctx context.Context) error {
			return w.db.Worker(ctx, func(q *db.Queries) error { return q.ForgetDeadWorkers(ctx) })
		}},
	} {
		group.Go(func() {
			for {
				if err := c.do(ctx); err != nil && ctx.Err() == nil && !db.IsUnavailable(err) {
					w.log.Warn("housekeeping failed", "chore", c.name, "error", err)
				}
				if !sleep(ctx, c.every) {
					return
				}
			}
		})
	}
}

// vacuum clears dead rows where there are many.
func (w *Worker) vacuum(ctx context.Context) error {
	return w.db.VacuumWhereDead(ctx, 2000, "queue", "outbox", "ledger", "lanes", "books", "endpoint_stats", "endpoint_health", "quota_buckets")
}

// fold moves the ledger into the books and roll-ups.
func (w *Worker) fold(ctx context.Context) error {
	for {
		var n int64
		if _, err := w.db.Chore(ctx, "fold", 0, func(q *db.Queries) (err error) {
			n, err = q.FoldLedger(ctx, foldMost)
			return err
		}); err != nil || n < foldMost {
			return err
		}
	}
}

// checkBooks compares some pages of the books with the tables.
func (w *Worker) checkBooks(ctx context.Context) error {
	n, err := w.db.CheckBooks(ctx, booksEvery, booksBudget)
	if n > 0 {
		w.log.Error("the books differ from the deliveries; the console's page of the books names the rows", "pages", n)
	}
	return err
}

// sweepDeleted ends what waits for deleted endpoints, and their lanes.
func (w *Worker) sweepDeleted(ctx context.Context) error {
	var lanes []db.DeletedLanesRow
	if err := w.db.Worker(ctx, func(q *db.Queries) (err error) {
		lanes, err = q.DeletedLanes(ctx, 100)
		return err
	}); err != nil {
		return err
	}
	for _, l := range lanes {
		if err := w.failQueued(ctx, l.EndpointID); err != nil {
			return err
		}
	}
	return nil
}

// failQueued ends all that waits for an endpoint that is no more, and removes its lane.
func (w *Worker) failQueued(ctx context.Context, endpoint id.UUID) error {
	for {
		if n, err := w.db.FailDeletedEndpoint(ctx, endpoint, sweepMost); err != nil || n == 0 {
			return err
		}
	}
}

// eraseTenants erases what deleted tenants had. It rests as long as each batch took, so that it never has more than half a
// connection's work.
func (w *Worker) eraseTenants(ctx context.Context) error {
	tenants, err := w.db.TenantsToErase(ctx, eraseAfter)
	if err != nil {
		return err
	}
	for _, u := range tenants {
		done, err := w.db.EraseTenant(ctx, u, eraseMost, func(took time.Duration) error {
			sleep(ctx, took)
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		if done.Done {
			w.log.Info("tenant erased", "tenant", id.Tenant.Format(u), "events", done.Events, "deliveries", done.Deliveries, "attempts", done.Attempts)
		}
	}
	return nil
}

func (w *Worker) expireKeys(ctx context.Context) error {
	now, err := w.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	if quiet, err := w.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	for {
		var n int64
		if err := w.db.Worker(ctx, func(q *db.Queries) (err error) {
			n, err = q.ExpireIdempotencyKeys(ctx, expireMost)
			return err
		}); err != nil || n < expireMost {
			return err
		}
	}
}

// forgetExpired takes away the sessions, links and counts of tries that are good for nothing any more.
func (w *Worker) forgetExpired(ctx context.Context) error {
	for {
		var n int64
		if _, err := w.db.Chore(ctx, "forget expired sessions", 0, func(q *db.Queries) (err error) {
			n, err = q.ForgetExpired(ctx, forgetMost)
			return err
		}); err != nil || n < forgetMost {
			return err
		}
	}
}

// partitions makes the days ahead and drops those that no tenant keeps any more, after ending what still points there.
func (w *Worker) partitions(ctx context.Context) error {
	now, err := w.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	// A day back: an id may be from the other side of midnight.
	if _, err := w.db.MakePartitions(ctx, now.Add(-24*time.Hour), now.Add(partitionsAhead)); err != nil {
		return err
	}
	if quiet, err := w.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	return w.Retire(ctx, now)
}

// Retire drops the days that lie before the platform's horizon as seen at now.
func (w *Worker) Retire(ctx context.Context, now time.Time) error {
	var keep int32
	if err := w.db.Worker(ctx, func(q *db.Queries) (err error) {
		if keep, err = q.LongestRetention(ctx); err != nil {
			return err
		}
		if _, err = q.DropOldFailures(ctx); err != nil {
			return err
		}
		if _, err = q.DropOldStats(ctx, keep); err != nil {
			return err
		}
		_, err = q.ForgetOldBulkJobs(ctx, keep)
		return err
	}); err != nil {
		return err
	}
	days, err := w.db.PartitionDays(ctx)
	if err != nil {
		return err
	}
	horizon := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -int(keep))
	for _, day := range days {
		if !day.Before(horizon) {
			break
		}
		end := day.AddDate(0, 0, 1)
		for {
			n, err := w.db.FailBefore(ctx, end, sweepMost)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
		if err := w.db.DropDay(ctx, day); err != nil {
			return err
		}
		if err := w.db.Worker(ctx, func(q *db.Queries) error {
			if _, err := q.DropOldDeadLetters(ctx, db.FirstID(end)); err != nil {
				return err
			}
			if _, err := q.DropOldReplays(ctx, db.FirstID(end)); err != nil {
				return err
			}
			if _, err := q.DropOldCancellations(ctx, db.FirstID(end)); err != nil {
				return err
			}
			_, err := q.DropOldDifferences(ctx, end)
			return err
		}); err != nil {
			return err
		}
		w.log.Info("day dropped", "day", day.Format(time.DateOnly))
	}
	return nil
}

// gauges counts what waits, and the more rarely the longer that takes.
func (w *Worker) gauges(ctx context.Context) error {
	began := time.Now()
	err := w.measure(ctx)
	sleep(ctx, min(gaugeRests*time.Since(began), time.Minute)-gaugeEvery)
	return err
}

// measure sets the gauges once.
func (w *Worker) measure(ctx context.Context) error {
	var byAge []db.PendingByAgeRow
	var dead, rejected int64
	var books db.BooksStateRow
	var outbox db.OutboxSizeRow
	if err := w.db.Worker(ctx, func(q *db.Queries) (err error) {
		if byAge, err = q.PendingByAge(ctx); err != nil {
			return err
		}
		if outbox, err = q.OutboxSize(ctx); err != nil {
			return err
		}
		if rejected, err = q.CountRejected(ctx); err != nil {
			return err
		}
		if books, err = q.ReadBooksState(ctx); err != nil {
			return err
		}
		dead, err = q.CountDeadLetters(ctx)
		return err
	}); err != nil {
		return err
	}
	counts := [len(ages)]int64{}
	var sendable int64
	var lag float64
	for _, a := range byAge {
		counts[a.Bucket] = a.N
		sendable += a.Sendable
		lag = max(lag, a.LagSeconds)
	}
	w.metrics.outbox.Set(float64(sendable + outbox.N))
	w.metrics.lag.Set(max(lag, outbox.LagSeconds))
	w.metrics.rejected.Set(float64(rejected))
	for i, label := range ages {
		w.metrics.pending.WithLabelValues(label).Set(float64(counts[i]))
	}
	w.metrics.dead.Set(float64(dead))
	w.metrics.books.Set(float64(books.Differs))
	w.metrics.unchecked.Set(books.Unchecked)
	return nil
}
