package maintenance

import (
	"context"
	"time"
)

const vacuumEvery = 2 * time.Second

// vacuum clears dead rows where there are many.
func (m *Maintenance) vacuum(ctx context.Context) error {
	return m.db.VacuumWhereDead(ctx, 2000, "queue", "outbox", "ledger", "lanes", "books", "endpoint_stats", "endpoint_health", "quota_buckets")
}
