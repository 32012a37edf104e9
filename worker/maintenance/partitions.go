package maintenance

import (
	"context"
	"time"

	"posthorn/db/maintenance"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/retry"
)

const partitionsEvery = 10 * time.Minute

// partitions creates the partitions of the coming days and drops those that no tenant keeps and in which nothing
// waits any more.
func (m *Maintenance) partitions(ctx context.Context) error {
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	if err := m.db.MakeDays(ctx, now); err != nil {
		return err
	}
	if quiet, err := m.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	return m.DropExpiredDays(ctx, now)
}

// DropExpiredDays drops the days that no tenant keeps at now (docs/adr/0025-late-days.md).
func (m *Maintenance) DropExpiredDays(ctx context.Context, now time.Time) error {
	var keep int32
	if err := m.db.Worker(ctx, func(q *sql.Queries) (err error) {
		if keep, err = q.LongestRetention(ctx); err != nil {
			return err
		}
		if _, err = q.DropOldFailures(ctx); err != nil {
			return err
		}
		if _, err = q.DropOldStats(ctx, keep); err != nil {
			return err
		}
		if _, err = q.ForgetOldBulkJobs(ctx, keep); err != nil {
			return err
		}
		_, err = q.ForgetOldShares(ctx)
		return err
	}); err != nil {
		return err
	}
	days, err := maintenance.PartitionDays(ctx, m.db)
	if err != nil {
		return err
	}
	cutoff := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -int(keep))
	if len(days) > 0 && days[0].Before(cutoff) {
		if err := m.dropDays(ctx, days, cutoff, now); err != nil {
			return err
		}
	}
	return maintenance.DropOldIndexes(ctx, m.db)
}

// dropDays drops the days before cutoff in which nothing waits and nothing ended within the last week. A delivery waits
// for as long as its retries last, counted from deliver_at; what waits for longer ends, and is shown for a week.
func (m *Maintenance) dropDays(ctx context.Context, days []time.Time, cutoff, now time.Time) error {
	var longest int64
	if err := m.db.Worker(ctx, func(q *sql.Queries) (err error) {
		longest, err = q.LongestRetries(ctx)
		return err
	}); err != nil {
		return err
	}
	overdue := now.Add(-retry.Patience(time.Duration(longest) * time.Second))
	for {
		n, err := queue.FailBefore(ctx, m.db, cutoff, overdue, sweepMost)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	kept := map[string]bool{}
	if err := m.db.Worker(ctx, func(q *sql.Queries) error {
		if _, err := q.ForgetLateDays(ctx, now); err != nil {
			return err
		}
		list, err := q.KeptDays(ctx, id.FirstAt(cutoff), now)
		for _, day := range list {
			kept[day.Format(time.DateOnly)] = true
		}
		return err
	}); err != nil {
		return err
	}
	since := id.UUID{}
	for _, day := range days {
		if !day.Before(cutoff) {
			break
		}
		end := day.AddDate(0, 0, 1)
		if kept[day.Format(time.DateOnly)] {
			since = id.FirstAt(end)
			continue
		}
		if err := m.dropDay(ctx, day, since, end); err != nil {
			return err
		}
	}
	return nil
}

// dropDay drops a day, and what is listed of it and of the days before it since an id.
func (m *Maintenance) dropDay(ctx context.Context, day time.Time, since id.UUID, end time.Time) error {
	if err := maintenance.DropDay(ctx, m.db, day); err != nil {
		return err
	}
	before := id.FirstAt(end)
	if err := m.db.Worker(ctx, func(q *sql.Queries) error {
		if _, err := q.DropOldDeadLetters(ctx, since, before); err != nil {
			return err
		}
		if _, err := q.DropOldReplays(ctx, since, before); err != nil {
			return err
		}
		if _, err := q.DropOldCancellations(ctx, since, before); err != nil {
			return err
		}
		_, err := q.DropOldDiscrepancies(ctx, end)
		return err
	}); err != nil {
		return err
	}
	m.log.Info("day dropped", "day", day.Format(time.DateOnly))
	return nil
}
