package worker

import (
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/worker/lanes"
)

func TestAWorkerThatWasDeclaredDeadOverwritesNothingAndContinuesUnderANewID(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	g := newGate(t)
	defer g.release()
	var requests atomic.Int32
	r := newReceiver(t, func(arrival) int {
		if requests.Add(1) == 1 {
			g.pass()
			return 500 // late, without effect
		}
		return 200
	})
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, nil)
	w, _ := h.worker(true)
	dlv := h.deliveryOf(h.emitN(tenant, 1)[0])
	g.waitEntered(t)
	old := w.id()
	h.declareDead(w)
	if n := h.count("SELECT count(*) FROM lanes WHERE endpoint_id = $1 AND owner IS NULL AND tokens = 0", ep); n != 1 {
		t.Error("its lane was not freed with an empty bucket")
	}
	// It learns this from its heartbeat, registers again, and serves the lane again, while the first request is still
	// in flight.
	eventually(t, 15*time.Second, "the delivery is made by the worker's next life", func() bool {
		status, _, _ := h.state(dlv)
		return status == delivery.Delivered
	})
	if now := w.id(); now == old || now.IsZero() {
		t.Errorf("the worker's name is still %v", now)
	}
	if n := h.count("SELECT count(*) FROM workers WHERE NOT dead"); n != 1 {
		t.Errorf("%d live workers, want 1", n)
	}
	g.release()
	eventually(t, 10*time.Second, "the late attempt is on record", func() bool {
		return h.count("SELECT count(*) FROM attempts WHERE delivery_id = $1 AND late AND status = 500", dlv) == 1
	})
	if status, _, attempts := h.state(dlv); status != delivery.Delivered || attempts != 1 {
		t.Errorf("the late result made it %s after %d attempts", status, attempts)
	}
	if n := h.count("SELECT count(*) FROM attempts"); n != 2 {
		t.Errorf("%d attempts on record, want 2", n)
	}
	h.emitN(tenant, 20)
	h.settled(20*time.Second, delivery.Delivered, 21)
	// The database has a result a moment before the dispatcher does.
	eventually(t, 10*time.Second, "nothing is counted that is not there", func() bool { return w.dispatch.Totals() == lanes.Totals{} })
	h.balanced()
}

func TestTheRecorderOfADeadWorkerIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "https://example.com/", nil)
	dlv := h.deliveryOf(h.emitN(tenant, 1)[0])
	me := db.NewID()
	h.exec("INSERT INTO workers (id, name) VALUES ($1, 'me')", me)
	started := db.NewID()
	outcome := &queue.Outcome{
		TenantID:   tenant,
		DeliveryID: dlv,
		EndpointID: ep,
		EventType:  "order.completed",
		Attempts:   1,
		Decision:   delivery.Decision{Status: delivery.Delivered},
		Result:     delivery.Result{Status: 200},
		Attempt:    &queue.Attempt{ID: started, StartedAt: started.Time(), URL: "https://example.com/", Format: "standard"},
	}
	record := func(worker id.UUID) error {
		_, err := queue.RecordOutcomes(t.Context(), h.db, queue.OutcomeBatch{
			Worker:   worker,
			Outcomes: []*queue.Outcome{outcome},
		})
		return err
	}
	if err := record(db.NewID()); err != db.ErrWorkerDead { //nolint:errorlint // exactly this one
		t.Errorf("a worker that nobody knows: %v", err)
	}
	if _, done, err := queue.DeclareDead(t.Context(), h.db, me, 1); err != nil || done {
		t.Errorf("declared dead although it has beaten: %v, %v", done, err)
	}
	if _, done, err := queue.DeclareDead(t.Context(), h.db, me, 0); err != nil || !done {
		t.Fatalf("not declared dead: %v, %v", done, err)
	}
	if err := record(me); err != db.ErrWorkerDead { //nolint:errorlint // exactly this one
		t.Errorf("a dead worker recorded: %v", err)
	}
	if status, _, attempts := h.state(dlv); status != delivery.Pending || attempts != 0 || h.waiting(ep) != 1 {
		t.Errorf("the delivery is %s after %d attempts", status, attempts)
	}
	if n := h.count("SELECT count(*) FROM attempts"); n != 0 {
		t.Errorf("%d attempts on record", n)
	}
	h.balanced()
}

func TestAResultThatCameTooLateChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "https://example.com/", nil)
	dlv := h.deliveryOf(h.emitN(tenant, 1)[0])
	me := db.NewID()
	h.exec("INSERT INTO workers (id, name) VALUES ($1, 'me')", me)
	h.exec("UPDATE queue SET gen = gen + 1 WHERE delivery_id = $1", dlv) // somebody changed the row
	for _, decision := range []delivery.Decision{
		{Status: delivery.Delivered},
		{Status: delivery.Failed, Reason: delivery.Exhausted},
		{Status: delivery.Retrying, RetryIn: time.Minute},
	} {
		started := db.NewID()
		matched, err := queue.RecordOutcomes(t.Context(), h.db, queue.OutcomeBatch{
			Worker: me,
			Outcomes: []*queue.Outcome{{
				TenantID:   tenant,
				DeliveryID: dlv,
				EndpointID: ep,
				EventType:  "order.completed",
				Gen:        0,
				Attempts:   1,
				Decision:   decision,
				Attempt:    &queue.Attempt{ID: started, StartedAt: started.Time(), URL: "https://example.com/", Format: "standard"},
			}},
		})
		if err != nil || matched[dlv] {
			t.Errorf("%s: %v, %v", decision.Status, matched, err)
		}
	}
	if status, _, attempts := h.state(dlv); status != delivery.Pending || attempts != 0 || h.waiting(ep) != 1 {
		t.Errorf("the delivery is %s after %d attempts", status, attempts)
	}
	if n := h.count("SELECT count(*) FROM attempts WHERE late"); n != 3 {
		t.Errorf("%d late attempts on record, want 3", n)
	}
	if n := h.count("SELECT count(*) FROM dead_letters"); n != 0 {
		t.Error("a dead letter all the same")
	}
	h.balanced()
}

// A COMMIT whose response was lost is tried again: what was stored does not change.
func TestACommitWithUnknownResultIsNotWrittenTwice(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "https://example.com/", nil)
	ids := h.emitN(tenant, 3)
	me := db.NewID()
	h.exec("INSERT INTO workers (id, name) VALUES ($1, 'me')", me)
	rec := queue.OutcomeBatch{Worker: me}
	decisions := []delivery.Decision{
		{Status: delivery.Delivered},
		{Status: delivery.Failed, Reason: delivery.Rejected},
		{Status: delivery.Retrying, RetryIn: time.Hour},
	}
	for i, d := range decisions {
		started := db.NewID()
		rec.Outcomes = append(rec.Outcomes, &queue.Outcome{
			TenantID:   tenant,
			DeliveryID: h.deliveryOf(ids[i]),
			EndpointID: ep,
			EventType:  "order.completed",
			Attempts:   1,
			Decision:   d,
			Attempt:    &queue.Attempt{ID: started, StartedAt: started.Time(), URL: "https://example.com/", Format: "standard"},
		})
	}
	for _, again := range []bool{false, true, true} {
		rec.Again = again
		matched, err := queue.RecordOutcomes(t.Context(), h.db, rec)
		if err != nil || len(matched) != 3 {
			t.Fatalf("again %v: %v, %v", again, matched, err)
		}
	}
	if n := h.count("SELECT count(*) FROM attempts WHERE NOT late"); n != 3 {
		t.Errorf("%d attempts on record, want 3", n)
	}
	h.balanced()
}

func TestAWorkerIsSilentWhenSomebodyListenedForSoLong(t *testing.T) {
	t.Parallel()
	now := time.Now()
	me, other := db.NewID(), db.NewID()
	m := membership{current: me}
	listen := func(beat int64, after time.Duration) int {
		now = now.Add(after)
		return len(m.observe([]sql.LiveWorkersRow{{ID: me, Beat: 7}, {ID: other, Beat: beat}}, now))
	}
	listen(1, 0)
	for waited := beatEvery; waited < deadAfter; waited += beatEvery {
		if listen(1, beatEvery) != 0 {
			t.Fatalf("silent after %v", waited)
		}
	}
	if listen(1, beatEvery) != 1 {
		t.Errorf("not silent after %v", deadAfter)
	}
	// A heartbeat restarts the count; a count that goes back is another heartbeat, too.
	for _, beat := range []int64{2, 1} {
		if listen(beat, beatEvery) != 0 {
			t.Error("silent although it beat")
		}
	}
	// A worker that did not read for a while has seen no heartbeat, which is not silence.
	for range 4 {
		listen(1, beatEvery)
	}
	if listen(1, deadAfter) != 0 {
		t.Error("silent while nobody listened")
	}
	if m.isAlone() {
		t.Error("alone beside another")
	}
	if m.observe([]sql.LiveWorkersRow{{ID: me}}, now); !m.isAlone() {
		t.Error("not alone without others")
	}
}

func TestNothingIsSentAfterAnOldHeartbeat(t *testing.T) {
	t.Parallel()
	var m membership
	if m.mayLive() {
		t.Error("a worker without a name may send")
	}
	m.current, m.lastBeat = db.NewID(), time.Now()
	if !m.mayLive() {
		t.Error("a worker that has just beaten may not send")
	}
	m.lastBeat = time.Now().Add(-sendWithin)
	if m.mayLive() {
		t.Error("a worker may send on a beat after which others may call it dead")
	}
	if sendWithin >= deadAfter {
		t.Error("sends go on until the worker may be dead")
	}
}
