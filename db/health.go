package db

import (
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
)

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
