package db

import (
	"context"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
)

// EndpointRecord is how an endpoint fares.
type EndpointRecord struct {
	EndpointHealth
	Policy    health.Policy
	Held      int64 // deliveries that wait because the endpoint is not active
	HeldExact bool  // else there are more
}

// heldShown is how far held deliveries are counted for each endpoint of a list, and heldCounted for one alone.
const heldShown = 1000

// addRecords adds to endpoints of one tenant how they fare.
func (q *Queries) addRecords(ctx context.Context, tenant id.UUID, full []FullEndpoint) error {
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
	policy, place := health.ReadPolicy(platform, t.Settings), make(map[id.UUID]*EndpointRecord, len(full))
	ids, waiting := make([]id.UUID, len(full)), []id.UUID{}
	for i := range full {
		e := &full[i]
		ids[i], place[e.ID] = e.ID, &e.Record
		e.Record = EndpointRecord{Policy: policy, HeldExact: true}
		if health.Holds(endpoint.Status(e.Status)) {
			waiting = append(waiting, e.ID)
		}
	}
	rows, err := q.EndpointHealthOf(ctx, EndpointHealthOfParams{TenantID: tenant, Endpoints: ids})
	if err != nil {
		return err
	}
	for _, h := range rows {
		place[h.EndpointID].EndpointHealth = h
	}
	if len(waiting) == 0 {
		return nil
	}
	most := int64(heldShown)
	if len(full) == 1 {
		most = heldCounted
	}
	counts, err := q.CountHeld(ctx, CountHeldParams{TenantID: tenant, Endpoints: waiting, Most: int32(most) + 1})
	for _, c := range counts {
		place[c.EndpointID].Held, place[c.EndpointID].HeldExact = min(c.Held, most), c.Held <= most
	}
	return err
}

// Counters is what counts for or against an endpoint.
func (h EndpointHealth) Counters() delivery.Counters {
	return delivery.Counters{
		ConsecutiveFailures: int(h.ConsecutiveFailures), AuthStreak: int(h.AuthStreak), Exhausted: int(h.Exhausted),
		UnhealthySince: orZero(h.UnhealthySince), TLSOnlySince: orZero(h.TLSOnlySince), FirstFailureAt: orZero(h.FirstFailureAt),
		LastFailureAt: orZero(h.LastFailureAt), LastSuccessAt: orZero(h.LastSuccessAt),
	}
}

// Breaker is the endpoint's breaker as it was recorded; where none was, the counters say how it is.
func (h EndpointHealth) Breaker() health.Breaker {
	if h.BreakerState == health.Closed || h.OpenedAt == nil || h.NextProbeAt == nil {
		return health.FromCounters(h.Counters())
	}
	return health.Breaker{State: health.Open, OpenedAt: *h.OpenedAt, NextProbeAt: *h.NextProbeAt, Probes: int(h.Probes)}
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
