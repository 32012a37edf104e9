package maintenance

import (
	"context"
	"time"

	"posthorn/db/queue"
)

const (
	analyzeEvery = 5 * time.Second
	analyzeLeast = 500 // rows; any plan reads fewer in no time
)

// analyzeYoungDays gives the planner statistics of days that have grown to twice their rows since it last got any.
func (m *Maintenance) analyzeYoungDays(ctx context.Context) error {
	_, err := queue.AnalyzeYoungPartitions(ctx, m.db, analyzeLeast)
	return err
}
