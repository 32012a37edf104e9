package endpoints

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/ledger"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/analytics"
	"posthorn/domain/condition"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
	"posthorn/domain/settings"
)

// TenantHealth holds the inputs of a tenant's health summary, and the endpoints and types with most failures.
type TenantHealth struct {
	health.Inputs

	DeadLetters int64 // of the tenant now, at most deadLettersCounted

	Types []analytics.Row // the types with the most failed attempts of the last 24 hours, at most five
	Top   []analytics.Row // the endpoints with the highest share of failed attempts, at most five

	LastDigest time.Time // when the last digest was posted; zero: never
}

// deadLettersCounted is how many of a tenant's dead letters are counted at most.
const deadLettersCounted = 10_000

// topRows is how many types and endpoints a summary names.
const topRows = 5

// HealthInputs reads the numbers of a tenant's health summary. It works in the role of the tenant and of the worker.
func HealthInputs(ctx context.Context, q *sql.Queries, tenant id.UUID, now time.Time) (h TenantHealth, err error) {
	day, err := ledger.AttemptSeries(ctx, q, tenant, ledger.StatsAsked{Window: analytics.Between(now.Add(-24*time.Hour),
		now.Add(time.Minute), now), ByEndpoint: true, ByType: true})
	if err != nil {
		return h, err
	}
	hour, err := ledger.AttemptSeries(ctx, q, tenant, ledger.StatsAsked{Window: analytics.Between(now.Add(-time.Hour),
		now.Add(time.Minute), now)})
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
	h.Types, h.Top = types.Top(topRows), endpoints.Worst(topRows)
	if err := healthNow(ctx, q, tenant, now, &h); err != nil {
		return h, err
	}
	return h, healthOfEndpoints(ctx, q, tenant, now, endpoints.Rows(), &h)
}

// healthNow reads the counts that are not in roll-ups.
func healthNow(ctx context.Context, q *sql.Queries, tenant id.UUID, now time.Time, h *TenantHealth) error {
	counts, err := q.CountConditions(ctx, sql.CountConditionsParams{
		TenantID:      &tenant,
		SilentSeconds: incidents.Silent.Seconds(),
	})
	if err != nil {
		return err
	}
	for _, c := range counts {
		switch condition.State(c.Condition) {
		case condition.Active:
			h.ActiveEndpoints = int(c.N)
		case condition.Failing:
			h.BreakersOpen = int(c.N)
		}
	}
	if h.FailedDeliveries, err = q.CountRecentFailures(ctx, sql.CountRecentFailuresParams{
		TenantID: tenant,
		Since:    now.Add(-24 * time.Hour),
	}); err != nil {
		return err
	}
	if h.DeadLetters, err = q.CountDeadLettersOf(ctx, sql.CountDeadLettersOfParams{
		TenantID: tenant,
		Most:     deadLettersCounted,
	}); err != nil {
		return err
	}
	due, err := q.OldestDue(ctx, sql.OldestDueParams{TenantID: tenant, SilentSeconds: incidents.Silent.Seconds()})
	if err != nil {
		return err
	}
	h.OldestDue = time.Duration(due * float64(time.Second))
	last, err := q.LastDigest(ctx, tenant)
	if err != nil && !db.IsNoRows(err) {
		return err
	}
	h.LastDigest = last.CreatedAt
	platform, err := q.PlatformSettings(ctx)
	if err != nil {
		return err
	}
	h.MayBeDue = time.Duration(settings.Number(settings.OverdueMinutes, platform)) * time.Minute
	return nil
}

// healthOfEndpoints reads the health of each endpoint that failed, was disabled, or has a breaker or a warning.
func healthOfEndpoints(ctx context.Context, q *sql.Queries, tenant id.UUID, now time.Time, rows []analytics.Row,
	h *TenantHealth,
) error {
	since, found := now.Add(-24*time.Hour), map[id.UUID]*health.EndpointInput{}
	of := func(endpointID id.UUID) *health.EndpointInput {
		if found[endpointID] == nil {
			found[endpointID] = &health.EndpointInput{ID: id.Endpoint.Format(endpointID)}
		}
		return found[endpointID]
	}
	for _, r := range rows {
		if r.Failed() > 0 {
			of(r.Endpoint).Day = r.Attempts
		}
	}
	codes, err := q.FailureCodes(ctx, sql.FailureCodesParams{
		TenantID: tenant, Since: since, Until: now.Add(time.Minute),
	})
	if err != nil {
		return err
	}
	for _, c := range codes {
		one := queue.ErrorCount(c.Code, c.N)
		h.Errors = append(h.Errors, one)
		of(c.EndpointID).Errors = append(of(c.EndpointID).Errors, one)
	}
	disabled, err := q.RecentDisablings(ctx, sql.RecentDisablingsParams{TenantID: tenant, Since: since})
	if err != nil {
		return err
	}
	for _, d := range disabled {
		e := of(d.ID)
		e.Disabled, e.Resumed = health.Reason(d.Reason), d.Status != string(endpoint.Disabled)
		if h.Disabled++; e.Resumed {
			h.Resumed++
		}
	}
	if err := breakersAndWarnings(ctx, q, tenant, now, of, h); err != nil {
		return err
	}
	return nameEndpoints(ctx, q, tenant, found, h)
}

func breakersAndWarnings(ctx context.Context, q *sql.Queries, tenant id.UUID, now time.Time,
	of func(id.UUID) *health.EndpointInput, h *TenantHealth,
) error {
	policy, err := healthPolicy(ctx, q, tenant)
	if err != nil {
		return err
	}
	waits, err := q.LongWaits(ctx, tenant)
	if err != nil {
		return err
	}
	long := map[id.UUID]bool{}
	for _, w := range waits {
		long[w.EndpointID] = asked(w.AskedAt, w.NotBefore, w.LookAt).Long(now)
	}
	rows, err := q.EndpointsHealth(ctx, tenant)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Status != string(endpoint.Active) {
			continue
		}
		facts := condition.Facts{Status: endpoint.Status(r.Status), Breaker: Breaker(r.EndpointHealth)}
		if r.OnHold {
			facts.Scope = pause.Endpoint // the scope of the pause makes no difference here
		}
		state := condition.Of(facts, now).State
		if state == condition.Failing {
			of(r.ID).Breaker = true
		}
		long[r.ID] = long[r.ID] && state == condition.Active // else something else keeps it
		if v := policy.Evaluate(Counters(r.EndpointHealth), now); len(v.Warn) > 0 {
			h.Warnings++
			of(r.ID).Warned, of(r.ID).DisableAt = true, v.Warn[0].DisableAt
		}
	}
	for endpointID, is := range long {
		if is {
			of(endpointID).Asked = true
			h.AskedToWait++
		}
	}
	return nil
}

// nameEndpoints returns the endpoints by name, without deleted ones.
func nameEndpoints(ctx context.Context, q *sql.Queries, tenant id.UUID, found map[id.UUID]*health.EndpointInput,
	h *TenantHealth,
) error {
	ids := slices.SortedFunc(maps.Keys(found), id.UUID.Compare)
	rows, err := q.EndpointNames(ctx, sql.EndpointNamesParams{TenantID: tenant, Ids: ids})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.DeletedAt == nil {
			found[r.ID].Name = cmp.Or(r.Description, egress.Mask(r.URL))
			h.Inputs.Endpoints = append(h.Inputs.Endpoints, *found[r.ID])
		}
	}
	return nil
}

// healthPolicy is the tenant's policy over the platform's.
func healthPolicy(ctx context.Context, q *sql.Queries, tenant id.UUID) (health.Policy, error) {
	t, err := q.GetTenant(ctx, tenant)
	if err != nil {
		return health.Policy{}, err
	}
	platform, err := q.PlatformSettings(ctx)
	return health.ReadPolicy(platform, t.Settings), err
}
