package lanes

import (
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/health"
	"posthorn/domain/id"
)

// laneLimit is which of its endpoint's own limits keeps a lane from starting requests, and what is on record of it.
type laneLimit struct {
	seen, noted condition.Limit
	known       bool // noted is on record
}

// Limits lists the lanes whose limit is another than the one on record. It has to be so twice in a row: a limit of a moment is
// news to nobody.
func (d *Dispatcher) Limits(now time.Time) (endpoints []id.UUID, limits []int16) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		is := l.limitedBy(now)
		steady := is == l.limited.seen
		l.limited.seen = is
		if !steady || l.limited.known && is == l.limited.noted {
			continue
		}
		l.limited.noted, l.limited.known = is, true
		endpoints, limits = append(endpoints, l.id), append(limits, int16(is))
	}
	return endpoints, limits
}

// LimitsUnnoted says that limits could not be recorded.
func (d *Dispatcher) LimitsUnnoted(endpoints []id.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ep := range endpoints {
		if l := d.lanes[ep]; l != nil {
			l.limited.known = false
		}
	}
}

// limitedBy is what keeps the lane's ready deliveries from being started. The caller holds the mutex.
func (l *Lane) limitedBy(now time.Time) condition.Limit {
	switch {
	case l.stopped(), l.settings.Load() == nil, len(l.ready) == 0, l.health.breaker.State != health.Closed:
		return condition.Unlimited
	case l.inFlight >= l.limit():
		return condition.ByInFlight
	case l.limiter != nil && l.limiter.TokensAt(now) < 1:
		return condition.ByRate
	}
	return condition.Unlimited
}
