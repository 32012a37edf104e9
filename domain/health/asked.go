package health

import "time"

// LookEvery is how long an endpoint that asked for a longer wait gets nothing at most: then one delivery is sent, to
// see whether the wait is still meant. A maintenance page with a day's Retry-After says nothing about when the
// maintenance really ends.
const LookEvery = time.Hour

// LongAsked is how long a wait is at least that a tenant's health names. Shorter ones are how servers limit a rate.
const LongAsked = 15 * time.Minute

// Asked is a wait that an endpoint asked for with Retry-After. Its lane sends nothing before it is over, except the
// request that looks. The zero value is none.
type Asked struct {
	Since  time.Time // when it first asked; zero: not known
	Until  time.Time
	LookAt time.Time // when one request is sent nevertheless; Until, if none is before; zero: none was planned
}

// AskFor is what an endpoint asks for that asks for this wait now.
func AskFor(wait time.Duration, now time.Time) Asked {
	return Asked{Since: now, Until: now.Add(wait), LookAt: now.Add(min(wait, LookEvery))}
}

// Holds reports whether the lane waits.
func (a Asked) Holds(now time.Time) bool { return a.Until.After(now) }

// Next is when the next request can be sent; zero: there is no wait.
func (a Asked) Next() time.Time {
	if a.LookAt.IsZero() || a.LookAt.After(a.Until) {
		return a.Until
	}
	return a.LookAt
}

// Looks reports whether a request is sent before the wait is over.
func (a Asked) Looks() bool { return a.Next().Before(a.Until) }

// Long reports whether the wait is worth a word in a tenant's health.
func (a Asked) Long(now time.Time) bool {
	return a.Holds(now) && (a.Since.IsZero() || a.Until.Sub(a.Since) > LongAsked)
}

// Extend is the wait after another response that was requested before it began, or at the same time. The longer wait
// counts.
func (a Asked) Extend(wait time.Duration, now time.Time) Asked {
	more := AskFor(wait, now)
	if !more.Until.After(a.Until) {
		return a
	}
	if a.Holds(now) {
		more.Since = a.Since
	}
	return more
}

// Looked is the wait after the response to a request that was sent during it: the newest word counts. A success ends
// the wait; a response that asks for another wait replaces it; any other leaves it as it is, until the next look.
func (a Asked) Looked(success bool, wait time.Duration, now time.Time) Asked {
	switch {
	case success:
		return Asked{}
	case wait > 0:
		next := AskFor(wait, now)
		next.Since = a.Since
		return next
	case a.Holds(now):
		a.LookAt = now.Add(min(a.Until.Sub(now), LookEvery))
	}
	return a
}

// Now is the wait with a look that can start at once: somebody asked for it.
func (a Asked) Now(now time.Time) Asked {
	if a.Holds(now) {
		a.LookAt = now
	}
	return a
}

// Looking is the wait while a look is under way.
func (a Asked) Looking(now time.Time) Asked {
	a.LookAt = now.Add(LookEvery)
	return a
}
