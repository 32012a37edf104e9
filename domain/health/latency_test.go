package health_test

import (
	"testing"
	"time"

	"posthorn/domain/health"
)

// counted are attempts by slot of which nothing else is known.
func counted(n map[int]int64) (h health.Histogram) {
	for slot, of := range n {
		h[slot].N = of
	}
	return h
}

func TestPercentilesAreInterpolatedWithinTheirSlot(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	tests := []struct {
		name     string
		h        health.Histogram
		p50, p95 time.Duration
	}{
		{"nothing", health.Histogram{}, 0, 0},
		{"under a millisecond", counted(map[int]int64{0: 100}), ms / 2, 950 * time.Microsecond},
		{"one attempt", counted(map[int]int64{6: 1}), 75 * ms, 97*ms + 500*time.Microsecond},
		{"even over a slot", counted(map[int]int64{4: 100}), 15 * ms, 19*ms + 500*time.Microsecond},
		{"the rank on the border belongs to the lower slot", counted(map[int]int64{3: 50, 5: 50}), 10 * ms, 20*ms + 27*ms},
		{"two slots", counted(map[int]int64{0: 90, 9: 10}), 555555 * time.Nanosecond, 750 * ms},
		{"slow ones", counted(map[int]int64{14: 4}), 25 * time.Second, 29*time.Second + 500*ms},
		{"without an upper bound", counted(map[int]int64{15: 4}), 30 * time.Second, 30 * time.Second},
		{"mostly without an upper bound", counted(map[int]int64{0: 1, 15: 99}), 30 * time.Second, 30 * time.Second},
		{"one attempt of a known duration", health.Histogram{6: {N: 1, Min: 60 * ms, Max: 60 * ms}}, 60 * ms, 60 * ms},
		{"as long as all of them", health.Histogram{13: {N: 6, Min: 14_001 * ms, Max: 14_001 * ms}}, 14_001 * ms, 14_001 * ms},
		{"between the shortest and the longest", health.Histogram{8: {N: 100, Min: 300 * ms, Max: 320 * ms}}, 310 * ms, 319 * ms},
		{"longer than the last bound", health.Histogram{15: {N: 100, Min: 31_000 * ms, Max: 33_000 * ms}}, 32_000 * ms, 32_900 * ms},
		{"wrong counts count as none", counted(map[int]int64{0: -7, 4: 100}), 15 * ms, 19*ms + 500*time.Microsecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p50, _ := tt.h.Quantile(0.5)
			if p95, _ := tt.h.Quantile(0.95); p50 != tt.p50 || p95 != tt.p95 {
				t.Errorf("got %s and %s, want %s and %s", p50, p95, tt.p50, tt.p95)
			}
		})
	}
	h := counted(map[int]int64{0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8, 8: 9, 9: 8, 10: 7, 11: 6, 12: 5, 13: 4, 14: 3})
	var last time.Duration
	for q := -0.1; q <= 1.1; q += 0.01 {
		d, ok := h.Quantile(q)
		if !ok || d < last || d > 30*time.Second {
			t.Fatalf("at %.2f: %s after %s", q, d, last)
		}
		last = d
	}
	if last != 30*time.Second {
		t.Errorf("all ended within %s, want 30 s", last)
	}
}

// The durations of a slot are known while all that was entered are.
func TestASlotKnowsItsLongestWhileAllAreKnown(t *testing.T) {
	t.Parallel()
	var s health.Slot
	s.Add(health.Slot{N: 2, Min: 5, Max: 9})
	s.Add(health.Slot{N: 0, Min: 1})
	s.Add(health.Slot{N: 1, Min: 3, Max: 4})
	if s != (health.Slot{N: 3, Min: 3, Max: 9}) {
		t.Errorf("%+v", s)
	}
	if s.Add(health.Slot{N: 1}); s != (health.Slot{N: 4}) {
		t.Errorf("with an attempt of an older process: %+v", s)
	}
}

func TestLatencyBoundsAreThoseOfTheRollUps(t *testing.T) {
	t.Parallel()
	for i, ms := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000} {
		if health.LatencyBounds[i] != time.Duration(ms)*time.Millisecond {
			t.Errorf("bound %d is %s", i, health.LatencyBounds[i])
		}
	}
}
