package endpoints

import (
	"context"
	"slices"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/id"
)

// The bounds of a sample of past events: rows scanned, and bytes of data read.
const (
	sampleScan  = 10_000
	sampleBytes = 16 << 20
)

// SampleEvents reads a tenant's newest events that match some patterns, at most this many, newest first. whole is false
// if the bound on bytes cut the sample short.
func SampleEvents(ctx context.Context, q *sql.Queries, tenant id.UUID, patterns []string, most int,
	now time.Time,
) (rows []sql.SampledEventsRow, whole bool, err error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return nil, false, err
	}
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return nil, false, err
	}
	latest, err := q.LatestEvents(ctx, sql.LatestEventsParams{
		Patterns: patterns, TenantID: tenant, LowAt: floor, HighAt: now.Add(time.Minute), Scan: sampleScan,
		Most: int32(most),
	})
	if err != nil || len(latest) == 0 {
		return nil, true, err
	}
	ask := sql.SampledEventsParams{TenantID: tenant}
	whole = true
	bytes := 0
	for _, e := range latest {
		if bytes += int(e.Octets); bytes > sampleBytes {
			whole = false
			break
		}
		ask.Ids, ask.Created = append(ask.Ids, e.ID), append(ask.Created, e.ID.Time())
	}
	ask.First, ask.Last = slices.MinFunc(ask.Created, time.Time.Compare), slices.MaxFunc(ask.Created, time.Time.Compare)
	rows, err = q.SampledEvents(ctx, ask)
	return rows, whole, err
}
