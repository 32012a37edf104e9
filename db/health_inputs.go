package db

import (
	"context"
	"time"

	"posthorn/domain/analytics"
	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/settings"
)

// TenantHealth is what a tenant's health summary is made of, and who fails most.
type TenantHealth struct {
	health.Inputs

	Types     []analytics.Row // the types with the most failed attempts of the last 24 hours, at most five
	Endpoints []analytics.Row // the endpoints, likewise

	LastDigest time.Time // when the last one was made; zero: there was none
}

// topRows is how many types and endpoints a summary names.
const topRows = 5

// HealthInputs reads the numbers of a tenant's health summary. Works for the tenant and for the worker role.
func (q *Queries) HealthInputs(ctx context.Context, tenant id.UUID, now time.Time) (h TenantHealth, err error) {
	day, err := q.AttemptSeries(ctx, tenant, StatsAsked{Window: analytics.Between(now.Add(-24*time.Hour), now.Add(time.Minute), now), ByEndpoint: true, ByType: true})
	if err != nil {
		return h, err
	}
	hour, err := q.AttemptSeries(ctx, tenant, StatsAsked{Window: analytics.Between(now.Add(-time.Hour), now.Add(time.Minute), now)})
	if err != nil {
		return h, err
	}
	all, types, endpoints := analytics.Cell{}, analytics.Series{}, analytics.Series{}
	for _, r := range day.Rows() {
		all.Merge(r.Cell)
		types.Merge(analytics.Key{Type: r.Type}, r.Cell)
		endpoints.Merge(analytics.Key{Endpoint: r.Endpoint}, r.Cell)
	}
	h.Day, h.Latency, h.Retries = all.Attempts, all.Latency, all.Retries
	for _, r := range hour.Rows() {
		h.Hour = r.Attempts
	}
	h.Types, h.Endpoints = types.Top(topRows), endpoints.Top(topRows)
	failed := map[id.UUID]int64{}
	for _, r := range endpoints.Rows() {
		failed[r.Endpoint] = r.Failed()
	}
	return h, q.healthNow(ctx, tenant, now, failed, &h)
}

// healthNow reads what is counted at the moment and not in roll-ups. These know classes alone: what exactly fails is told by
// the last failure of each endpoint, in proportion to its failed attempts.
func (q *Queries) healthNow(ctx context.Context, tenant id.UUID, now time.Time, failed map[id.UUID]int64, h *TenantHealth) error {
	since := now.Add(-24 * time.Hour)
	states, err := q.CountStates(ctx, CountStatesParams{TenantID: tenant, Since: since})
	if err != nil {
		return err
	}
	h.ActiveEndpoints, h.Disabled = int(states.Active), int(states.Disabled)
	if h.FailedDeliveries, err = q.CountRecentFailures(ctx, CountRecentFailuresParams{TenantID: tenant, Since: since}); err != nil {
		return err
	}
	due, err := q.OldestDue(ctx, tenant)
	if err != nil {
		return err
	}
	h.OldestDue = time.Duration(due * float64(time.Second))
	last, err := q.LastDigest(ctx, tenant)
	if err != nil && !noRows(err) {
		return err
	}
	h.LastDigest = last.CreatedAt
	platform, err := q.PlatformSettings(ctx)
	if err != nil {
		return err
	}
	h.MayBeDue = time.Duration(settings.Number(settings.OverdueMinutes, platform)) * time.Minute
	policy, err := q.healthPolicy(ctx, tenant)
	if err != nil {
		return err
	}
	rows, err := q.EndpointsHealth(ctx, tenant)
	if err != nil {
		return err
	}
	for _, r := range rows {
		last := delivery.Result{Failure: r.EndpointHealth.LastFailure, Status: int(r.EndpointHealth.LastStatus)}
		if n := failed[r.ID]; n > 0 && last != (delivery.Result{}) {
			h.Errors = append(h.Errors, health.ErrorCount{Failure: last.Failure, Status: last.Status, Count: n})
		}
		if r.Status != "active" {
			continue
		}
		if r.EndpointHealth.Breaker().State != health.Closed {
			h.BreakersOpen++
		}
		if v := policy.Judge(r.EndpointHealth.Counters(), now); len(v.Warn) > 0 {
			h.Warnings++
		}
	}
	return nil
}

// healthPolicy is the tenant's, over the platform's.
func (q *Queries) healthPolicy(ctx context.Context, tenant id.UUID) (health.Policy, error) {
	t, err := q.GetTenant(ctx, tenant)
	if err != nil {
		return health.Policy{}, err
	}
	platform, err := q.PlatformSettings(ctx)
	return health.ReadPolicy(platform, t.Settings), err
}
