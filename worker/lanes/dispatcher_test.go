package lanes

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"posthorn/db"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
)

// bench is a dispatcher whose jobs end on the test's command.
type bench struct {
	d       *Dispatcher
	started []*Job
	done    int
}

func newBench() *bench {
	b := &bench{}
	b.d = New(func(j *Job) { b.started = append(b.started, j) }, func() {}, func(id.UUID) {}, func() bool { return true })
	return b
}

// lane gives a tenant a lane with this many ready deliveries.
func (b *bench) lane(tenant id.UUID, MaxInFlight, ready int) *Lane {
	ep := db.NewID()
	b.d.Install(Lease{EndpointID: ep, TenantID: tenant, Rev: 1}, &Settings{MaxInFlight: MaxInFlight}, time.Now())
	l := b.d.lanes[ep]
	b.refill(l, ready)
	return l
}

func (b *bench) refill(l *Lane, ready int) {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	for range ready {
		seq := int64(len(l.window.rows) + 1)
		for l.window.rows[seq] != nil {
			seq++
		}
		j := &Job{Row: Row{Seq: seq, DeliveryID: db.NewID()}, Lane: l}
		l.window.rows[seq] = j
		l.ready = append(l.ready, j)
		b.d.rows++
	}
	b.d.runnable(l)
}

// finish ends a request; the next one is then among the started.
func (b *bench) finish(j *Job) {
	next := b.d.Finish(j, Outcome{
		Decision: delivery.Decision{Status: delivery.Delivered, Class: delivery.Success},
		Result:   delivery.Result{Status: 200},
	}, time.Now()).Next
	b.d.Settle([]*Job{j})
	if next != nil {
		b.started = append(b.started, next)
	}
}

func (b *bench) of(tenant id.UUID) (n int) {
	for _, j := range b.started {
		if j.Lane.tenant == tenant {
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
	b.d.Kick()
	// Until the one lane is at its own limit, both have started the same number.
	if got := b.of(one); got != 100 {
		t.Errorf("the tenant with one lane has %d requests under way, want 100", got)
	}
	first := b.started[:200]
	ones := 0
	for _, j := range first {
		if j.Lane.tenant == one {
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
	lanes := []*Lane{b.lane(tenant, 100, 100), b.lane(tenant, 100, 100), b.lane(tenant, 100, 100)}
	b.d.Kick()
	count := map[*Lane]int{}
	for _, j := range b.started[:30] {
		count[j.Lane]++
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
	b.d.Kick()
	if got := len(b.started); got > maxInFlight/2 || got < maxInFlight/2-1 {
		t.Errorf("alone, a tenant with stuck endpoints has %d of %d slots, want half", got, maxInFlight)
	}
	l := b.lane(well, 50, 50)
	b.d.Kick()
	if got := b.of(well); got != 50 {
		t.Errorf("another tenant has %d of the 50 it may have", got)
	}
	_ = l
}

// Slots that one tenant leaves unused are lent to the others.
func TestUnusedSlotsAreLent(t *testing.T) {
	t.Parallel()
	b := newBench()
	busy := db.NewID()
	for range 9 {
		b.lane(db.NewID(), 1, 1) // tenants with almost no deliveries
	}
	for range 10 {
		b.lane(busy, 100, 100)
	}
	b.d.Kick()
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
	b.d.Kick()
	held := len(b.started)
	if held > maxInFlight-1 {
		t.Errorf("%d of %d slots are taken by tenants that all wait: none is left for another", held, maxInFlight)
	}
	well := db.NewID()
	b.lane(well, 1, 1)
	b.d.Kick()
	if got := b.of(well); got != 1 {
		t.Errorf("a tenant that asks for one slot has %d: it waits behind %d that may not have more", got, len(b.d.active))
	}
}

// The clock of the test does not move: on a busy machine the requests would last long enough for pacing, whose timer
// starts requests while the test counts them.
func TestSlotsAreBoundedWhateverHappens(t *testing.T) {
	t.Parallel()
	// whose Deadline cannot be asked in a bubble
	synctest.Test(t, func(t *testing.T) { rapid.Check(struct{ testing.TB }{t}, slotsAreBounded) })
}

func slotsAreBounded(t *rapid.T) {
	b := newBench()
	tenants := []id.UUID{db.NewID(), db.NewID(), db.NewID()}
	var lanes []*Lane
	for i := range rapid.IntRange(1, 8).Draw(t, "lanes") {
		lanes = append(lanes, b.lane(tenants[i%3], rapid.IntRange(1, 100).Draw(t, "most"), rapid.IntRange(0, 300).Draw(t, "ready")))
	}
	t.Repeat(map[string]func(*rapid.T){
		"kick": func(*rapid.T) { b.d.Kick() },
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
			flying := map[*Lane]int{}
			for _, j := range b.started[b.done:] {
				flying[j.Lane]++
			}
			total := 0
			for _, l := range lanes {
				total += flying[l]
				if flying[l] != l.inFlight || flying[l] > l.settings.Load().MaxInFlight {
					t.Fatalf("%d requests of a lane that may have %d and counts %d", flying[l], l.settings.Load().MaxInFlight, l.inFlight)
				}
			}
			if total != b.d.inFlight || total > maxInFlight {
				t.Fatalf("%d requests under way, %d are counted, %d are allowed", total, b.d.inFlight, maxInFlight)
			}
		},
	})
	// Nothing is lost: with free slots everything starts in the end.
	for {
		b.d.Kick()
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
}

// A lane that waits because of a full share or a stop keeps its deliveries.
func TestAStoppedDispatcherStartsNothing(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.lane(db.NewID(), 5, 10)
	b.d.Stop()
	b.d.Kick()
	if len(b.started) != 0 {
		t.Errorf("%d requests after the stop", len(b.started))
	}
	var alive bool
	fenced := &bench{}
	fenced.d = New(func(j *Job) { fenced.started = append(fenced.started, j) }, func() {}, func(id.UUID) {}, func() bool { return alive })
	fenced.lane(db.NewID(), 5, 10)
	fenced.d.Kick()
	if len(fenced.started) != 0 {
		t.Errorf("%d requests on an old beat", len(fenced.started))
	}
	alive = true
	fenced.d.Kick()
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
		l.window.wanted, l.lastStarted = false, time.Now()
	}
	for range 10 {
		b.lane(tenant, 5, 50)
	}
	b.d.Kick()
	idle := b.d.ReleaseIdle(6, time.Now())
	if len(idle) != 6 {
		t.Fatalf("%d idle lanes are given back, want 6", len(idle))
	}
	b.d.DrainBusy(8 - len(idle))
	closed := len(idle)
	for _, l := range b.d.lanes {
		if l.phase != serving {
			closed++
		}
	}
	if closed != 8 {
		t.Errorf("%d lanes are given back, want 8", closed)
	}
}

// With the memory full, a lane with something ready is not checked in every pass: its next start requests the check,
// and its last start requests the few rows that keep it going.
func TestAFullMemoryDoesNotCauseAScanOfEveryLane(t *testing.T) {
	t.Parallel()
	b := newBench()
	tenant := db.NewID()
	l := b.lane(tenant, 1, 2)
	b.d.rows = maxReadAhead + 10
	plan := b.d.Plan
	if read := plan(); len(read.Endpoints) != 0 || len(b.d.marked) != 0 {
		t.Fatalf("%d lanes read, %d to be looked at again", len(read.Endpoints), len(b.d.marked))
	}
	b.d.Kick()
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

// The platform's own proxy holds the lane for a while. Its deliveries use up no schedule, and their wait is none of the
// endpoint's own limits.
func TestAFailedProxyHoldsTheLane(t *testing.T) {
	t.Parallel()
	b := newBench()
	tenant := db.NewID()
	b.lane(tenant, 5, 10)
	b.d.Kick()
	j := b.started[0]
	l := j.Lane
	before, health, now := len(b.started), l.health, time.Now()
	o := Outcome{
		Decision: delivery.Decision{Status: delivery.Retrying, RetryIn: 15 * time.Second, Hold: 15 * time.Second},
		Result:   delivery.Result{Failure: delivery.FailProxy},
	}
	f := b.d.Finish(j, o, now)
	if f.Next != nil || f.Change != nil || f.Wait != nil || f.Assess || f.Decision.RetryIn != 15*time.Second || j.Probes != 1 || l.health.counters != health.counters {
		t.Errorf("%+v, %d attempts that the schedule does not count", f, j.Probes)
	}
	if wait := l.wait(now.Add(time.Second)); wait != 14*time.Second {
		t.Errorf("the lane waits %s", wait)
	}
	b.d.Kick()
	if len(b.started) != before {
		t.Error("the lane started something while it waits")
	}
	old := b.started[1]
	old.Probes = 1000
	if f := b.d.Finish(old, o, now); f.Decision.RetryIn != 20*15*time.Second {
		t.Errorf("a delivery that has waited for long is tried again in %s", f.Decision.RetryIn)
	}
}
