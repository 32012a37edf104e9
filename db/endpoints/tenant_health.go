package endpoints

import (
	"cmp"
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/ledger"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/analytics"
	"posthorn/domain/condition"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
	"posthorn/domain/settings"
	"posthorn/domain/show"
	"posthorn/domain/summary"
)

// TenantHealth is a tenant's health summary, and what fails most.
type TenantHealth struct {
	summary.Summary

	DeadLetters int64           // of the tenant now, at most deadLettersCounted
	Types       []analytics.Row // the types with the most failed attempts of the last 24 hours, at most topRows
	Top         []TopEndpoint   // the endpoints with the highest share of failed attempts, at most topRows
	LastDigest  time.Time       // when the last digest was posted; zero: never
}

// TopEndpoint is one of the endpoints that failed most in the last 24 hours.
type TopEndpoint struct {
	analytics.Row
	Name, URL string          // the URL has its query values masked; empty of a deleted endpoint
	State     condition.State // what its condition is called
}

const (
	// deadLettersCounted is how many of a tenant's dead letters are counted at most.
	deadLettersCounted = 10_000
	// topRows is how many types and endpoints a summary names.
	topRows = 5
	// summarized is how many of a tenant's endpoints are in its summary, the newest first: far above the usual limit.
	summarized = 2000
)

// ReadTenantHealth reads a tenant's health. It works in the role of the tenant and of the worker.
func ReadTenantHealth(ctx context.Context, q *sql.Queries, tenant id.UUID, now time.Time) (h TenantHealth, err error) {
	until := now.Add(time.Minute)
	lastDay, err := ledger.AttemptSeries(ctx, q, tenant, ledger.StatsAsked{
		Window:     analytics.Between(now.Add(-24*time.Hour), until, now),
		ByEndpoint: true,
		ByType:     true,
	})
	if err != nil {
		return h, err
	}
	hour, err := ledger.AttemptSeries(ctx, q, tenant, ledger.StatsAsked{
		Window:     analytics.Between(now.Add(-time.Hour), until, now),
		ByEndpoint: true,
	})
	if err != nil {
		return h, err
	}
	f, all, types, series := summary.Facts{Now: now}, analytics.Cell{}, analytics.Series{}, analytics.Series{}
	for _, r := range lastDay.Rows() {
		all.Merge(r.Cell)
		types.Merge(analytics.Key{Type: r.Type}, r.Cell)
		series.Merge(analytics.Key{Endpoint: r.Endpoint}, r.Cell)
	}
	for _, r := range hour.Rows() {
		f.Hour.Add(r.Attempts)
	}
	f.Day, f.Latency, f.Retries = all.Attempts, all.Latency, all.Retries
	full, err := newest(ctx, q, tenant)
	if err != nil {
		return h, err
	}
	if f.Endpoints, err = endpointFacts(ctx, q, tenant, now, full); err != nil {
		return h, err
	}
	for i := range f.Endpoints {
		e, at := &f.Endpoints[i], analytics.Key{Endpoint: full[i].ID}
		e.Day, e.Hour = series.At(at).Attempts, hour.At(at).Attempts
		e.Record = full[i].Record
	}
	if f.Errors, err = failureCodes(ctx, q, tenant, now, full, f.Endpoints); err != nil {
		return h, err
	}
	if err := tenantFacts(ctx, q, tenant, now, &h, &f); err != nil {
		return h, err
	}
	h.Summary, h.Types = summary.Of(f), types.Top(topRows)
	for _, r := range series.Worst(topRows) {
		top := TopEndpoint{Row: r}
		for i, e := range full {
			if e.ID == r.Endpoint {
				top.Name, top.URL, top.State = f.Endpoints[i].Name, e.MaskedURL(), f.Endpoints[i].Condition.Shown()
			}
		}
		h.Top = append(h.Top, top)
	}
	return h, nil
}

// newest reads a tenant's endpoints with their health, without listeners.
func newest(ctx context.Context, q *sql.Queries, tenant id.UUID) ([]show.Endpoint, error) {
	return List(ctx, q, nil, tenant, ListOptions{Limit: summarized})
}

// endpointFacts are the facts of endpoints that their attempts don't tell.
func endpointFacts(ctx context.Context, q *sql.Queries, tenant id.UUID, now time.Time, full []show.Endpoint) ([]summary.Endpoint, error) {
	rows, err := q.RecentDisablings(ctx, tenant, now.Add(-24*time.Hour))
	if err != nil {
		return nil, err
	}
	disabled := map[id.UUID]health.Reason{}
	for _, d := range rows {
		disabled[d.ID] = health.Reason(d.Reason)
	}
	facts := make([]summary.Endpoint, len(full))
	for i, e := range full {
		facts[i] = summary.Endpoint{
			ID:        e.ID,
			Name:      e.Name(),
			Host:      pause.HostOf(e.Settings.URL),
			Kind:      e.Settings.Kind,
			Status:    e.Status,
			Condition: e.Condition,
			Unserved:  e.Unserved,
			Drops:     e.Settings.WhenHeld == endpoint.Drop,
			Mute:      e.Mute,
			Disabled:  disabled[e.ID],
		}
		f := &facts[i]
		f.Asked = f.Condition.State == condition.AskedToWait && e.Asked.Long(now)
		if e.Status != endpoint.Active {
			continue
		}
		if v := e.Verdict; len(v.Warn) > 0 {
			f.Warned, f.DisableAt = true, v.Warn[0].DisableAt
		}
	}
	return facts, nil
}

// failureCodes reads what failed attempts of the last 24 hours ended with, and adds each endpoint's to its facts.
func failureCodes(ctx context.Context, q *sql.Queries, tenant id.UUID, now time.Time, full []show.Endpoint, facts []summary.Endpoint) ([]health.ErrorCount, error) {
	rows, err := q.FailureCodes(ctx, sql.FailureCodesParams{
		TenantID: tenant,
		Since:    now.Add(-24 * time.Hour),
		Until:    now.Add(time.Minute),
	})
	place := make(map[id.UUID]int, len(full))
	for i, e := range full {
		place[e.ID] = i
	}
	all := make([]health.ErrorCount, len(rows))
	for i, r := range rows {
		all[i] = queue.ErrorCount(r.Code, r.N)
		if at, known := place[r.EndpointID]; known {
			facts[at].Errors = append(facts[at].Errors, all[i])
		}
	}
	return all, err
}

// lateNamed is how many late consumers of feeds a tenant's health names.
const lateNamed = 5

// tenantFacts reads what concerns the tenant as a whole.
func tenantFacts(ctx context.Context, q *sql.Queries, tenant id.UUID, now time.Time, h *TenantHealth, f *summary.Facts) error {
	t, err := q.GetTenant(ctx, tenant)
	if err != nil {
		return err
	}
	if t.State == "suspended" {
		f.SuspendedAt = cmp.Or(db.OrZero(t.StateAt), now)
	}
	if f.FailedDeliveries, err = q.CountRecentFailures(ctx, tenant, now.Add(-24*time.Hour)); err != nil {
		return err
	}
	if h.DeadLetters, err = q.CountDeadLettersOf(ctx, sql.CountDeadLettersOfParams{
		TenantID: tenant,
		Limit:    deadLettersCounted,
	}); err != nil {
		return err
	}
	late, err := q.LateConsumers(ctx, tenant, lateNamed)
	if err != nil {
		return err
	}
	for _, c := range late {
		f.Late = append(f.Late, summary.LateConsumer{
			Endpoint: c.EndpointID,
			Name:     c.Name,
			Feed:     cmp.Or(c.Description, id.Endpoint.Format(c.EndpointID)),
			Since:    db.OrZero(c.LateSince),
		})
	}
	due, err := q.OldestDue(ctx, tenant, incidents.Silent.Seconds())
	if err != nil {
		return err
	}
	f.OldestDue = time.Duration(due * float64(time.Second))
	last, err := q.LastDigest(ctx, tenant)
	if err != nil && !db.IsNoRows(err) {
		return err
	}
	h.LastDigest = last.CreatedAt
	platform, err := q.PlatformSettings(ctx)
	f.MayBeDue = time.Duration(settings.Number(settings.OverdueMinutes, platform)) * time.Minute
	return err
}
