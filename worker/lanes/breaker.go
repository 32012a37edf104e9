package lanes

import (
	"encoding/binary"
	"math"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
)

// laneHealth is the health of an endpoint as the owner of its lane keeps it.
type laneHealth struct {
	counters delivery.Counters
	breaker  health.Breaker // half open while a probe is in flight
	goneAt   time.Time      // the last 410 since the last success
	epoch    int32          // of the counters in the database; a new epoch means that they were cleared
	changes  int64          // numbers the changes to save, in their order
	saved    int64          // the newest saved change; only the recorder uses it
	savedAt  time.Time      // when a success was last saved
	// the breaker is not closed and no probe is due: nothing of the lane is read, kept or sent
	awaitsProbe bool
	alarm       *time.Timer // fires when the next probe is due
	wanted      int64       // the row that is requested as the next probe; 0: none
}

// successEvery is how often an endpoint's last success is saved while all attempts succeed.
const successEvery = time.Minute

// probeBackoff is how much longer than the next probe a delivery with a failed probe waits. Another delivery goes first
// if there is one, so a single delivery that the endpoint rejects does not keep a breaker open.
const probeBackoff = time.Second

// disableWithin is how long a lane waits for its endpoint to be disabled. After that the lane is held, or continues if
// disabling failed.
const disableWithin = 5 * time.Second

// readHealth replaces the health in memory by the recorded one.
func (l *Lane) readHealth(h Health) {
	l.health.counters, l.health.epoch, l.health.goneAt, l.health.breaker = h.Counters, h.Epoch, h.GoneAt, h.Breaker
}

// HealthSaved is the number of the newest saved health change. Only the recorder calls it.
func (l *Lane) HealthSaved() int64 { return l.health.saved }

// SetHealthSaved records that the change with this number is saved. Only the recorder calls it.
func (l *Lane) SetHealthSaved(n int64) { l.health.saved = max(l.health.saved, n) }

// startProbe reports whether the request that starts now is a probe. The caller has checked that it is allowed.
func (l *Lane) startProbe(now time.Time) bool {
	halfOpen, isProbe := l.health.breaker.Probe(now)
	if isProbe {
		l.health.breaker, l.health.awaitsProbe = halfOpen, true
	}
	return isProbe
}

// jitterFraction is a number from 0 to 1 that is fixed for each endpoint: the last bytes of its id, which are random.
func (l *Lane) jitterFraction() float64 {
	return float64(binary.BigEndian.Uint16(l.id[len(l.id)-2:])) / math.MaxUint16
}

// count adds an outcome to the lane's health. It returns the change to save; nil: nothing to save.
func (l *Lane) count(j *Job, o Outcome, now time.Time) *health.Change {
	if l.phase == dropped {
		return nil // the lane's present owner counts it
	}
	h := &l.health
	before, was := h.counters, h.breaker
	if j.IsProbe && (o.Aborted || o.Decision.Repeat || o.Result.Failure.Unsent()) {
		h.breaker = was.GiveBack(now) // the endpoint did not receive the probe
		return nil
	}
	class := o.Decision.Class
	h.counters = before.After(class, o.Result, now)
	if o.Decision.Reason == delivery.Exhausted && !j.IsProbe {
		h.counters = h.counters.AfterExhausted()
	}
	h.breaker = l.breakerAfter(class, now)
	goneBefore := h.goneAt
	if o.Decision.Disable == delivery.DisableGone {
		h.goneAt = now
	}
	var outage time.Time
	if class == delivery.Success {
		h.goneAt = time.Time{}
		if before.Clean() && was.State == health.Closed && goneBefore.IsZero() && now.Sub(h.savedAt) < successEvery {
			return nil
		}
		h.savedAt = now
		if was.State != health.Closed && now.Sub(was.OpenedAt) >= health.LongOutage {
			outage = was.OpenedAt
		}
	} else if h.counters == before && h.breaker == was && h.goneAt.Equal(goneBefore) {
		return nil
	}
	h.changes++
	return &health.Change{
		EndpointID: l.id,
		TenantID:   l.tenant,
		Epoch:      h.epoch,
		N:          h.changes,
		Counters:   h.counters,
		Breaker:    h.breaker,
		GoneAt:     h.goneAt,
		OutageFrom: outage,
		Closed:     was.State != health.Closed && h.breaker.State == health.Closed,
		LastError:  o.LastError,
	}
}

// breakerAfter is the breaker after an outcome that the counters already include.
func (l *Lane) breakerAfter(class delivery.Class, now time.Time) health.Breaker {
	if s := l.settings.Load(); s != nil && s.NoBreaker {
		return health.Breaker{}
	}
	was := l.health.breaker
	var policy health.Policy
	if s := l.settings.Load(); s != nil {
		policy = s.Health
	}
	b := was.AfterBy(policy, l.health.counters, class, now)
	if was.State != health.Open {
		b = b.Spread(l.jitterFraction(), now)
	}
	return b
}

// evaluate reports whether the endpoint must be assessed after an outcome. If the endpoint is about to be disabled,
// evaluate stops the lane, so that its later deliveries are held and not tried.
func (l *Lane) evaluate(o Outcome, before delivery.Counters, was health.Breaker, now time.Time) bool {
	s := l.settings.Load()
	if s == nil || l.phase == dropped {
		return false
	}
	if o.Decision.Class == delivery.Success {
		return !before.Clean() || was.State != health.Closed
	}
	v := s.Health.EvaluateDecision(o.Decision, now)
	if !v.Disable {
		v = s.Health.Evaluate(l.health.counters, now)
	}
	if v.Disable {
		l.stopUntil = now.Add(disableWithin)
	}
	return v.Disable || len(v.Warn) > 0
}

// holdsRefusals reports whether a refusal settles no delivery now: the breaker is open, and refusals must last.
func (l *Lane) holdsRefusals() bool {
	s := l.settings.Load()
	return s != nil && s.Health.HoldsRefusals() && l.health.breaker.State != health.Closed
}

// afterProbe decides about a delivery whose attempt was a probe, or was refused while the breaker is open.
func (l *Lane) afterProbe(j *Job, d delivery.Decision, now time.Time) delivery.Decision {
	wait := probeBackoff
	if l.health.breaker.State == health.Open {
		wait += max(l.health.breaker.NextProbeAt.Sub(now), 0)
	}
	postponed, isPostponed := d.AfterProbe(wait, l.holdsRefusals())
	if isPostponed {
		j.Probes++
	}
	return postponed
}

// followBreaker applies a change of the breaker to its lane. The caller holds the mutex.
func (d *Dispatcher) followBreaker(l *Lane, was health.State, now time.Time) {
	if l.phase != serving {
		return
	}
	switch l.health.breaker.State {
	case health.Open:
		if was != health.Open {
			d.openBreaker(l, now)
		}
	case health.Closed:
		if was != health.Closed {
			d.reopen(l)
		}
	}
}

// openBreaker drops what was read ahead until the next probe is due, so that any number of lanes can wait for their
// endpoints. The caller holds the mutex.
func (d *Dispatcher) openBreaker(l *Lane, now time.Time) {
	h := &l.health
	d.forgetReady(l)
	l.stopAwaitingProbe(now)
	if h.wanted != 0 {
		h.breaker = h.breaker.Asked(now)
	}
	if h.breaker.MayProbe(now) {
		d.reopen(l)
		return
	}
	h.awaitsProbe = true
	l.held.begin(now)
	h.alarm = time.AfterFunc(h.breaker.NextProbeAt.Sub(now), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.lanes[l.id] == l && h.awaitsProbe && h.breaker.State == health.Open {
			d.openBreaker(l, time.Now()) // ends the wait if the probe is due: timer and clock can differ
		}
	})
}

// reopen makes the next read of a lane start at its head. The caller holds the mutex.
func (d *Dispatcher) reopen(l *Lane) {
	l.stopAwaitingProbe(time.Now())
	l.window.wanted = true
	d.mark(l)
	d.signal()
}

func (l *Lane) stopAwaitingProbe(now time.Time) {
	h := &l.health
	if h.awaitsProbe {
		l.held.end(now)
	}
	h.awaitsProbe = false
	if h.alarm != nil {
		h.alarm.Stop()
		h.alarm = nil
	}
}

// requestProbe makes a row the next probe although the breaker is open. If no probe is due, the lane waits for it. row
// 0: none is requested. The caller holds the mutex.
func (d *Dispatcher) requestProbe(l *Lane, row int64, now time.Time) {
	l.health.wanted = 0
	if row != 0 && l.asked.Holds(now) {
		l.asked = l.asked.Now(now)
		l.stopTimer()
	}
	switch l.health.breaker.State {
	case health.Closed:
		l.stopAwaitingProbe(now)
		if row != 0 && l.asked.Holds(now) {
			d.forgetReady(l)
			l.health.wanted = row
			d.signal()
		}
	case health.HalfOpen:
		l.health.wanted = row
	default:
		l.health.wanted = row
		d.openBreaker(l, now)
	}
}
