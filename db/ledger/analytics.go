package ledger

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/analytics"
	"posthorn/domain/fault"
	"posthorn/domain/health"
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
			Kind: r.Kind,
			N:    r.N,
			Us:   r.Us,
			Min:  r.Least,
			Max:  r.Longest,
		})
	}
	return series, nil
}

// EndpointDays reads what attempts of the last 24 hours to endpoints ended with: of one tenant, or for the console of
// any.
func EndpointDays(ctx context.Context, q *sql.Queries, tenant *id.UUID, ids []id.UUID, now time.Time) (map[id.UUID]health.Record, error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return nil, err
	}
	w := analytics.Between(now.Add(-24*time.Hour), now.Add(time.Minute), now)
	p := sql.ConsoleEndpointDaysParams{
		Endpoints: ids,
		HoursFrom: w.Hours[0],
		HoursTo:   w.Hours[1],
		EarlyFrom: w.Minutes[0],
		EarlyTo:   w.Minutes[1],
		LateFrom:  w.Minutes[2],
		LateTo:    w.Minutes[3],
	}
	if tenant == nil {
		return records(q.ConsoleEndpointDays(ctx, p))
	}
	rows, err := q.EndpointDays(ctx, sql.EndpointDaysParams{
		TenantID:  *tenant,
		Endpoints: p.Endpoints,
		HoursFrom: p.HoursFrom,
		HoursTo:   p.HoursTo,
		EarlyFrom: p.EarlyFrom,
		EarlyTo:   p.EarlyTo,
		LateFrom:  p.LateFrom,
		LateTo:    p.LateTo,
	})
	same := make([]sql.ConsoleEndpointDaysRow, len(rows))
	for i, r := range rows {
		same[i] = sql.ConsoleEndpointDaysRow(r)
	}
	return records(same, err)
}

func records(rows []sql.ConsoleEndpointDaysRow, err error) (map[id.UUID]health.Record, error) {
	days := make(map[id.UUID]health.Record, len(rows))
	for _, r := range rows {
		days[r.EndpointID] = health.Record{
			Day:       health.Rate{Succeeded: max(r.Succeeded, 0), Total: max(r.Total, 0)},
			Succeeded: db.NotEpoch(r.LastOk),
			Failed:    db.NotEpoch(r.LastFailed),
		}
	}
	return days, err
}
