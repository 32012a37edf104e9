package maintenance

import (
	"context"
	"time"

	"posthorn/db/queue"
)

const vacuumEvery = 2 * time.Second

// vacuum removes dead rows from tables with many.
func (m *Maintenance) vacuum(ctx context.Context) error {
	return queue.VacuumWhereDead(ctx, m.db, 2000, "queue", "outbox", "ledger", "lanes", "books", "endpoint_stats", "endpoint_health", "quota_buckets")
}
