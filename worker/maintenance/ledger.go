package maintenance

import (
	"context"
	"time"

	"posthorn/db/sql"
	"posthorn/worker/loop"
)

const (
	foldEvery = 5 * time.Second
	// foldMost is how many entries are folded at a time. A long fold would keep a core from deliveries: this takes
	// under 10 ms, and what is delivered has as long again before the next.
	foldMost   = 500
	hoursEvery = time.Minute
)

// fold moves the ledger into the books and roll-ups.
func (m *Maintenance) fold(ctx context.Context) error {
	for {
		began := time.Now()
		var n int64
		if _, err := m.db.Periodic(ctx, "fold", 0, func(q *sql.Queries) (err error) {
			n, err = q.FoldLedger(ctx, foldMost)
			return err
		}); err != nil || n < foldMost || !loop.Sleep(ctx, time.Since(began)) {
			return err
		}
	}
}

// foldHours folds the minutes of hours that have ended.
func (m *Maintenance) foldHours(ctx context.Context) error {
	_, err := m.db.Periodic(ctx, "fold hours", hoursEvery, func(q *sql.Queries) error { return q.FoldHours(ctx) })
	return err
}
