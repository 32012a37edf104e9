package lanes

import (
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/pause"
)

func TestAPausedLaneStartsReadsAndKeepsNothing(t *testing.T) {
	t.Parallel()
	b := newBench()
	tenant, other := db.NewID(), db.NewID()
	paused, free := b.lane(tenant, 5, 20), b.lane(other, 5, 20)
	b.d.Kick()
	if b.of(tenant) != 5 || b.of(other) != 5 {
		t.Fatalf("%d and %d under way", b.of(tenant), b.of(other))
	}
	b.d.Pause(pause.NewSet([]pause.Pause{{Scope: pause.Tenant, Tenant: tenant}}), time.Now())
	for _, j := range append([]*Job{}, b.started...) {
		b.finish(j)
	}
	if b.of(tenant) != 5 {
		t.Errorf("%d requests of a paused tenant were started", b.of(tenant)-5)
	}
	if b.of(other) <= 5 {
		t.Error("the other tenant stands still too")
	}
	b.d.mu.Lock()
	if len(paused.window.rows) != len(paused.window.done) || paused.wantsRead() {
		t.Errorf("a paused lane keeps %d rows; wants to be read: %t", len(paused.window.rows), paused.wantsRead())
	}
	if b.d.rows != len(free.window.rows) {
		t.Errorf("%d rows are counted, %d are there", b.d.rows, len(free.window.rows))
	}
	b.d.mu.Unlock()
	// A lane that is leased during the pause is paused from the start.
	late := b.lane(tenant, 5, 20)
	b.d.Kick()
	if b.of(tenant) != 5 || !late.paused {
		t.Error("a lane that came later is served")
	}
	b.d.Pause(pause.NewSet(nil), time.Now())
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if !paused.wantsRead() || !paused.marked || paused.window.floor > 0 {
		t.Errorf("after the pause the lane is not read from its head: wants %t, marked %t, floor %d", paused.wantsRead(), paused.marked, paused.window.floor)
	}
}

func TestAfterAPauseDeliveriesComeAtTheEndpointsRate(t *testing.T) {
	t.Parallel()
	b := newBench()
	tenant := db.NewID()
	ep := db.NewID()
	now := time.Now()
	b.d.Install(Lease{EndpointID: ep, TenantID: tenant, Rev: 1, Tokens: 100}, &Settings{
		MaxInFlight: 100,
		Rate:        10,
		Burst:       100,
	}, now)
	everything := pause.NewSet([]pause.Pause{{Scope: pause.Platform}})
	b.d.Pause(everything, now)
	b.d.Pause(pause.NewSet(nil), now.Add(time.Minute))
	if have := b.d.lanes[ep].tokens(now.Add(time.Minute)); have >= 1 {
		t.Errorf("%.0f tokens have gathered during the pause", have)
	}
}
