package maintenance

import (
	"context"
	"time"

	"posthorn/db/sources"
)

const (
	sourcesEvery = time.Minute
	// sourcesMost is how many messages are forgotten in one transaction.
	sourcesMost = 20_000
)

// assessSources tells of sources that fail or fall behind, and forgets messages that no broker delivers again.
func (m *Maintenance) assessSources(ctx context.Context) error {
	now, err := m.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	if quiet, err := m.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	if err := sources.Tell(ctx, m.db, now); err != nil {
		return err
	}
	return sources.Forget(ctx, m.db, sourcesMost)
}
