package maintenance

import (
	"context"
	"time"

	"posthorn/db/sql"
	"posthorn/worker/loop"
)

const (
	foldEvery = 5 * time.Second
	// A long fold would keep a core from deliveries. One takes as many entries as it can in foldFor, between these
	// bounds, and deliveries have as long before the next.
	foldFor    = 10 * time.Millisecond
	foldLeast  = 125
	foldMost   = 500
	hoursEvery = time.Minute
)

// fold moves the ledger's entries into the totals and roll-ups.
func (m *Maintenance) fold(ctx context.Context) error {
	for {
		began, most := time.Now(), m.foldNext
		var n int64
		_, err := m.db.Periodic(ctx, "fold", 0, func(q *sql.Queries) (err error) {
			n, err = q.FoldLedger(ctx, most)
			return err
		})
		took := time.Since(began)
		if err != nil || n < int64(most) {
			return err
		}
		m.foldNext = nextFold(most, took)
		if !loop.Sleep(ctx, took) {
			return nil
		}
	}
}

// nextFold is how many entries are folded together after so many took so long.
func nextFold(most int32, took time.Duration) int32 {
	switch {
	case took > foldFor:
		most /= 2
	case took < foldFor/2:
		most *= 2
	}
	return min(max(most, foldLeast), foldMost)
}

// foldHours folds the minutes of ended hours.
func (m *Maintenance) foldHours(ctx context.Context) error {
	_, err := m.db.Periodic(ctx, "fold hours", hoursEvery, func(q *sql.Queries) error { return q.FoldHours(ctx) })
	return err
}
