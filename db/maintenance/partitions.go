// Package maintenance maintains the database itself: it creates and drops partitions by day, compares the ledger with
// the tables, erases deleted tenants, moves tenants, and reseals secrets under a new key.
package maintenance

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
)

// PartitionDays lists the days that have partitions, oldest first.
func PartitionDays(ctx context.Context, d *db.DB) (days []time.Time, err error) {
	rows, err := d.Pool().Query(ctx, "SELECT posthorn.partition_days()")
	if err != nil {
		return nil, db.Translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var day time.Time
		if err := rows.Scan(&day); err != nil {
			return nil, db.Translate(err)
		}
		days = append(days, day)
	}
	return days, db.Translate(rows.Err())
}

// DropDay drops one day of the bulk tables. It waits for locks a short while only, since all other statements would
// queue behind it.
func DropDay(ctx context.Context, d *db.DB, day time.Time) error {
	for _, parent := range []string{"attempts", "deliveries", "events"} {
		if err := drop(ctx, d, "SELECT posthorn.drop_partition($1, $2::date)", parent, day); err != nil {
			return err
		}
	}
	return nil
}

// DropOldIndexes drops the indexes that a migration replaced for new days only, once the last of the older days is
// gone. It waits for locks as DropDay does.
func DropOldIndexes(ctx context.Context, d *db.DB) error {
	return drop(ctx, d, "SELECT posthorn.drop_deliveries_event()")
}

func drop(ctx context.Context, d *db.DB, statement string, args ...any) error {
	return db.Translate(pgx.BeginFunc(ctx, d.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '2s'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statement, args...)
		return err
	}))
}
