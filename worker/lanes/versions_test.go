package lanes

import (
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/worker/send"
)

// versioned is a caught-up lane whose settings are of version 5, of an endpoint with a dispatcher that notes requests
// for comparisons.
func versioned(asked *[]id.UUID) (*bench, *Lane) {
	b := &bench{}
	b.d = New(func(j *Job) { b.started = append(b.started, j) }, func() {},
		func(ep id.UUID) { *asked = append(*asked, ep) }, func() bool { return true })
	ep := db.NewID()
	b.d.Install(Lease{EndpointID: ep, TenantID: db.NewID(), Rev: 1, Version: 5}, &Settings{MaxInFlight: 50}, time.Now())
	b.d.Take(b.d.Plan(), Found{})
	return b, b.d.lanes[ep]
}

// emitted hands events over that were stored under a version.
func (b *bench) emitted(l *Lane, version int64, seqs ...int64) {
	rows := make([]Fresh, len(seqs))
	for i, seq := range seqs {
		rows[i] = fresh(l.id, seq)
		rows[i].Event.RoutingVersion = version
	}
	b.d.HandOver(b.d.Mark(), id.UUID{}, rows)
}

func TestALaneStartsNothingUntilItWasComparedForANewerEvent(t *testing.T) {
	t.Parallel()
	var asked []id.UUID
	b, l := versioned(&asked)
	b.emitted(l, 5, 1)
	if len(b.started) != 1 || len(asked) != 0 {
		t.Fatalf("%d started and %d comparisons for an event of the lane's version", len(b.started), len(asked))
	}
	b.emitted(l, 6, 2, 3, 4)
	b.emitted(l, 6, 5)
	b.d.Kick()
	if len(b.started) != 1 || len(asked) != 1 {
		t.Fatalf("%d started, %d comparisons; want 1 request and one comparison for all events", len(b.started), len(asked))
	}
	revs := []Revision{{EndpointID: l.id, Rev: 1}}
	before := b.d.Behind()
	b.emitted(l, 7, 6) // after the revisions were read
	if changed := b.d.Compare(revs, before, false); len(changed) > 0 {
		t.Fatal("an unchanged lane is configured again")
	}
	if b.d.Kick(); len(b.started) != 1 {
		t.Fatal("a comparison from before an event let it start")
	}
	if len(asked) != 2 {
		t.Fatalf("%d comparisons were asked for, want another one", len(asked))
	}
	b.d.Compare(revs, b.d.Behind(), true)
	if b.d.Kick(); len(b.started) != 6 {
		t.Errorf("%d started after the comparison, want all", len(b.started))
	}
	b.emitted(l, 7, 7)
	if len(b.started) != 7 || len(asked) != 2 || len(b.d.Behind()) != 0 {
		t.Errorf("the lane does not remember its version: %d started, %d comparisons", len(b.started), len(asked))
	}
}

func TestALaneThatChangedStartsAgainWithItsNewSettings(t *testing.T) {
	t.Parallel()
	var asked []id.UUID
	b, l := versioned(&asked)
	b.emitted(l, 6, 1)
	behind := b.d.Behind()
	if changed := b.d.Compare([]Revision{{EndpointID: l.id, Rev: 2}}, behind, false); len(changed) != 1 {
		t.Fatal("the change was not seen")
	}
	if b.d.Kick(); len(b.started) != 0 {
		t.Fatal("an event was started between the comparison and the new settings")
	}
	b.d.Configure(Lease{EndpointID: l.id, Rev: 2, Version: behind[l.id]}, &Settings{MaxInFlight: 7}, time.Now())
	row := fresh(l.id, 1)
	row.Event.RoutingVersion = 6
	b.d.Take(b.d.Plan(), Found{
		Rows:   []Row{{Seq: 1, EndpointID: l.id, DeliveryID: row.DeliveryID, EventID: row.Event.ID}},
		Events: map[id.UUID]*send.Payload{row.Event.ID: row.Event},
	})
	if b.d.Kick(); len(b.started) != 1 || b.started[0].Lane.Settings().MaxInFlight != 7 {
		t.Errorf("%d started with the new settings, want the event", len(b.started))
	}
}

func TestALaneThatIsHeldOrGoneStartsNothingForANewerEvent(t *testing.T) {
	t.Parallel()
	var asked []id.UUID
	b, l := versioned(&asked)
	b.emitted(l, 6, 1, 2)
	b.d.Compare([]Revision{{EndpointID: l.id, Rev: 2, Held: true}}, b.d.Behind(), false)
	if b.d.Kick(); len(b.started) != 0 {
		t.Fatal("an event was sent after the pause")
	}
	if n := len(b.d.ReleaseDrained(time.Now())); n != 1 || len(b.d.Behind()) != 0 {
		t.Errorf("%d lanes are given back, %d are still to be compared", n, len(b.d.Behind()))
	}
}
