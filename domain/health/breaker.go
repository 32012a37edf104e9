// Package health decides from numbers that others keep: when a lane stops and probes, when an endpoint's owner is
// warned and the endpoint disabled, and which problem an attempt shows. See docs/health.md. Nothing here reads a clock,
// and the same numbers at the same moment always give the same result.
package health

import (
	"fmt"
	"time"

	"posthorn/domain/delivery"
)

// The breaker's numbers (docs/design.md, "Circuit breaker").
const (
	FailuresToOpen = 10          // consecutive failures after which the lane stops
	FirstProbeWait = time.Minute // until the first probe; it doubles with each probe that fails
	MaxProbeWait   = time.Hour
	// LongOutage is how long a breaker is open at least before its owner is told that the endpoint is well again.
	LongOutage = time.Hour
	// ProbeLost is how long a probe can stay without a result before another starts: more than the longest timeout of
	// an endpoint (30 s) and the recorder together, so that only a dead worker leaves one behind.
	ProbeLost = 2 * time.Minute
)

// State is the state of a breaker, stored as smallint: the numbers never change. The zero value is Closed.
type State int16

// The states.
const (
	Closed   State = 0 // the lane sends normally
	Open     State = 1 // the lane sends nothing until the next probe
	HalfOpen State = 2 // one request is under way, to see how the endpoint is
)

var stateWords = [...]string{"closed", "open", "half_open"}

// String is the word for the state in the API and on screens.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateWords) {
		return fmt.Sprintf("state_%d", int(s))
	}
	return stateWords[s]
}

// MarshalText writes the state's word.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Breaker stops a lane whose endpoint does nothing but fail, and lets one waiting delivery at a time see whether it is
// well again. Neither waiting nor probing uses up a delivery's schedule: that is the sender's part. The zero value is
// closed.
type Breaker struct {
	State       State
	OpenedAt    time.Time // zero when closed
	NextProbeAt time.Time // zero when closed; while half open the moment when the probe counts as lost
	Probes      int       // probes that failed in a row; the wait doubles with each
}

func opened(at time.Time) Breaker {
	return Breaker{State: Open, OpenedAt: at, NextProbeAt: at.Add(FirstProbeWait)}
}

// After is the breaker after an outcome of a class; c are the counters that the outcome is already part of.
//
// A success closes it, whichever request brought it. What ends while it is open was sent before it opened and says
// nothing new. An unhealthy probe doubles the wait. A throttled probe leaves the wait as it is. Any other response
// shows a server that is there, so the wait starts over at a minute: a backlog of deliveries that the server rejects
// does not take an hour each.
func (b Breaker) After(c delivery.Counters, class delivery.Class, now time.Time) Breaker {
	switch {
	case class == delivery.Success:
		return Breaker{}
	case b.State == Closed && c.ConsecutiveFailures >= FailuresToOpen:
		return opened(now)
	case b.State != HalfOpen:
		return b
	}
	switch class {
	case delivery.Unhealthy:
		b.Probes++
	case delivery.Throttled:
	default:
		b.Probes = 0
	}
	b.State, b.NextProbeAt = Open, now.Add(probeWait(b.Probes))
	return b
}

// AfterBy is After under a policy: where refusals must last, they open the breaker and fail its probes as other
// failures do.
func (b Breaker) AfterBy(p Policy, c delivery.Counters, class delivery.Class, now time.Time) Breaker {
	if class == delivery.Auth && p.HoldsRefusals() {
		class, c.ConsecutiveFailures = delivery.Unhealthy, max(c.ConsecutiveFailures, c.AuthStreak)
	}
	return b.After(c, class, now)
}

// probeWait is 1, 2, 4, 8, 16, 32 and then 60 minutes.
func probeWait(failed int) time.Duration {
	return min(FirstProbeWait<<min(max(failed, 0), 6), MaxProbeWait)
}

// MayProbe reports whether one request can be sent now as a probe. A closed breaker has nothing to probe: its lane
// sends normally. A moment further ahead than any wait was set by a clock that has been put back since.
func (b Breaker) MayProbe(now time.Time) bool {
	if b.State == Closed {
		return false
	}
	wait := b.NextProbeAt.Sub(now)
	return wait <= 0 || wait > MaxProbeWait
}

// Probe is the breaker with a probe under way, from now; false, and the breaker as it was, if none is allowed.
func (b Breaker) Probe(now time.Time) (Breaker, bool) {
	if !b.MayProbe(now) {
		return b, false
	}
	b.State, b.NextProbeAt = HalfOpen, now.Add(ProbeLost)
	return b, true
}

// GiveBack is the breaker after a probe that was never sent, because its delivery was canceled or its worker stops:
// another can start at once.
func (b Breaker) GiveBack(now time.Time) Breaker {
	if b.State == HalfOpen {
		b.State, b.NextProbeAt = Open, now
	}
	return b
}

// Spread brings an open breaker's next probe forward by share (0 to 1) of a fifth of its wait: endpoints that failed
// together are not all probed at once.
func (b Breaker) Spread(fraction float64, now time.Time) Breaker {
	if wait := b.NextProbeAt.Sub(now); b.State == Open && wait > 0 {
		b.NextProbeAt = b.NextProbeAt.Add(-time.Duration(fraction * float64(wait) / 5))
	}
	return b
}

// Asked is the breaker after a request for a probe: if it is open, a probe can start at once.
func (b Breaker) Asked(now time.Time) Breaker {
	if b.State == Open {
		b.NextProbeAt = now
	}
	return b
}

// At is how an open breaker looks to who does not serve the lane: once the next probe is due, it is on its way.
func (b Breaker) At(now time.Time) State {
	if b.State == Open && b.MayProbe(now) {
		return HalfOpen
	}
	return b.State
}
