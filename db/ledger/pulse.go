package ledger

import (
	"context"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/id"
)

// pulseEndpoints bounds the endpoints whose attempts are looked up.
const pulseEndpoints = 500

// Pulse is a text that differs when something has happened to a tenant's deliveries since it was last read.
func Pulse(ctx context.Context, q *sql.Queries, tenant id.UUID, now time.Time) (string, error) {
	return q.TenantPulse(ctx, sql.TenantPulseParams{
		TenantID: tenant,
		Day:      now.UTC().AddDate(0, 0, -1),
		Since:    now.Truncate(time.Minute).Add(-time.Minute),
		Limit:    pulseEndpoints,
	})
}
