package maintenance

import (
	"context"
	"time"

	"posthorn/db/sql"
)

const (
	foldEvery  = 5 * time.Second
	foldMost   = 2000
	hoursEvery = time.Minute
)

// fold moves the ledger into the books and roll-ups.
func (m *Maintenance) fold(ctx context.Context) error {
	for {
		var n int64
		if _, err := m.db.Chore(ctx, "fold", 0, func(q *sql.Queries) (err error) {
			n, err = q.FoldLedger(ctx, foldMost)
			return err
		}); err != nil || n < foldMost {
			return err
		}
	}
}

// foldHours folds the minutes of hours that have ended.
func (m *Maintenance) foldHours(ctx context.Context) error {
	_, err := m.db.Chore(ctx, "fold hours", hoursEvery, func(q *sql.Queries) error { return q.FoldHours(ctx) })
	return err
}
