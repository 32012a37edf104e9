package worker

import (
	"encoding/binary"
	"math"
	"time"

	"posthorn/db"
	"posthorn/domain/delivery"
	"posthorn/domain/health"
)

// record is what a lane's owner keeps of its endpoint beside the counters. The dispatcher's mutex guards it.
type record struct {
	epoch   int32          // of the counters in the database; another means that they were cleared
	changes int64          // numbers what is to be saved, in the order in which it happened
	saved   int64          // the newest change on record; the recorder's alone
	goneAt  time.Time      // the last 410 since the last success
	breaker health.Breaker // half open while a probe is under way
	resting bool           // the breaker is not closed and no probe is due: nothing of the lane is read, kept or sent
	alarm   *time.Timer    // ends the rest
	asked   int64          // the row that somebody wants to be the next probe; 0: none
}

// successEvery is how often an endpoint's last success is written while nothing but successes happen.
const successEvery = time.Minute

// afterProbe is by how much a delivery whose probe failed waits longer than the next probe: another one goes first where there is
// one, so that a single delivery that the endpoint can't take keeps no breaker open.
const afterProbe = time.Second

// readHealth takes over what is on record of the endpoint.
func (l *lane) readHealth(h db.EndpointHealth) {
	l.counters = h.Counters()
	l.record.epoch, l.record.goneAt, l.record.breaker = h.Epoch, orZero(h.GoneAt), h.Breaker()
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// probe says whether the request that starts now is a probe. nextOf has asked whether it may.
func (l *lane) probe(now time.Time) bool {
	open, is := l.record.breaker.Probe(now)
	if is {
		l.record.breaker, l.record.resting = open, true
	}
	return is
}

// share is a number from 0 to 1 that is the endpoint's own: the last bytes of its id, which are random.
func (l *lane) share() float64 {
	return float64(binary.BigEndian.Uint16(l.id[len(l.id)-2:])) / math.MaxUint16
}

// count adds an outcome to what is kept of the endpoint; what it returns is to be saved.
func (l *lane) count(j *job, e end, now time.Time) *db.HealthChange {
	if l.dropped {
		return nil // whoever serves the lane now knows better
	}
	before, was, r := l.counters, l.record.breaker, &l.record
	if j.probe && (e.broken || e.result.Failure == delivery.FailInternal) {
		r.breaker = was.GiveBack(now) // nothing was learnt
		return nil
	}
	class := e.decision.Class
	l.counters = before.After(class, e.result, now)
	if e.decision.Reason == delivery.Exhausted && !j.probe {
		l.counters = l.counters.AfterExhausted()
	}
	if r.breaker = was.After(l.counters, class, now); was.State != health.Open {
		r.breaker = r.breaker.Spread(l.share(), now)
	}
	goneBefore := r.goneAt
	if e.decision.Disable == delivery.DisableGone {
		r.goneAt = now
	}
	var outage time.Time
	if class == delivery.Success {
		r.goneAt = time.Time{}
		if before.Clean() && was.State == health.Closed && goneBefore.IsZero() && now.Sub(l.savedAt) < successEvery {
			return nil
		}
		l.savedAt = now
		if was.State != health.Closed && now.Sub(was.OpenedAt) >= health.LongOutage {
			outage = was.OpenedAt
		}
	} else if l.counters == before && r.breaker == was && r.goneAt.Equal(goneBefore) {
		return nil
	}
	r.changes++
	return &db.HealthChange{
		EndpointID: l.id, TenantID: l.tenant, Epoch: r.epoch, N: r.changes, Counters: l.counters, Breaker: r.breaker, GoneAt: r.goneAt,
		OutageFrom: outage, Closed: was.State != health.Closed && r.breaker.State == health.Closed, LastError: e.error,
	}
}

// spare is what becomes of a delivery whose attempt was a probe.
func (l *lane) spare(j *job, d delivery.Decision, now time.Time) delivery.Decision {
	wait := afterProbe
	if l.record.breaker.State == health.Open {
		wait += max(l.record.breaker.NextProbeAt.Sub(now), 0)
	}
	spared, is := d.Spared(wait)
	if is {
		j.probes++
	}
	return spared
}

// follow does what a change of the breaker asks of its lane. The caller holds the mutex.
func (d *dispatcher) follow(l *lane, was health.State, now time.Time) {
	switch is := l.record.breaker.State; {
	case l.closed || is == was && is != health.Open:
	case is == health.Open:
		if was != health.Open {
			d.rest(l, now)
		}
	case is == health.Closed:
		d.rouse(l)
	}
}

// rest lets go of what was read ahead until the next probe is due: any number of lanes may wait for their endpoints. The
// caller holds the mutex.
func (d *dispatcher) rest(l *lane, now time.Time) {
	r := &l.record
	d.unread(l)
	l.endRest()
	if r.asked != 0 {
		r.breaker = r.breaker.Asked(now)
	}
	if r.breaker.MayProbe(now) {
		d.rouse(l)
		return
	}
	r.resting = true
	r.alarm = time.AfterFunc(r.breaker.NextProbeAt.Sub(now), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.lanes[l.id] == l && r.resting && r.breaker.State == health.Open {
			d.rest(l, time.Now()) // which ends where the probe is due: a timer and the clock may differ a little
		}
	})
}

// rouse ends a lane's rest: it is read again from its head. The caller holds the mutex.
func (d *dispatcher) rouse(l *lane) {
	l.endRest()
	l.dirty = true
	d.mark(l)
	d.signal()
}

// endRest ends a lane's rest without more.
func (l *lane) endRest() {
	l.record.resting = false
	if l.record.alarm != nil {
		l.record.alarm.Stop()
		l.record.alarm = nil
	}
}

// heed has a row be the next probe that somebody wants to be sent although the breaker is open, and puts a lane to rest whose
// probe is not due. The caller holds the mutex.
func (d *dispatcher) heed(l *lane, asked int64, now time.Time) {
	l.record.asked = 0
	switch l.record.breaker.State {
	case health.Closed:
		l.endRest()
	case health.HalfOpen:
		l.record.asked = asked
	default:
		l.record.asked = asked
		d.rest(l, now)
	}
}
