package lanes

import "time"

const (
	// A tenant with fewer requests in flight than this is not paced.
	pacedFrom = 32
	minGap    = 100 * time.Microsecond // a shorter gap has no effect: no worker starts requests that fast
	maxGap    = time.Millisecond
	paceDebt  = 4 // how many starts a late timer catches up
)

// pace spreads the starts of a tenant that holds many slots. If responses are equally slow, requests that start
// together end together, and their successors would start together again: a thousand at once would keep every core from
// other tenants' deliveries. So two starts are far enough apart that all slots are filled within the duration of one
// request. That limits neither a tenant with few slots nor fast responses.
type pace struct {
	took time.Duration // duration of a request: a moving average
	next time.Time     // no start before
}

// ended adds a request to the average. Weighted like the smoothed round-trip time of RFC 6298, half as fast.
func (p *pace) ended(took time.Duration) { p.took += (took - p.took) / 16 }

func (p *pace) gap() time.Duration {
	gap := min(p.took/maxInFlight, maxGap)
	if gap < minGap {
		return 0
	}
	return gap
}

// wait is how long a tenant with this many requests in flight must not start another; 0: it can start one.
func (p *pace) wait(inFlight int, now time.Time) time.Duration {
	if inFlight < pacedFrom {
		return 0
	}
	return max(p.next.Sub(now), 0)
}

// started counts a start.
func (p *pace) started(now time.Time) {
	gap := p.gap()
	if earliest := now.Add(-paceDebt * gap); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(gap)
}
