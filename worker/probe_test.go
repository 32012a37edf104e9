package worker

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// openBreaker opens an endpoint's breaker, with the next probe due after a duration, as its lane's owner reads it.
func (h *house) openBreaker(tenant, ep id.UUID, due time.Duration) {
	h.t.Helper()
	h.exec(`INSERT INTO endpoint_health AS h (endpoint_id, tenant_id, consecutive_failures, unhealthy_since, first_failure_at, last_failure_at,
			breaker_state, opened_at, next_probe_at)
		VALUES ($1, $2, 12, now() - interval '2 hours', now() - interval '2 hours', now() - interval '1 minute', 1, now() - interval '2 hours',
			now() + $3::bigint * interval '1 microsecond')
		ON CONFLICT (endpoint_id) DO UPDATE SET breaker_state = 1, opened_at = excluded.opened_at, next_probe_at = excluded.next_probe_at,
			consecutive_failures = greatest(h.consecutive_failures, 12), epoch = h.epoch + 1`, ep, tenant, due.Microseconds())
	h.exec("UPDATE lanes SET rev = rev + 1 WHERE endpoint_id = $1", ep)
}

// resting waits until a worker has the lane and sends nothing of it.
func (h *house) resting(w *Worker, ep id.UUID) {
	h.t.Helper()
	eventually(h.t, 5*time.Second, "the lane rests", func() bool {
		l, _ := w.dispatch.View(ep)
		return l.AwaitsProbe && l.InFlight == 0 && l.Held == 0
	})
}

func TestANewOwnerReadsItsBreakerBackAndAProbeLetsTheBacklogThrough(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, nil)
	h.openBreaker(tenant, ep, time.Hour)
	h.emitN(tenant, 40)
	w, _ := h.worker(true)
	h.resting(w, ep)
	if n := len(r.seen()); n != 0 {
		t.Errorf("%d requests although no probe was due", n)
	}
	h.openBreaker(tenant, ep, time.Second) // and the timer fires
	h.settled(15*time.Second, delivery.Delivered, 40)
	if n := h.count(`SELECT count(*) FROM endpoint_health WHERE endpoint_id = $1 AND breaker_state = 0 AND opened_at IS NULL
		AND consecutive_failures = 0 AND closed_at > now() - interval '1 minute'`, ep); n != 1 {
		t.Error("the breaker is not on record as closed")
	}
	eventually(t, 10*time.Second, "the owner is told that it is well after two hours", func() bool {
		return h.notices(ep, notice.EndpointRecovered) == 1
	})
	h.balanced()
}

func TestProbesUseUpNoScheduleAndEveryRequestCounts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, well := newFailing(t, 500)
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.RetryPolicy = "quick" })
	h.openBreaker(tenant, ep, 0)
	dlv := h.deliveryOf(h.emitN(tenant, 1)[0])
	h.exec("UPDATE queue SET attempts = 2 WHERE delivery_id = $1", dlv) // its last attempt
	w, _ := h.worker(true)
	eventually(t, 10*time.Second, "a probe failed", func() bool {
		return h.count("SELECT count(*) FROM queue WHERE state = 1 AND attempts = 3 AND probes = 1 AND due_at > now() + interval '1 minute'") == 1
	})
	if status, _, attempts := h.state(dlv); status != delivery.Retrying || attempts != 3 {
		t.Errorf("%s after %d attempts, want retrying after 3", status, attempts)
	}
	if n := h.count("SELECT count(*) FROM endpoint_health WHERE probes = 1 AND consecutive_failures = 13 AND exhausted = 0 AND last_status = 500 AND next_probe_at > now() + interval '1 minute'"); n != 1 {
		t.Error("the failed probe is not on record")
	}
	well.Store(true)
	h.openBreaker(tenant, ep, 0)
	h.followed(w, ep)
	h.as(tenant, func(q *sql.Queries) error {
		_, _, err := deliveries.RetryNow(t.Context(), q, tenant, dlv)
		return err
	})
	h.settled(10*time.Second, delivery.Delivered, 1)
	seen := r.seen()
	if len(seen) != 2 || seen[0].attempt != "3" || seen[1].attempt != "4" {
		t.Errorf("%d requests, want the 3rd and the 4th attempt", len(seen))
	}
	if n := h.count("SELECT count(*) FROM attempts WHERE number IN (3, 4) AND NOT late"); n != 2 {
		t.Errorf("%d attempts are on record under their numbers, want 2", n)
	}
	h.balanced()
}

func TestRetryNowIsAProbeWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var well atomic.Bool
	var pressing sync.RWMutex // no response before both people have pressed
	r := newReceiver(t, func(arrival) int {
		pressing.RLock()
		defer pressing.RUnlock()
		if well.Load() {
			return 200
		}
		return 503
	})
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, nil)
	h.openBreaker(tenant, ep, time.Hour)
	events := h.emitN(tenant, 30)
	w, _ := h.worker(true)
	h.resting(w, ep)
	press := func(n int) (changes int) {
		pressing.Lock()
		defer pressing.Unlock()
		for range 2 {
			h.as(tenant, func(q *sql.Queries) error {
				_, changed, err := deliveries.RetryNow(t.Context(), q, tenant, h.deliveryOf(events[n]))
				if changed {
					changes++
				}
				return err
			})
		}
		return changes
	}
	if n := press(17); n != 1 {
		t.Errorf("two people who press at once change %d times", n)
	}
	eventually(t, 10*time.Second, "the probe has failed", func() bool { return h.count("SELECT count(*) FROM queue WHERE state = 1") == 1 })
	if got := ns(r.seen()); len(got) != 1 || got[0] != 17 {
		t.Fatalf("events %v were sent, want the one that somebody wanted", got)
	}
	h.resting(w, ep)
	well.Store(true)
	press(23)
	h.settled(15*time.Second, delivery.Delivered, 30) // what waited for its retry too
	if got := ns(r.seen()); got[1] != 23 {
		t.Errorf("then event %d was sent, want 23", got[1])
	}
	h.balanced()
}

func TestTwoWorkersSendOneProbeAtATime(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var well atomic.Bool
	r := newReceiver(t, func(arrival) int {
		time.Sleep(20 * time.Millisecond)
		if well.Load() {
			return 200
		}
		return 500
	})
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.MaxInFlight = 20 })
	h.openBreaker(tenant, ep, 0)
	var items []emit.Item
	for i := range 60 {
		items = append(items, item("order.completed", "", i))
	}
	h.emit(tenant, items...)
	first, stopFirst := h.worker(true)
	second, _ := h.worker(false)
	probes := func() int { return h.count("SELECT coalesce(sum(probes), 0) FROM queue") }
	for round := 1; round <= 6; round++ {
		eventually(t, 10*time.Second, "another probe has failed", func() bool { return probes() >= round })
		switch round {
		case 3:
			// The lane changes hands between two probes.
			first.dispatch.DrainBusy(1) // its only lane
		case 5:
			stopFirst()
		}
		h.openBreaker(tenant, ep, 0)
		second.dispatch.Wake([]id.UUID{ep})
	}
	r.mu.Lock()
	if r.most != 1 {
		t.Errorf("%d probes at once", r.most)
	}
	r.mu.Unlock()
	if n := h.count("SELECT count(*) FROM endpoint_health WHERE breaker_state = $1", int16(health.Open)); n != 1 {
		t.Error("the breaker is not open")
	}
	well.Store(true)
	h.exec("UPDATE queue SET due_at = now() WHERE state = 1")
	h.openBreaker(tenant, ep, 0)
	h.settled(20*time.Second, delivery.Delivered, 60)
	h.balanced()
}

func TestADeliveryThatWasAProbeGoesByItsOwnScheduleOnceTheBreakerCloses(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, well := newFailing(t, 503)
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.RetryPolicy = "quick" })
	h.openBreaker(tenant, ep, 0)
	former := h.deliveryOf(h.emitN(tenant, 1)[0])
	w, _ := h.worker(true)
	eventually(t, 10*time.Second, "the probe failed, and its delivery waits for the next", func() bool {
		return h.count("SELECT count(*) FROM queue WHERE delivery_id = $1 AND state = 1 AND probes = 1 AND due_at > now() + interval '30 seconds'", former) == 1
	})
	h.resting(w, ep)
	well.Store(true)
	other := h.deliveryOf(h.emitN(tenant, 1)[0])
	h.as(tenant, func(q *sql.Queries) error { return deliveries.HastenTest(t.Context(), q, tenant, other) })
	h.settled(15*time.Second, delivery.Delivered, 2) // the earlier probe within seconds, by its schedule
	h.balanced()
}

// What waits behind a breaker is sent when it closes, also what has a retry in an hour: oldest first, in the order of
// each key, and also if the worker that closed it is killed after the first chunk. What fails after the closing keeps
// its time.
func TestEverythingBehindABreakerIsSentWhenItCloses(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const many, rejected = 2500, 700
	r := newReceiver(t, func(a arrival) int {
		if a.data.N == rejected {
			return 500
		}
		return 200
	})
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		s.RetryPolicy, s.Ordering, s.MaxInFlight = "custom", "key", 4
		s.RetryDelays = []int{3600, 3600}
	})
	h.openBreaker(tenant, ep, time.Hour)
	items := make([]emit.Item, many)
	for i := range items {
		items[i] = item("order.completed", fmt.Sprint("key-", i/2), i)
	}
	for chunk := range slices.Chunk(items, 100) {
		h.emit(tenant, chunk...)
	}
	// The first of each key failed before the breaker opened.
	h.exec(`UPDATE queue q SET state = 1, due_at = now() + interval '1 hour', attempts = 1, tried_at = now()
		WHERE NOT EXISTS (SELECT FROM queue p WHERE p.order_key = q.order_key AND p.seq < q.seq)`)
	if n := h.count("SELECT count(*) FROM queue WHERE state = 1"); n != many/2 {
		t.Fatalf("%d deliveries wait for a retry, want %d", n, many/2)
	}
	h.exec("UPDATE endpoint_health SET breaker_state = 0, opened_at = NULL, next_probe_at = NULL WHERE endpoint_id = $1", ep)
	h.exec("UPDATE lanes SET release_before = now(), release_after = 0 WHERE endpoint_id = $1", ep)
	if _, more, err := queue.ReleaseBacklog(t.Context(), h.db, ep); err != nil || !more {
		t.Fatalf("more %v, %v", more, err)
	}
	if n := h.count("SELECT count(*) FROM queue WHERE state = 1"); n != many/2-1000 {
		t.Errorf("after a chunk %d wait for a retry, want %d", n, many/2-1000)
	}
	h.worker(true) // the one that closed the breaker is gone
	h.settled(60*time.Second, delivery.Delivered, many-2)
	last := map[int]int{}
	for i, a := range r.seen() {
		if before, seen := last[a.data.N/2]; seen && before > a.data.N {
			t.Errorf("request %d: event %d was sent after event %d of its key", i, a.data.N, before)
		}
		last[a.data.N/2] = a.data.N
	}
	if n := h.count(`SELECT count(*) FROM queue WHERE state = 1 AND due_at > now() + interval '30 minutes' AND attempts = 2`); n != 1 {
		t.Error("the delivery that failed after the breaker had closed does not keep its hour")
	}
	if n := h.count("SELECT count(*) FROM lanes WHERE release_before IS NOT NULL"); n != 0 {
		t.Error("the release of the backlog does not end")
	}
	h.balanced()
}

func TestAnEndpointThatRecoversGetsWhatHadFailedBefore(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, well := newFailing(t, 503)
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		s.RetryPolicy, s.RetryDelays, s.MaxInFlight = "custom", []int{3600}, 2
	})
	w, _ := h.worker(true)
	h.emitN(tenant, 14)
	eventually(t, 20*time.Second, "the breaker is open", func() bool {
		return h.count("SELECT count(*) FROM endpoint_health WHERE breaker_state = 1") == 1
	})
	h.resting(w, ep)
	h.emitN(tenant, 6)
	well.Store(true)
	test := h.deliveryOf(h.emitN(tenant, 1)[0])
	h.as(tenant, func(q *sql.Queries) error { return deliveries.HastenTest(t.Context(), q, tenant, test) })
	h.settled(20*time.Second, delivery.Delivered, 21)
	h.balanced()
}

// A moment of 404, as gateways say it during a deployment, disables nothing and ends no delivery: the first refusal is
// retried, and the breaker holds the rest. Where a tenant wants the count alone to decide, it does.
func TestAMomentOfRefusalsDisablesNoEndpoint(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, well := newFailing(t, 404)
	tenant, strict := h.tenant(), h.tenant()
	h.settings(strict, `{"health":{"auth_minutes":0}}`)
	one := func(s *endpoint.Settings) { s.MaxInFlight = 1 }
	ep, off := h.endpoint(tenant, r.URL, one), h.endpoint(strict, r.URL, one)
	w, _ := h.worker(true)
	h.emitN(tenant, 40)
	h.emitN(strict, 40)
	eventually(t, 20*time.Second, "the strict tenant's endpoint is disabled", func() bool {
		return h.count("SELECT count(*) FROM endpoints WHERE id = $1 AND status = 'disabled' AND status_reason = 'auth'", off) == 1
	})
	h.resting(w, ep)
	h.openBreaker(tenant, ep, 0) // the first probe
	eventually(t, 10*time.Second, "the probe was refused too, and its delivery waits", func() bool {
		return h.count("SELECT count(*) FROM queue WHERE endpoint_id = $1 AND probes = 1", ep) >= 1
	})
	h.resting(w, ep)
	if c := h.conditionOf(tenant, ep); c.State != condition.Failing || c.Cause != "url" {
		t.Errorf("the endpoint is %+v", c)
	}
	failed := "SELECT count(*) FROM deliveries WHERE endpoint_id = $1 AND status = 3"
	if n := h.count(failed, ep); n != 0 {
		t.Errorf("%d deliveries failed permanently", n)
	}
	if n := h.count(failed, off); n != 10 {
		t.Errorf("%d deliveries of the strict tenant failed permanently, want 10", n)
	}
	well.Store(true)
	test := h.deliveryOf(h.emitN(tenant, 1)[0])
	h.as(tenant, func(q *sql.Queries) error { return deliveries.HastenTest(t.Context(), q, tenant, test) })
	h.settled(20*time.Second, delivery.Delivered, 41)
	h.balanced()
}

func TestWithoutABreakerEachDeliveryEndsByItsSchedule(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, func(arrival) int { return 503 })
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		s.RetryPolicy, s.RetryDelays, s.CircuitBreaker = endpoint.Custom, []int{1, 1}, false
	})
	h.emitN(tenant, 12)
	h.worker(true)
	h.settled(20*time.Second, delivery.Failed, 12)
	if n := h.count("SELECT count(*) FROM deliveries WHERE attempts = 3"); n != 12 {
		t.Errorf("%d of 12 deliveries had 3 attempts", n)
	}
	eventually(t, 10*time.Second, "the failures are on record", func() bool {
		return h.count("SELECT count(*) FROM endpoint_health WHERE endpoint_id = $1 AND consecutive_failures = 36 AND exhausted = 12", ep) == 1
	})
	if n := h.count("SELECT count(*) FROM endpoint_health WHERE breaker_state <> 0"); n != 0 {
		t.Error("the breaker opened")
	}
	h.balanced()
}

func TestTurningTheBreakerOffReleasesItsDeliveries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, func(arrival) int { return 503 })
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		s.RetryPolicy, s.RetryDelays = endpoint.Custom, []int{1}
	})
	h.openBreaker(tenant, ep, time.Hour)
	h.emitN(tenant, 3)
	w, _ := h.worker(true)
	h.resting(w, ep)
	h.as(tenant, func(q *sql.Queries) error {
		_, after, err := endpoints.Change(t.Context(), q, h.ring, tenant, ep, func(s endpoint.Settings) (endpoint.Settings, error) {
			s.CircuitBreaker = false
			return s, nil
		})
		if state := after.Condition.State; err == nil && state != condition.Active {
			t.Errorf("the endpoint is %s at once, want active", state)
		}
		return err
	})
	h.settled(20*time.Second, delivery.Failed, 3)
	if n := h.count("SELECT count(*) FROM endpoint_health WHERE consecutive_failures >= 15 AND breaker_state = 0 AND opened_at IS NULL"); n != 1 {
		t.Error("the record lost its count or shows an open breaker")
	}
}
