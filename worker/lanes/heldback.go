package lanes

import "time"

// heldBack is the period in which a lane's own limits last kept it from starting a request: rate limit, concurrency,
// order, Retry-After or circuit breaker. A delay that an endpoint requests itself is not lateness of the platform. The
// dispatcher's mutex guards it.
type heldBack struct {
	from, until time.Time
}

// periodGap joins periods that follow each other: a lane at its limit is free for a moment between two requests.
const periodGap = 100 * time.Millisecond

// begin records that a limit holds the lane back from now on.
func (h *heldBack) begin(now time.Time) {
	if now.Sub(h.until) > periodGap {
		h.from = now
	}
	h.until = now
}

// end records that the limit no longer holds the lane back.
func (h *heldBack) end(now time.Time) {
	if h.from.IsZero() {
		h.from = now
	}
	h.until = now
}

// since returns for how long the limits have held back a delivery that was created at a moment.
func (h *heldBack) since(created time.Time) time.Duration {
	if created.Before(h.from) {
		created = h.from
	}
	return max(h.until.Sub(created), 0)
}

// inherit takes over what is known about the time before this worker leased the lane: an open breaker, and a bucket
// that its last owner left empty. The bucket of an owner that died is exactly 0 and says nothing.
func (h *heldBack) inherit(l *Lane, saved, idleSeconds float64, now time.Time) {
	switch opened := l.health.breaker.OpenedAt; {
	case !opened.IsZero():
		h.from, h.until = opened, now
	case l.limiter != nil && saved > 0 && saved < 1:
		h.from, h.until = time.Unix(0, 0), now.Add(-time.Duration(idleSeconds*float64(time.Second)))
	}
}
