package maintenance

import (
	"context"
	"time"

	"posthorn/db/queue"
)

const (
	analyzeEvery = 5 * time.Second
	analyzeLeast = 500 // rows; any plan reads fewer quickly
)

// analyzeYoungDays refreshes the planner's statistics of days that have doubled since their last analysis.
func (m *Maintenance) analyzeYoungDays(ctx context.Context) error {
	_, err := queue.AnalyzeYoungPartitions(ctx, m.db, analyzeLeast)
	return err
}
