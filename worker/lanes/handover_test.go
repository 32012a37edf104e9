package lanes

import (
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/pause"
	"posthorn/worker/send"
)

// caughtUp is a lane that has been read to its end, of an endpoint with the test's settings.
func caughtUp(b *bench, s *Settings, h Health) *Lane {
	ep := db.NewID()
	b.d.Install(Lease{EndpointID: ep, TenantID: db.NewID(), Rev: 1, DropBelow: 10, Health: h}, s, time.Now())
	if plan := b.d.Plan(); !plan.Empty() {
		b.d.Take(plan, Found{})
	}
	return b.d.lanes[ep]
}

func fresh(ep id.UUID, seq int64) Fresh {
	e := db.NewID()
	return Fresh{
		Seq:        seq,
		EndpointID: ep,
		DeliveryID: db.NewID(),
		Event:      &send.Payload{Event: &sql.Event{ID: e, Data: []byte("{}")}},
	}
}

func TestAFreshRowIsSentWithoutARead(t *testing.T) {
	t.Parallel()
	b := newBench()
	l := caughtUp(b, &Settings{MaxInFlight: 5}, Health{})
	mark := b.d.Mark()
	if left := b.d.HandOver(mark, id.UUID{}, []Fresh{fresh(l.id, 11), fresh(l.id, 12)}); len(left) > 0 {
		t.Fatalf("%d rows are left to a read", len(left))
	}
	if len(b.started) != 2 || b.started[0].Seq != 11 || b.started[1].Seq != 12 {
		t.Fatalf("%d requests began", len(b.started))
	}
	if plan := b.d.Plan(); !plan.Empty() {
		t.Error("the lane is read all the same")
	}
}

func TestARowIsLeftToARead(t *testing.T) {
	t.Parallel()
	now := time.Now()
	plain := &Settings{MaxInFlight: 5}
	for _, tt := range []struct {
		name   string
		s      *Settings
		health Health
		seq    int64
		before func(*Dispatcher, *Lane) // after the mark
	}{
		{"whose number is not known", plain, Health{}, 0, nil},
		{"that is to be dropped", plain, Health{}, 10, nil},
		{"of an ordered lane", &Settings{MaxInFlight: 5, Ordered: true}, Health{}, 11, nil},
		{"of a lane whose breaker is open", plain, Health{Breaker: health.Breaker{State: health.Open, NextProbeAt: now.Add(time.Hour)}}, 11, nil},
		{"of a paused lane", plain, Health{}, 11, func(d *Dispatcher, l *Lane) {
			d.Pause(pause.NewSet([]pause.Pause{{Scope: pause.Tenant, Tenant: l.tenant}}), now)
		}},
		{"of a lane that has older ones to read", plain, Health{}, 11, func(d *Dispatcher, l *Lane) { d.Wake([]id.UUID{l.id}) }},
		{"of a lane that is being read", plain, Health{}, 11, func(d *Dispatcher, l *Lane) {
			d.Wake([]id.UUID{l.id})
			d.Plan()
		}},
		{"of a lane that was read since the mark", plain, Health{}, 11, func(d *Dispatcher, l *Lane) {
			d.Wake([]id.UUID{l.id})
			d.Take(d.Plan(), Found{})
		}},
		{"of a lane that came back since the mark", plain, Health{}, 11, func(d *Dispatcher, l *Lane) {
			d.Reset()
			d.Install(Lease{EndpointID: l.id, TenantID: l.tenant, Rev: 1}, plain, now)
			d.lanes[l.id].window.wanted = false
		}},
		{"of a lane whose configuration changed", plain, Health{}, 11, func(d *Dispatcher, l *Lane) {
			d.Configure(Lease{EndpointID: l.id, Rev: 2}, plain, now)
		}},
		{"of a lane that is given back", plain, Health{}, 11, func(d *Dispatcher, _ *Lane) { d.DrainBusy(1) }},
		{"of a lane of another worker", plain, Health{}, 11, func(d *Dispatcher, _ *Lane) { d.Reset() }},
		{"while memory is full", plain, Health{}, 11, func(d *Dispatcher, _ *Lane) { d.rows = maxReadAhead }},
		{"once the dispatcher has stopped", plain, Health{}, 11, func(d *Dispatcher, _ *Lane) { d.Stop() }},
	} {
		b := newBench()
		l := caughtUp(b, tt.s, tt.health)
		mark := b.d.Mark()
		if tt.before != nil {
			tt.before(b.d, l)
		}
		if left := b.d.HandOver(mark, id.UUID{}, []Fresh{fresh(l.id, tt.seq)}); len(left) != 1 || left[0] != l.id ||
			len(b.started) > 0 {
			t.Errorf("a row %s: %d left, %d requests began", tt.name, len(left), len(b.started))
		}
	}
}

func TestALaneThatIsHandedRowsIsReadNowAndThen(t *testing.T) {
	t.Parallel()
	b := newBench()
	l := caughtUp(b, &Settings{MaxInFlight: 5}, Health{})
	for seq := int64(11); seq < 11+maxHanded; seq++ {
		if plan := b.d.Plan(); !plan.Empty() {
			t.Fatalf("the lane is read after %d rows", seq-11)
		}
		if left := b.d.HandOver(b.d.Mark(), id.UUID{}, []Fresh{fresh(l.id, seq)}); len(left) > 0 {
			t.Fatalf("row %d is left", seq)
		}
		b.finish(b.started[len(b.started)-1])
	}
	plan := b.d.Plan()
	if plan.Empty() {
		t.Fatal("the lane is never read")
	}
	b.d.Take(plan, Found{Settled: 10 + maxHanded})
	if l.window.floor != 10+maxHanded {
		t.Errorf("the floor is %d after a read that settled %d", l.window.floor, 10+maxHanded)
	}
}
