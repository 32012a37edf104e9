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
type Histogram [len(LatencyBounds) + 1]Slot

// Slot is the attempts of one slot.
type Slot struct {
	N   int64
	Min time.Duration // the shortest of them
	Max time.Duration // the longest; 0: not known, and at most the slot's upper bound
}

// Add enters attempts of the same slot.
func (s *Slot) Add(o Slot) {
	switch {
	case o.N <= 0:
		return
	case s.N <= 0:
		*s = o
		return
	case s.Max > 0 && o.Max > 0:
		s.Max = max(s.Max, o.Max)
	default:
		s.Max = 0
	}
	s.N += o.N
	s.Min = min(s.Min, o.Min)
}

// Quantile is the time within which the share q (0 to 1) of the attempts ended, as if those of a slot were spread
// evenly between the shortest and the longest of them. False when there were none. Where the longest of the last slot
// is not known, it gives 30 s, the longest timeout of an endpoint.
func (h Histogram) Quantile(q float64) (time.Duration, bool) {
	var total int64
	for _, s := range h {
		total += max(s.N, 0)
	}
	if total == 0 || math.IsNaN(q) {
		return 0, false
	}
	rank := min(max(q, 0), 1) * float64(total)
	var below float64
	for i, s := range h {
		n := float64(max(s.N, 0))
		if n == 0 || below+n < rank {
			below += n
			continue
		}
		low, high := s.Min, LatencyBounds[min(i, len(LatencyBounds)-1)]
		if i > 0 {
			low = max(low, LatencyBounds[i-1])
		}
		if s.Max > 0 && (s.Max < high || i == len(LatencyBounds)) {
			high = s.Max
		}
		return low + time.Duration((rank-below)/n*float64(high-low)), true
	}
	return LatencyBounds[len(LatencyBounds)-1], true
}
