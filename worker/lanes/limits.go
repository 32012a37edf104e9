package lanes

import (
	"maps"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/id"
)

// laneLimit is the endpoint's own limit that keeps a lane from starting requests, and the recorded one.
type laneLimit struct {
	seen, noted condition.Limit
	known       bool                  // noted is recorded
	until       time.Time             // as recorded; zero: nothing is
	inFlight    map[id.UUID]time.Time // as recorded
}

// LimitNote is a limit to record for a lane.
type LimitNote struct {
	Endpoint id.UUID
	Limit    condition.Limit
	Until    time.Time             // until when the lane was last kept from sending; zero: never
	InFlight map[id.UUID]time.Time // the deliveries whose requests are in flight for inFlightAfter, and since when
}

// noteAfter is how much later than the recorded time a lane with a backlog must have been kept from sending before it
// is recorded again.
const noteAfter = 30 * time.Second

// inFlightAfter is after how long a request in flight is recorded: most end earlier.
const inFlightAfter = 2 * time.Second

// Limits lists the lanes whose limit differs from the recorded one, or whose requests in flight do. A limit is listed
// when it is seen twice in a row: one that lasts a moment is not worth a write.
func (d *Dispatcher) Limits(now time.Time) (notes []LimitNote) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		is := l.limitedBy(now)
		steady := is == l.limited.seen
		if l.limited.seen = is; !steady {
			is = l.limited.noted
		}
		until, flights := l.keptUntil(now), l.flights(now)
		moved := is == condition.Unlimited && len(l.ready) > 0 && until.Sub(l.limited.until) > noteAfter
		if maps.Equal(flights, l.limited.inFlight) && (!steady || l.limited.known && is == l.limited.noted && !moved) {
			continue
		}
		l.limited = laneLimit{seen: l.limited.seen, noted: is, known: true, until: until, inFlight: flights}
		notes = append(notes, LimitNote{l.id, is, until, flights})
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

// flights are the deliveries whose requests are in flight for a while. The caller holds the mutex.
func (l *Lane) flights(now time.Time) (flights map[id.UUID]time.Time) {
	if l.inFlight == 0 {
		return nil
	}
	for _, j := range l.window.rows {
		if j.inFlight && now.Sub(j.started) >= inFlightAfter {
			if flights == nil {
				flights = map[id.UUID]time.Time{}
			}
			flights[j.DeliveryID] = j.started
		}
	}
	return flights
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
