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
	known       bool      // noted is on record
	until       time.Time // as on record; zero: nothing is
}

// LimitNote is what is to be recorded of a lane.
type LimitNote struct {
	Endpoint id.UUID
	Limit    condition.Limit
	Until    time.Time // until when the lane was last kept from sending; zero: it never was
}

// noteAfter is how much later a lane with a backlog was kept from sending than the record says before that is recorded
// again.
const noteAfter = 30 * time.Second

// Limits lists the lanes of which something else is to be recorded. A limit has to hold twice in a row: one that lasts
// a moment is not worth a write.
func (d *Dispatcher) Limits(now time.Time) (notes []LimitNote) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		is := l.limitedBy(now)
		steady := is == l.limited.seen
		l.limited.seen = is
		if !steady {
			continue
		}
		until := l.keptUntil(now)
		moved := is == condition.Unlimited && len(l.ready) > 0 && until.Sub(l.limited.until) > noteAfter
		if l.limited.known && is == l.limited.noted && !moved {
			continue
		}
		l.limited.noted, l.limited.known, l.limited.until = is, true, until
		notes = append(notes, LimitNote{l.id, is, until})
	}
	return notes
}

// LimitsUnnoted says that limits could not be recorded.
func (d *Dispatcher) LimitsUnnoted(notes []LimitNote) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range notes {
		if l := d.lanes[n.Endpoint]; l != nil {
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

// keptUntil is until when the endpoint's own limits, its breaker or an operator's pause last kept the lane from
// sending: now where one does. The caller holds the mutex.
func (l *Lane) keptUntil(now time.Time) time.Time {
	if l.paused || l.health.awaitsProbe || l.timer != nil || l.settings.Load() != nil && l.inFlight >= l.limit() {
		return now
	}
	if l.resumedAt.After(l.held.until) {
		return l.resumedAt
	}
	return l.held.until
}
