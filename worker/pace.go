package worker

import "time"

const (
	// A tenant with fewer requests under way than this starts the next whenever it may.
	pacedFrom = 32
	minGap    = 100 * time.Microsecond // a shorter one spreads nothing: no worker starts so many
	maxGap    = time.Millisecond
	paceDebt  = 4 // starts that a timer which fires late makes up for
)

// pace spreads the starts of a tenant that holds many slots. Requests that begin together end together where their answers take
// alike, and what begins in their stead would begin together again: once in that time a thousand of them would keep every core from
// what the other tenants have to send. So two starts lie at least so far apart that all slots would be filled within the time that a
// request takes, which is no bound for whoever holds fewer, nor for requests that are answered fast.
type pace struct {
	took time.Duration // by a request, on the average of the last
	next time.Time     // no start before
}

// ended learns from a request. Weighted like the smoothed round-trip time of RFC 6298, half as fast.
func (p *pace) ended(took time.Duration) { p.took += (took - p.took) / 16 }

func (p *pace) gap() time.Duration {
	gap := min(p.took/maxInFlight, maxGap)
	if gap < minGap {
		return 0
	}
	return gap
}

// wait is how long a tenant with so many requests under way must not start another: 0 for not at all.
func (p *pace) wait(inFlight int, now time.Time) time.Duration {
	if inFlight < pacedFrom {
		return 0
	}
	return max(p.next.Sub(now), 0)
}

// started takes account of a start.
func (p *pace) started(now time.Time) {
	gap := p.gap()
	if earliest := now.Add(-paceDebt * gap); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(gap)
}
