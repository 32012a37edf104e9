package lanes

import (
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/condition"
	"posthorn/domain/id"
	"posthorn/domain/pause"
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
		0:    2 * time.Second, // an earlier delivery has waited for the platform until the limit was reached
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

// A delivery that a lane's limit held back is not late, neither during the limit nor from the moment at which it ends.
func TestALimitIsRecordedWhenItStartsAndEnds(t *testing.T) {
	t.Parallel()
	b := newBench()
	tenant := db.NewID()
	free, full := b.lane(tenant, 10, 3), b.lane(tenant, 2, 50)
	b.d.Kick()
	now := time.Now()
	type note struct {
		limit    condition.Limit
		until    time.Time
		inFlight int
	}
	noted := func(want map[id.UUID]note) {
		t.Helper()
		got := map[id.UUID]note{}
		for _, n := range append(b.d.Limits(now), b.d.Limits(now)...) { // a short limit is not recorded
			got[n.Endpoint] = note{n.Limit, n.Until, len(n.InFlight)}
		}
		if len(got) != len(want) {
			t.Errorf("noted %v, want %v", got, want)
		}
		for ep, w := range want {
			if got[ep] != w {
				t.Errorf("noted %+v, want %+v", got[ep], w)
			}
		}
	}
	noted(map[id.UUID]note{free.id: {}, full.id: {condition.ByInFlight, now, 0}})
	now = now.Add(time.Hour)
	noted(map[id.UUID]note{free.id: {inFlight: 3}, full.id: {condition.ByInFlight, now, 2}}) // requests that last are recorded
	now = now.Add(time.Hour)
	noted(nil)
	ended := now
	b.d.mu.Lock()
	full.settings.Store(&Settings{MaxInFlight: 100})
	full.held.end(ended)
	b.d.mu.Unlock()
	now = now.Add(time.Second)
	noted(map[id.UUID]note{full.id: {condition.Unlimited, ended, 2}})
	now = now.Add(time.Hour)
	noted(nil)
	// A backlog of an operator's pause is recorded when the pause ends.
	b.d.Pause(pause.NewSet([]pause.Pause{{Scope: pause.Platform}}), now)
	b.d.Pause(pause.NewSet(nil), now)
	b.refill(full, 5)
	noted(map[id.UUID]note{full.id: {condition.Unlimited, now, 2}})
}
