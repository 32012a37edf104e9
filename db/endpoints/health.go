package endpoints

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/ledger"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
	"posthorn/domain/show"
)

// recorded completes what the roll-ups tell of an endpoint's attempts with what its lane's owner noted. They tell in
// which minute an attempt failed last, or in which hour if that is over for long: it counts as after the moment in that
// time when the endpoint became active. A circuit breaker that closed shows that it was before.
func recorded(day health.Record, c delivery.Counters, statusAt, closedAt, now time.Time) health.Record {
	known := time.Minute
	if now.Sub(day.Failed) >= 2*time.Hour {
		known = time.Hour
	}
	return health.Record{
		Day:       day.Day,
		Succeeded: delivery.Latest(day.Succeeded, c.LastSuccessAt),
		Failed:    delivery.Latest(day.Failed, c.LastFailureAt),
		Since:     delivery.Latest(statusAt.Truncate(known), closedAt),
	}
}

// factsOf is what an endpoint's health row says. A zero row is an endpoint without attempts.
func factsOf(h sql.EndpointHealth, p health.Policy) show.EndpointFacts {
	return show.EndpointFacts{
		Counters:  Counters(h),
		Last:      last(h),
		LastError: h.LastError,
		Recorded:  Breaker(h),
		Gone:      h.GoneAt != nil,
		ClosedAt:  db.OrZero(h.ClosedAt),
		Policy:    p,
	}
}

// heldShown is how many held deliveries are counted for each endpoint of a list, and heldCounted for a single one.
const heldShown = 1000

// addHealth adds the condition of endpoints of one tenant, with its facts.
func addHealth(ctx context.Context, q *sql.Queries, tenant id.UUID, list []show.Endpoint) error {
	if len(list) == 0 {
		return nil
	}
	policy, err := healthPolicy(ctx, q, tenant)
	if err != nil {
		return err
	}
	facts, ids := make(map[id.UUID]*show.EndpointFacts, len(list)), make([]id.UUID, len(list))
	for i, e := range list {
		ids[i], facts[e.ID] = e.ID, new(factsOf(sql.EndpointHealth{}, policy))
	}
	rows, err := q.EndpointHealthOf(ctx, tenant, ids)
	if err != nil {
		return err
	}
	for _, h := range rows {
		*facts[h.EndpointID] = factsOf(h, policy)
	}
	lanes, err := q.LanesOf(ctx, sql.LanesOfParams{SilentSeconds: incidents.Silent.Seconds(), Ids: ids, TenantID: &tenant})
	if err != nil {
		return err
	}
	for _, l := range lanes {
		f := facts[l.ID]
		f.Asked, f.Unserved = asked(l.AskedAt, l.NotBefore, l.LookAt), unserved(l)
		f.Scope, f.ScopeSince, f.Verifying = pause.Scope(l.Scope), db.NotEpoch(l.Since), l.Verifying
		f.HeardAt, f.StartingAt = db.NotEpoch(l.HeardAt), db.NotEpoch(l.StartingAt)
	}
	now := time.Now()
	days, err := ledger.EndpointDays(ctx, q, &tenant, ids, now)
	if err != nil {
		return err
	}
	for _, e := range list {
		f := facts[e.ID]
		f.Record = recorded(days[e.ID], f.Counters, e.StatusAt, f.ClosedAt, now)
	}
	return addWaiting(ctx, q, tenant, list, facts)
}

// addWaiting sets the condition, and counts waiting deliveries: always for one endpoint; for many only those whose
// deliveries are not sent now.
func addWaiting(ctx context.Context, q *sql.Queries, tenant id.UUID, list []show.Endpoint, facts map[id.UUID]*show.EndpointFacts) error {
	now, most := time.Now(), int64(heldShown)
	var waiting []id.UUID
	for i, e := range list {
		list[i] = e.With(*facts[e.ID], now)
		if len(list) == 1 || !list[i].Condition.Sends() {
			waiting = append(waiting, e.ID)
		}
	}
	if len(list) == 1 {
		most = heldCounted
	}
	if len(waiting) == 0 {
		return nil
	}
	counts, err := q.CountHeld(ctx, sql.CountHeldParams{TenantID: tenant, Endpoints: waiting, Limit: int32(most) + 1})
	for _, c := range counts {
		f := facts[c.EndpointID]
		f.Waiting, f.WaitingAtLeast = min(c.Held, most), c.Held > most
	}
	for i, e := range list {
		list[i] = e.With(*facts[e.ID], now)
	}
	return err
}

// Counters are the counted outcomes of an endpoint.
func Counters(h sql.EndpointHealth) delivery.Counters {
	refused := h.AuthSince
	if h.AuthStreak == 0 {
		refused = nil // an older process, which leaves the column as it is, has seen a success
	}
	return delivery.Counters{
		AuthSince:           db.OrZero(refused),
		ConsecutiveFailures: int(h.ConsecutiveFailures),
		AuthStreak:          int(h.AuthStreak),
		Exhausted:           int(h.Exhausted),
		UnhealthySince:      db.OrZero(h.UnhealthySince),
		TLSOnlySince:        db.OrZero(h.TLSOnlySince),
		FirstFailureAt:      db.OrZero(h.FirstFailureAt),
		LastFailureAt:       db.OrZero(h.LastFailureAt),
		LastSuccessAt:       db.OrZero(h.LastSuccessAt),
	}
}

// Breaker is the endpoint's recorded breaker.
func Breaker(h sql.EndpointHealth) health.Breaker {
	if h.BreakerState == health.Closed || h.OpenedAt == nil || h.NextProbeAt == nil {
		return health.Breaker{}
	}
	return health.Breaker{State: health.Open, OpenedAt: *h.OpenedAt, NextProbeAt: *h.NextProbeAt, Probes: int(h.Probes)}
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
