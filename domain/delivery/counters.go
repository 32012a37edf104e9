package delivery

import "time"

// Counters is an endpoint's recent record, from which the breaker, the warnings and the disable policy decide
// (docs/health.md). Consecutive means: with no success in between. A response of one class neither adds to nor breaks
// the streak of another, so that an endpoint that alternates 500 and 401 does not escape both rules. Only TLSOnlySince
// ends with any proof that a TLS session can be made. Times are zero if there is no streak.
type Counters struct {
	ConsecutiveFailures int       // unhealthy outcomes since the last success
	UnhealthySince      time.Time // the first of them
	AuthStreak          int       // responses 401, 403 and 404 since the last success
	AuthSince           time.Time // the first of them
	TLSFailures         int       // TLS errors since anything else was seen
	TLSOnlySince        time.Time // the first of them
	FirstFailureAt      time.Time // the first unhealthy or auth outcome, or 410, since the last success
	LastFailureAt       time.Time // the last of them
	LastSuccessAt       time.Time // survives failures; zero for an endpoint that never received anything
	Exhausted           int       // deliveries that ran out of attempts since the last success; see AfterExhausted
}

// Since is c without streaks that started before t: after the clock was set to another time, their duration is unknown.
func (c Counters) Since(t time.Time) Counters {
	for _, started := range []*time.Time{&c.UnhealthySince, &c.AuthSince, &c.TLSOnlySince, &c.FirstFailureAt} {
		if !started.IsZero() && started.Before(t) {
			*started = t
		}
	}
	return c
}

// After adds one outcome, which the caller classified, at the moment when the attempt ended. Results that were recorded
// together can be out of order.
func (c Counters) After(class Class, r Result, at time.Time) Counters {
	if class == Success {
		return Counters{LastSuccessAt: Latest(c.LastSuccessAt, at)}
	}
	switch class {
	case Unhealthy:
		c.ConsecutiveFailures++
		c.UnhealthySince = earliest(c.UnhealthySince, at)
	case Auth:
		c.AuthStreak++
		c.AuthSince = earliest(c.AuthSince, at)
	}
	// A 410 adds to no streak, but it can disable the endpoint, and people ask when it came.
	if class == Unhealthy || class == Auth || class == Neutral && r.Failure == FailNone && r.Status == 410 {
		c.FirstFailureAt = earliest(c.FirstFailureAt, at)
		c.LastFailureAt = Latest(c.LastFailureAt, at)
	}
	switch {
	case r.Failure == FailTLS:
		c.TLSFailures++
		c.TLSOnlySince = earliest(c.TLSOnlySince, at)
	case r.Failure.Unsent(): // so nothing was learnt
	default:
		c.TLSFailures, c.TLSOnlySince = 0, time.Time{}
	}
	return c
}

// Clean reports whether nothing counts against the endpoint.
func (c Counters) Clean() bool { return c == Counters{LastSuccessAt: c.LastSuccessAt} }

// AfterExhausted adds one delivery that ran out of attempts.
func (c Counters) AfterExhausted() Counters {
	c.Exhausted++
	return c
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// Latest is the later of two times.
func Latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
