package maintenance

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/maintenance"
	"posthorn/db/queue"
	"posthorn/db/sql"
)

const (
	partitionsEvery = 10 * time.Minute
	partitionsAhead = 7 * 24 * time.Hour
)

// partitions creates the partitions of the coming days and drops those that no tenant keeps. Before that it ends the
// deliveries that still wait in them.
func (m *Maintenance) partitions(ctx context.Context) error {
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	// One day back: an id can be from before midnight.
	if _, err := maintenance.MakePartitions(ctx, m.db, now.Add(-24*time.Hour), now.Add(partitionsAhead)); err != nil {
		return err
	}
	if quiet, err := m.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	return m.DropExpiredDays(ctx, now)
}

// DropExpiredDays drops the days that no tenant keeps at now.
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
		_, err = q.ForgetOldBulkJobs(ctx, keep)
		return err
	}); err != nil {
		return err
	}
	days, err := maintenance.PartitionDays(ctx, m.db)
	if err != nil {
		return err
	}
	cutoff := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -int(keep))
	for _, day := range days {
		if !day.Before(cutoff) {
			break
		}
		end := day.AddDate(0, 0, 1)
		for {
			n, err := queue.FailBefore(ctx, m.db, end, sweepMost)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
		if err := maintenance.DropDay(ctx, m.db, day); err != nil {
			return err
		}
		if err := m.db.Worker(ctx, func(q *sql.Queries) error {
			if _, err := q.DropOldDeadLetters(ctx, db.FirstID(end)); err != nil {
				return err
			}
			if _, err := q.DropOldReplays(ctx, db.FirstID(end)); err != nil {
				return err
			}
			if _, err := q.DropOldCancellations(ctx, db.FirstID(end)); err != nil {
				return err
			}
			_, err := q.DropOldDiscrepancies(ctx, end)
			return err
		}); err != nil {
			return err
		}
		m.log.Info("day dropped", "day", day.Format(time.DateOnly))
	}
	return maintenance.DropOldIndexes(ctx, m.db)
}
