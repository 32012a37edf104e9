//go:build soak && unix

package e2e

import (
	"net/http"
	"testing"
	"time"
)

// TestAMillionHeldDeliveriesPauseAndResumeInUnderASecond: pausing and resuming write one row, whatever waits behind it.
func TestAMillionHeldDeliveriesPauseAndResumeInUnderASecond(t *testing.T) {
	t.Parallel()
	const days, perDay, rounds = 7, 7143, 20
	w := newWorld(t, nil)
	w.serveAt(w.launch("web", "web").ready())
	w.launch("worker", "worker").ready()
	ep := w.endpoint("/huge", settings{"rate_limit": 50, "burst": 1})
	act := func(action string) {
		t.Helper()
		began := startWatch()
		w.manage(http.MethodPost, "/endpoints/"+ep+"/"+action, nil, nil)
		took := began.passed()
		t.Logf("%s with %d deliveries behind: %v", action, w.ask("SELECT count(*) FROM queue"), took.Round(time.Millisecond))
		if took > time.Second {
			t.Errorf("%s took %v", action, took)
		}
	}
	act("pause")
	for range rounds {
		outage{endpoint: ep, days: days, perDay: perDay}.store(w)
	}
	if n := w.ask("SELECT count(*) FROM queue"); n < 1_000_000 {
		t.Fatalf("%d deliveries are held", n)
	}
	before := w.receiver.count()
	act("resume")
	eventually(t, patience, "it drains", func() bool { return w.receiver.count() > before+100 })
	act("pause")
	var now struct {
		Health struct {
			Held  int
			Exact bool `json:"held_exact"`
		}
	}
	began := startWatch()
	w.manage(http.MethodGet, "/endpoints/"+ep, nil, &now)
	if took := began.passed(); took > time.Second || now.Health.Held < 10_000 || now.Health.Exact {
		t.Errorf("what is held was counted in %v: %+v", took, now.Health)
	}
	act("resume")
	act("pause")
}
