package maintenance

import (
	"context"
	"time"

	"posthorn/db/sql"
	"posthorn/worker/loop"
)

const (
	foldEvery = 5 * time.Second
	// foldMost is how many entries are folded together. A long fold would keep a core from deliveries: this one takes
	// under 10 ms, and deliveries have as long before the next.
	foldMost   = 500
	hoursEvery = time.Minute
)

// fold moves the ledger's entries into the totals and roll-ups.
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

// foldHours folds the minutes of ended hours.
func (m *Maintenance) foldHours(ctx context.Context) error {
	_, err := m.db.Periodic(ctx, "fold hours", hoursEvery, func(q *sql.Queries) error { return q.FoldHours(ctx) })
	return err
}
