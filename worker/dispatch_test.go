package worker

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"posthorn/db"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
)

// bench is a dispatcher whose jobs end when the test says so.
type bench struct {
	d       *dispatcher
	started []*job
	done    int
}

func newBench() *bench {
	b := &bench{}
	b.d = newDispatcher(func(j *job) { b.started = append(b.started, j) }, func() {}, func() bool { return true })
	return b
}

// lane gives a tenant a lane with so many deliveries ready.
func (b *bench) lane(tenant id.UUID, maxInFlight, ready int) *lane {
	ep := db.NewID()
	b.d.install(db.Leased{LeaseLanesRow: db.LeaseLanesRow{EndpointID: ep, TenantID: tenant, Rev: 1}}, &target{maxInFlight: maxInFlight}, time.Now())
	l := b.d.lanes[ep]
	b.refill(l, ready)
	return l
}

func (b *bench) refill(l *lane, ready int) {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	for range ready {
		seq := int64(len(l.rows) + 1)
		for l.rows[seq] != nil {
			seq++
		}
		j := &job{seq: seq, lane: l}
		l.rows[seq] = j
		l.ready = append(l.ready, j)
		b.d.rows++
	}
	b.d.runnable(l)
}

// finish ends a request; what starts in its stead is among the started.
func (b *bench) finish(j *job) {
	next := b.d.finished(j, end{decision: delivery.Decision{Status: delivery.Delivered, Class: delivery.Success}, result: delivery.Result{Status: 200}}, time.Now()).next
	b.d.settled([]*job{j})
	if next != nil {
		b.started = append(b.started, next)
	}
}

func (b *bench) of(tenant id.UUID) (n int) {
	for _, j := range b.started {
		if j.lane.tenant == tenant {
			n++
		}
	}
	return n
}

func TestTenantsTakeTurnsHoweverManyLanesTheyHave(t *testing.T) {
	t.Parallel()
	b := newBench()
	many, one := db.NewID(), db.NewID()
	for range 50 {
		b.lane(many, 100, 100)
	}
	b.lane(one, 100, 100)
	b.d.kick()
	// Until the one lane is at its own limit both have started as many.
	if got := b.of(one); got != 100 {
		t.Errorf("the tenant with one lane has %d requests under way, want 100", got)
	}
	first := b.started[:200]
	ones := 0
	for _, j := range first {
		if j.lane.tenant == one {
			ones++
		}
	}
	if ones < 95 || ones > 105 {
		t.Errorf("of the first 200 requests %d are of the tenant with one lane, want about half", ones)
	}
}

func TestLanesOfATenantTakeTurns(t *testing.T) {
	t.Parallel()
	b := newBench()
	tenant := db.NewID()
	lanes := []*lane{b.lane(tenant, 100, 100), b.lane(tenant, 100, 100), b.lane(tenant, 100, 100)}
	b.d.kick()
	count := map[*lane]int{}
	for _, j := range b.started[:30] {
		count[j.lane]++
	}
	for i, l := range lanes {
		if count[l] != 10 {
			t.Errorf("lane %d has %d of the first 30 requests, want 10", i, count[l])
		}
	}
}

func TestNoTenantTakesTheLastSlots(t *testing.T) {
	t.Parallel()
	b := newBench()
	stuck, well := db.NewID(), db.NewID()
	for range 1000 {
		b.lane(stuck, 5, 20)
	}
	b.d.kick()
	if got := len(b.started); got > maxInFlight/2 || got < maxInFlight/2-1 {
		t.Errorf("alone, a tenant with stuck endpoints has %d of %d slots, want half", got, maxInFlight)
	}
	l := b.lane(well, 50, 50)
	b.d.kick()
	if got := b.of(well); got != 50 {
		t.Errorf("another tenant has %d of the 50 it may have", got)
	}
	_ = l
}

// What one tenant leaves unused is lent to the others.
func TestAnUnusedShareIsLent(t *testing.T) {
	t.Parallel()
	b := newBench()
	busy := db.NewID()
	for range 9 {
		b.lane(db.NewID(), 1, 1) // tenants that want next to nothing
	}
	for range 10 {
		b.lane(busy, 100, 100)
	}
	b.d.kick()
	if got := b.of(busy); got < maxInFlight/3 {
		t.Errorf("the busy tenant has %d of %d slots although nobody else wants them", got, maxInFlight)
	}
}

func TestManyStuckTenantsDoNotKeepAnotherFromItsTurn(t *testing.T) {
	t.Parallel()
	b := newBench()
	for range 500 {
		tenant := db.NewID()
		for range 4 {
			b.lane(tenant, 5, 20)
		}
	}
	b.d.kick()
	held := len(b.started)
	if held > maxInFlight-1 {
		t.Errorf("%d of %d slots are taken by tenants that all wait: none is left for another", held, maxInFlight)
	}
	well := db.NewID()
	b.lane(well, 1, 1)
	b.d.kick()
	if got := b.of(well); got != 1 {
		t.Errorf("a tenant that asks for one slot has %d: it waits behind %d that may not have more", got, len(b.d.active))
	}
}

func TestSlotsAreBoundedWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBench()
		tenants := []id.UUID{db.NewID(), db.NewID(), db.NewID()}
		var lanes []*lane
		for i := range rapid.IntRange(1, 8).Draw(t, "lanes") {
			lanes = append(lanes, b.lane(tenants[i%3], rapid.IntRange(1, 100).Draw(t, "most"), rapid.IntRange(0, 300).Draw(t, "ready")))
		}
		t.Repeat(map[string]func(*rapid.T){
			"kick": func(*rapid.T) { b.d.kick() },
			"refill": func(t *rapid.T) {
				b.refill(rapid.SampledFrom(lanes).Draw(t, "lane"), rapid.IntRange(1, 200).Draw(t, "ready"))
			},
			"finish": func(t *rapid.T) {
				for range rapid.IntRange(1, 50).Draw(t, "finished") {
					if b.done == len(b.started) {
						return
					}
					b.finish(b.started[b.done])
					b.done++
				}
			},
			"": func(t *rapid.T) {
				flying := map[*lane]int{}
				for _, j := range b.started[b.done:] {
					flying[j.lane]++
				}
				total := 0
				for _, l := range lanes {
					total += flying[l]
					if flying[l] != l.inFlight || flying[l] > l.target.Load().maxInFlight {
						t.Fatalf("%d requests of a lane that may have %d and counts %d", flying[l], l.target.Load().maxInFlight, l.inFlight)
					}
				}
				if total != b.d.inFlight || total > maxInFlight {
					t.Fatalf("%d requests under way, %d are counted, %d are allowed", total, b.d.inFlight, maxInFlight)
				}
			},
		})
		// Nothing is forgotten: with free slots everything starts in the end.
		for {
			b.d.kick()
			if b.done == len(b.started) {
				break
			}
			b.finish(b.started[b.done])
			b.done++
		}
		for i, l := range lanes {
			if len(l.ready) > 0 {
				t.Fatalf("lane %d keeps %d deliveries that never start", i, len(l.ready))
			}
		}
	})
}

// A lane that a full share or a stop keeps waiting has its deliveries still.
func TestAStoppedDispatcherStartsNothing(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.lane(db.NewID(), 5, 10)
	b.d.stop()
	b.d.kick()
	if len(b.started) != 0 {
		t.Errorf("%d requests after the stop", len(b.started))
	}
	var alive bool
	fenced := &bench{}
	fenced.d = newDispatcher(func(j *job) { fenced.started = append(fenced.started, j) }, func() {}, func() bool { return alive })
	fenced.lane(db.NewID(), 5, 10)
	fenced.d.kick()
	if len(fenced.started) != 0 {
		t.Errorf("%d requests on an old beat", len(fenced.started))
	}
	alive = true
	fenced.d.kick()
	if len(fenced.started) != 5 {
		t.Errorf("%d requests after a fresh beat, want 5", len(fenced.started))
	}
}

func TestOnlyTheSurplusOfLanesIsGivenBack(t *testing.T) {
	t.Parallel()
	b := newBench()
	tenant := db.NewID()
	for range 10 {
		l := b.lane(tenant, 5, 0)
		l.dirty, l.used = false, time.Now()
	}
	for range 10 {
		b.lane(tenant, 5, 50)
	}
	b.d.kick()
	idle := b.d.spare(6, time.Now())
	if len(idle) != 6 {
		t.Fatalf("%d idle lanes are given back, want 6", len(idle))
	}
	b.d.retireBusy(8 - len(idle))
	closed := 0
	for _, l := range b.d.lanes {
		if l.closed {
			closed++
		}
	}
	if closed != 8 {
		t.Errorf("%d lanes are given back, want 8", closed)
	}
}

// With the memory full a lane that has something ready is not looked at in every pass: its next start asks for it, and its last for
// the few rows that keep it going.
func TestAFullMemoryDoesNotHaveEveryLaneLookedAt(t *testing.T) {
	t.Parallel()
	b := newBench()
	tenant := db.NewID()
	l := b.lane(tenant, 1, 2)
	b.d.rows = maxReadAhead + 10
	plan := func() db.LaneRead {
		read, _ := b.d.plan()
		return read
	}
	if read := plan(); len(read.Endpoints) != 0 || len(b.d.marked) != 0 {
		t.Fatalf("%d lanes read, %d to be looked at again", len(read.Endpoints), len(b.d.marked))
	}
	b.d.kick()
	if len(b.started) != 1 || len(b.d.marked) != 1 {
		t.Fatalf("%d started, %d lanes to be looked at", len(b.started), len(b.d.marked))
	}
	if read := plan(); len(read.Endpoints) != 0 {
		t.Fatalf("read with %d ready", len(l.ready))
	}
	b.finish(b.started[0])
	read := plan()
	if len(b.started) != 2 || len(l.ready) != 0 || len(read.Endpoints) != 1 || read.Limits[0] != 4 {
		t.Fatalf("%d started, %d ready, read %v of %d lanes", len(b.started), len(l.ready), read.Limits, len(read.Endpoints))
	}
}
