package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// daysAhead is how many days have partitions before they begin.
const daysAhead = 7

// MakeDays creates the partitions of today and the coming days, in whichever process needs them. An id can be from
// before midnight, so yesterday is made too.
func (d *DB) MakeDays(ctx context.Context, now time.Time) error {
	_, err := d.MakePartitions(ctx, now.AddDate(0, 0, -1), now.AddDate(0, 0, daysAhead))
	return err
}

// MakePartitions creates the partitions of the days from first to last. The owner does it, since no role has the right.
func (d *DB) MakePartitions(ctx context.Context, first, last time.Time) (made int, err error) {
	err = pgx.BeginFunc(ctx, d.Pool(), func(tx pgx.Tx) error {
		// Several processes create the same day's partitions: one after the other.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", partitionsLock); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT posthorn.make_partitions($1::date, $2::date)", first, last).Scan(&made)
	})
	return made, Translate(err)
}

// partitionsLock is the key of the lock under which partitions are created; any number that no other lock uses.
const partitionsLock = 0x706f7374_70617274
