package lanes

import (
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/id"
)

// laneLimit is the endpoint's own limit that keeps a lane from starting requests, and the recorded one.
type laneLimit struct {
	seen, noted condition.Limit
	known       bool      // noted is recorded
	until       time.Time // as recorded; zero: nothing is
}

// LimitNote is a limit to record for a lane.
type LimitNote struct {
	Endpoint id.UUID
	Limit    condition.Limit
	Until    time.Time // until when the lane was last kept from sending; zero: never
}

// noteAfter is how much later than the recorded time a lane with a backlog must have been kept from sending before it
// is recorded again.
const noteAfter = 30 * time.Second

// Limits lists the lanes whose limit differs from the recorded one. A limit is listed when it is seen twice in a row:
// one that lasts a moment is not worth a write.
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

// LimitsUnnoted takes back limits that could not be recorded.
func (d *Dispatcher) LimitsUnnoted(notes []LimitNote) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range notes {
		if l := d.lanes[n.Endpoint]; l != nil {
			l.limited.known = false
		}
	}
}

// limitedBy is the limit that keeps the lane's ready deliveries from starting. The caller holds the mutex.
func (l *Lane) limitedBy(now time.Time) condition.Limit {
	switch {
	case l.stopped(), l.settings.Load() == nil, len(l.ready) == 0, l.probesOnly():
		return condition.Unlimited
	case l.inFlight >= l.limit():
		return condition.ByInFlight
	case l.limiter != nil && l.limiter.TokensAt(now) < 1:
		return condition.ByRate
	}
	return condition.Unlimited
}

// keptUntil is until when the endpoint's own limits, its breaker or an operator's pause last kept the lane from
// sending: now if one still does. The caller holds the mutex.
func (l *Lane) keptUntil(now time.Time) time.Time {
	if l.paused || l.health.awaitsProbe || l.timer != nil || l.settings.Load() != nil && l.inFlight >= l.limit() {
		return now
	}
	if l.resumedAt.After(l.held.until) {
		return l.resumedAt
	}
	return l.held.until
}
