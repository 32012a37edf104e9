package lanes

import (
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/delivery"
	"posthorn/domain/health"
)

var (
	failed = Outcome{
		Decision: delivery.Decision{
			Status:  delivery.Retrying,
			Class:   delivery.Unhealthy,
			RetryIn: time.Hour,
		},
		Result: delivery.Result{Status: 500},
	}
	success = Outcome{
		Decision: delivery.Decision{Status: delivery.Delivered, Class: delivery.Success},
		Result:   delivery.Result{Status: 200},
	}
)

// open is a lane whose breaker has just opened, and what was saved last.
func (b *bench) open(t *testing.T, at time.Time) (*Lane, *health.Change) {
	t.Helper()
	l := b.lane(db.NewID(), 5, 100)
	b.d.Kick()
	var change *health.Change
	for done := 0; done < len(b.started); done++ {
		then := b.d.Finish(b.started[done], failed, at)
		next := then.Next
		change = then.Change
		b.d.Settle([]*Job{b.started[done]})
		if next != nil {
			b.started = append(b.started, next)
		}
		if change == nil || change.Counters.ConsecutiveFailures != done+1 || change.N != int64(done+1) {
			t.Fatalf("failure %d is not to be saved: %+v", done+1, change)
		}
	}
	return l, change
}

func TestAnOpenBreakerSendsAndKeepsNothing(t *testing.T) {
	t.Parallel()
	b := newBench()
	now := time.Now()
	l, saved := b.open(t, now)
	// Five more were in flight when the tenth failed.
	if n := len(b.started); n != 14 {
		t.Errorf("%d requests to an endpoint that does nothing but fail, want 10 and the 4 that were under way", n)
	}
	if saved.Breaker.State != health.Open || !about(saved.Breaker.NextProbeAt.Sub(now), health.FirstProbeWait) {
		t.Errorf("saved: %+v", saved.Breaker)
	}
	if len(l.ready) != 0 || len(l.window.rows) != 0 || b.d.rows != 0 || l.wantsRead() {
		t.Errorf("%d rows are read ahead and %d counted for an endpoint that gets nothing now", len(l.ready), b.d.rows)
	}
	b.refill(l, 5) // any event that brings rows
	b.d.Kick()
	if n := len(b.started); n != 14 {
		t.Errorf("%d requests before a probe was due", n-14)
	}
}

// probing is a lane whose probe is due, with rows ready.
func (b *bench) probing(t *testing.T) *Lane {
	t.Helper()
	l, _ := b.open(t, time.Now().Add(-time.Hour))
	b.d.mu.Lock()
	b.d.openBreaker(l, time.Now())
	due := l.wantsRead() && l.readAhead() == 1
	b.d.mu.Unlock()
	if !due {
		t.Fatal("the lane is not read for its probe")
	}
	b.started = nil
	b.refill(l, 3)
	b.d.Kick()
	if len(b.started) != 1 || !b.started[0].IsProbe || l.health.breaker.State != health.HalfOpen || l.wantsRead() {
		t.Fatalf("%d requests, want one probe; the breaker is %s", len(b.started), l.health.breaker.State)
	}
	return l
}

func TestAProbeThatFailsGoesBackAndWaitsTwiceAsLong(t *testing.T) {
	t.Parallel()
	b := newBench()
	l := b.probing(t)
	now := time.Now()
	then := b.d.Finish(b.started[0], failed, now)
	next, decision, change := then.Next, then.Decision, then.Change
	if next != nil || decision.Status != delivery.Retrying || !about(decision.RetryIn-probeBackoff, 2*time.Minute) ||
		b.started[0].Probes != 1 {
		t.Errorf("then %v, %+v, %d probes", next, decision, b.started[0].Probes)
	}
	if change == nil || change.Breaker.State != health.Open || change.Breaker.Probes != 1 ||
		!about(change.Breaker.NextProbeAt.Sub(now), 2*time.Minute) {
		t.Errorf("saved: %+v", change)
	}
	if !l.health.awaitsProbe || len(l.ready) != 0 {
		t.Error("the lane does not rest")
	}
	// The probe of a delivery at the end of its schedule counts nothing either.
	if change.Counters.Exhausted != 0 {
		t.Error("a probe exhausted a delivery")
	}
}

func TestAProbeThatSucceedsOpensTheLane(t *testing.T) {
	t.Parallel()
	b := newBench()
	l := b.probing(t)
	then := b.d.Finish(b.started[0], success, time.Now())
	next, decision, change := then.Next, then.Decision, then.Change
	if next == nil || decision.Status != delivery.Delivered || change == nil || change.Breaker != (health.Breaker{}) ||
		change.OutageFrom.IsZero() {
		t.Errorf("%+v, %+v", decision, change)
	}
	if !l.wantsRead() || l.readAhead() != 10 {
		t.Fatal("the backlog is not read")
	}
	b.refill(l, 10)
	b.d.Kick()
	if l.inFlight != 5 {
		t.Errorf("%d requests under way after the probe, want the endpoint's 5", l.inFlight)
	}
}

func TestAProbeThatThisWorkerBreaksOffIsGivenBack(t *testing.T) {
	t.Parallel()
	b := newBench()
	l := b.probing(t)
	broken := failed
	broken.Result, broken.Aborted = delivery.Result{Failure: delivery.FailReset}, true
	before := l.health.counters
	then := b.d.Finish(b.started[0], broken, time.Now())
	decision, change := then.Decision, then.Change
	if decision.Status != delivery.Retrying || b.started[0].Probes != 1 || change != nil ||
		l.health.counters != before {
		t.Errorf("%+v, %+v, %+v", decision, change, l.health.counters)
	}
	if l.health.breaker.Probes != 0 || !l.health.breaker.MayProbe(time.Now()) || !l.wantsRead() {
		t.Errorf("the next probe waits: %+v", l.health.breaker)
	}
}

func TestARequestDuringAProbeGetsTheNextProbe(t *testing.T) {
	t.Parallel()
	b := newBench()
	l := b.probing(t)
	b.d.Configure(Lease{EndpointID: l.id, ProbeRequest: 77, Rev: 2}, &Settings{MaxInFlight: 5}, time.Now())
	if l.wantsRead() {
		t.Error("a second probe is read while one is under way")
	}
	b.d.Finish(b.started[0], failed, time.Now())
	if !l.wantsRead() || l.health.wanted != 77 {
		t.Fatal("what was asked for waits for the next probe")
	}
	read := b.d.Plan()
	if len(read.Endpoints) != 1 || read.Floors[0] != 76 || read.Limits[0] != 1 {
		t.Fatalf("read: %+v", read)
	}
	b.d.Take(read, Found{
		Rows:    []Row{{EndpointID: l.id, Seq: 77, EventID: db.NewID()}},
		Settled: 500,
		Epoch:   db.NewID(),
	})
	if l.window.floor >= 76 || !l.window.wanted {
		t.Errorf("the rows before it are passed over: floor %d", l.window.floor)
	}
}

// about reports whether a wait is as expected, less the fifth by which probes are spread at most.
func about(wait, want time.Duration) bool { return wait <= want && wait >= want*4/5 }
