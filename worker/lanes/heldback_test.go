package lanes

import (
	"testing"
	"time"

	"posthorn/db"
)

func TestWhatLimitsHoldBackIsTheirPartOfTheWait(t *testing.T) {
	t.Parallel()
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	var h heldBack
	if d := h.since(at(0)); d != 0 {
		t.Errorf("a lane that no limit ever held back: %v", d)
	}
	h.begin(at(10))
	h.end(at(11))
	h.begin(at(11.05)) // the next delivery reaches the same limit: one period
	h.end(at(12))
	for created, want := range map[float64]time.Duration{
		0:    2 * time.Second, // what came before has waited for the platform until the limit was reached
		10.5: 1500 * time.Millisecond,
		12.5: 0,
	} {
		if got := h.since(at(created)); got != want {
			t.Errorf("created at %v s: %v, want %v", created, got, want)
		}
	}
	h.begin(at(20))
	h.end(at(21))
	if got := h.since(at(15)); got != time.Second {
		t.Errorf("another period: %v, want 1s", got)
	}
}

func TestALaneAtItsLimitIsHeldBackUntilNow(t *testing.T) {
	t.Parallel()
	b := newBench()
	tenant := db.NewID()
	b.lane(tenant, 10, 3)
	full := b.lane(tenant, 2, 5)
	b.d.Kick()
	endpoints, until := b.d.HeldBack()
	if len(endpoints) != 1 || endpoints[0] != full.id || time.Since(until[0]) > time.Minute {
		t.Errorf("held back are %v until %v, want the lane that has all its requests under way", endpoints, until)
	}
}
