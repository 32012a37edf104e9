package ledger

import (
	"context"

	"posthorn/db/sql"
	"posthorn/domain/analytics"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// mostStats bounds the rows of the roll-ups that one query reads.
const mostStats = 100_000

// StatsAsked selects numbers of a tenant's attempts.
type StatsAsked struct {
	analytics.Window

	By         analytics.Width // empty: one bucket for all
	ByEndpoint bool
	ByType     bool
	ByClass    bool
	Endpoint   *id.UUID // nil: all
	EventType  string   // empty: all
}

var errTooManyStats = fault.InvalidField(
	"since",
	"analytics_too_large",
	"The result is too large. Ask for a shorter time range, wider buckets, one endpoint, or one event type.",
)

// AttemptSeries reads numbers of a tenant's attempts. It works in the role of the tenant and of the worker.
func AttemptSeries(ctx context.Context, q *sql.Queries, tenant id.UUID, a StatsAsked) (analytics.Series, error) {
	series := analytics.Series{ByClass: a.ByClass}
	if err := q.PlanByIndex(ctx); err != nil {
		return series, err
	}
	rows, err := q.AttemptStats(ctx, sql.AttemptStatsParams{
		BucketSeconds: a.By.Bucket().Seconds(),
		ByEndpoint:    a.ByEndpoint,
		ByType:        a.ByType,
		TenantID:      tenant,
		HoursFrom:     a.Hours[0],
		HoursTo:       a.Hours[1],
		EarlyFrom:     a.Minutes[0],
		EarlyTo:       a.Minutes[1],
		LateFrom:      a.Minutes[2],
		LateTo:        a.Minutes[3],
		Endpoint:      a.Endpoint,
		EventType:     a.EventType,
		Limit:         mostStats + 1,
	})
	if err != nil {
		return series, err
	}
	if len(rows) > mostStats {
		return series, errTooManyStats
	}
	for _, r := range rows {
		at := analytics.Key{Endpoint: r.EndpointID, Type: r.EventType}
		if a.By != "" {
			at.Bucket = r.Bucket
		}
		series.Add(at, analytics.Count{
			Kind:  r.Kind,
			N:     r.N,
			Us:    r.Us,
			Least: r.Least,
			Most:  r.Longest,
			Last:  r.Last,
		})
	}
	return series, nil
}
