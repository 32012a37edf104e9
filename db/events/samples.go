package events

import (
	"context"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// The bounds of a sample of past events: rows scanned, and bytes of data read.
const (
	sampleScan  = 10_000
	sampleBytes = 16 << 20
)

// Sample reads a tenant's newest events that match some patterns, at most this many, newest first. whole is false
// if the bound on bytes cut the sample short.
func Sample(
	ctx context.Context,
	q *sql.Queries,
	tenant id.UUID,
	patterns []string,
	limit int,
	now time.Time,
) (events []show.Event, whole bool, err error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return nil, false, err
	}
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return nil, false, err
	}
	latest, err := q.LatestEvents(ctx, sql.LatestEventsParams{
		Patterns: patterns,
		TenantID: tenant,
		LowAt:    floor,
		HighAt:   now.Add(time.Minute),
		Scan:     sampleScan,
		Limit:    int32(limit),
	})
	if err != nil || len(latest) == 0 {
		return nil, true, err
	}
	whole = true
	bytes := 0
	var ids []id.UUID
	for _, e := range latest {
		if bytes += int(e.Octets); bytes > sampleBytes {
			whole = false
			break
		}
		ids = append(ids, e.ID)
	}
	events, err = ReadAll(ctx, q, tenant, ids, true)
	return events, whole, err
}
