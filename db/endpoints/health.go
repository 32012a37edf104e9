package endpoints

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/analytics"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
)

// Health is an endpoint's health.
type Health struct {
	sql.EndpointHealth
	Policy    health.Policy
	Asked     health.Asked
	Unserved  bool    // no live worker serves the endpoint
	Paused    *Paused // the widest pause of an operator that covers the endpoint
	Held      int64   // deliveries that wait because of the endpoint's condition
	HeldExact bool    // false: Held is a lower bound

	Waiting      int64 // deliveries that wait for any reason; counted only when one endpoint is read
	WaitingExact bool  // false: Waiting is a lower bound
}

// Record is what the endpoint's attempts of the last 24 hours ended with. day is their roll-up.
func (e Full) Record(day analytics.Cell) health.Record {
	return record(e.Endpoint, e.Health.EndpointHealth, day)
}

func record(e sql.Endpoint, h sql.EndpointHealth, day analytics.Cell) health.Record {
	return health.Record{
		Day:       day.Attempts.Rate(),
		Succeeded: latest(day.LastOK, db.OrZero(h.LastSuccessAt)),
		Failed:    latest(day.LastFailed, db.OrZero(h.LastFailureAt)),
		Since:     latest(e.StatusAt, db.OrZero(h.ClosedAt)),
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Condition is the endpoint's condition at a moment.
func (e Full) Condition(now time.Time) condition.Condition {
	return e.Health.condition(e.Endpoint, now)
}

func (r Health) condition(e sql.Endpoint, now time.Time) condition.Condition {
	f := condition.Facts{
		Status: endpoint.Status(e.Status), Reason: e.StatusReason, StatusAt: e.StatusAt,
		Breaker: Breaker(r.EndpointHealth), Last: last(r.EndpointHealth),
		Asked: r.Asked, Unserved: r.Unserved, Held: r.Held, HeldAtLeast: !r.HeldExact,
	}
	if v := Verdict(r.EndpointHealth, r.Policy, now); !v.Disable {
		f.DisableAt, f.DisableFor = v.DisableAt, v.Reason
	}
	if r.Paused != nil {
		f.Scope, f.ScopeSince = r.Paused.By, db.OrZero(r.Paused.Since)
	}
	return condition.Of(f, now)
}

// heldShown is how many held deliveries are counted for each endpoint of a list, and heldCounted for a single one.
const heldShown = 1000

// addHealth adds the health of endpoints of one tenant.
func addHealth(ctx context.Context, q *sql.Queries, tenant id.UUID, full []Full) error {
	if len(full) == 0 {
		return nil
	}
	t, err := q.GetTenant(ctx, tenant)
	if err != nil {
		return err
	}
	platform, err := q.PlatformSettings(ctx)
	if err != nil {
		return err
	}
	policy, place := health.ReadPolicy(platform, t.Settings), make(map[id.UUID]*Health, len(full))
	ids := make([]id.UUID, len(full))
	for i := range full {
		e := &full[i]
		ids[i], place[e.ID] = e.ID, &e.Health
		e.Health = Health{Policy: policy, HeldExact: true}
	}
	rows, err := q.EndpointHealthOf(ctx, sql.EndpointHealthOfParams{TenantID: tenant, Endpoints: ids})
	if err != nil {
		return err
	}
	for _, h := range rows {
		place[h.EndpointID].EndpointHealth = h
	}
	lanes, err := q.LanesOf(ctx, sql.LanesOfParams{SilentSeconds: incidents.Silent.Seconds(), Ids: ids, TenantID: &tenant})
	if err != nil {
		return err
	}
	for _, l := range lanes {
		h := place[l.ID]
		h.Asked = asked(l.AskedAt, l.NotBefore, l.LookAt)
		h.Paused = pausedOf(l.Scope, l.Since)
		h.Unserved = unserved(l)
	}
	return addHeld(ctx, q, tenant, full, place)
}

// pausedOf converts a pause from the database; nil: none.
func pausedOf(scope string, since time.Time) *Paused {
	if scope == "" {
		return nil
	}
	p := &Paused{By: pause.Scope(scope)}
	if since = notEpoch(since); !since.IsZero() {
		p.Since = &since
	}
	return p
}

// addHeld counts waiting deliveries: always for one endpoint; for many only those whose deliveries are not sent now.
func addHeld(ctx context.Context, q *sql.Queries, tenant id.UUID, full []Full, place map[id.UUID]*Health) error {
	var waiting []id.UUID
	for _, e := range full {
		if len(full) == 1 || !e.Condition(time.Time{}).Sends() {
			waiting = append(waiting, e.ID)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	most := int64(heldShown)
	if len(full) == 1 {
		most = heldCounted
	}
	counts, err := q.CountHeld(ctx, sql.CountHeldParams{TenantID: tenant, Endpoints: waiting, Most: int32(most) + 1})
	for _, c := range counts {
		r := place[c.EndpointID]
		r.Waiting, r.WaitingExact = min(c.Held, most), c.Held <= most
	}
	for _, e := range full {
		if r := place[e.ID]; !e.Condition(time.Time{}).Sends() {
			r.Held, r.HeldExact = r.Waiting, r.WaitingExact
		}
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
		ConsecutiveFailures: int(h.ConsecutiveFailures), AuthStreak: int(h.AuthStreak), Exhausted: int(h.Exhausted),
		UnhealthySince: db.OrZero(h.UnhealthySince), TLSOnlySince: db.OrZero(h.TLSOnlySince),
		FirstFailureAt: db.OrZero(h.FirstFailureAt),
		LastFailureAt:  db.OrZero(h.LastFailureAt), LastSuccessAt: db.OrZero(h.LastSuccessAt),
	}
}

// Breaker is the endpoint's recorded breaker.
func Breaker(h sql.EndpointHealth) health.Breaker {
	if h.BreakerState == health.Closed || h.OpenedAt == nil || h.NextProbeAt == nil {
		return health.Breaker{}
	}
	return health.Breaker{State: health.Open, OpenedAt: *h.OpenedAt, NextProbeAt: *h.NextProbeAt, Probes: int(h.Probes)}
}

// Paused is the pause that holds a delivery: the widest of those that cover it.
type Paused struct {
	By    pause.Scope
	Since *time.Time // nil: not known
}
