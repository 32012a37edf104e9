package health

import (
	"math"
	"time"
)

// LatencyBounds are the bounds of the roll-ups' histogram: slot i holds durations of at least bound i-1 and less than
// bound i, the last slot those from the last bound on. Stored roll-ups count by slot, so a bound never changes.
var LatencyBounds = [15]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
}

// Histogram counts attempts by duration, in the slots of LatencyBounds.
type Histogram [len(LatencyBounds) + 1]int64

// Quantile is the time within which the share q (0 to 1) of the attempts ended, as if those of a slot were spread
// evenly over it. False when there were none. The last slot has no upper bound and gives 30 s, the longest time-out of
// an endpoint.
func (h Histogram) Quantile(q float64) (time.Duration, bool) {
	var total int64
	for _, n := range h {
		total += max(n, 0)
	}
	if total == 0 || math.IsNaN(q) {
		return 0, false
	}
	rank := min(max(q, 0), 1) * float64(total)
	var below float64
	for i, count := range h {
		n := float64(max(count, 0))
		if n == 0 || below+n < rank {
			below += n
			continue
		}
		if i == len(LatencyBounds) {
			break
		}
		var low time.Duration
		if i > 0 {
			low = LatencyBounds[i-1]
		}
		fraction := (rank - below) / n
		return low + time.Duration(fraction*float64(LatencyBounds[i]-low)), true
	}
	return LatencyBounds[len(LatencyBounds)-1], true
}
