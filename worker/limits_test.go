package worker

import (
	"slices"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/emit"
	"posthorn/db/queue"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// emitN emits events 0 to n-1 without a key, in one batch.
func (h *house) emitN(tenant id.UUID, n int) []id.UUID {
	h.t.Helper()
	items := make([]emit.Item, n)
	for i := range items {
		items[i] = item("order.completed", "", i)
	}
	return h.emit(tenant, items...)
}

func TestNoMoreRequestsAreUnderWayThanTheEndpointAllows(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, func(arrival) int { time.Sleep(10 * time.Millisecond); return 200 })
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.MaxInFlight = 3 })
	w, _ := h.worker(true)
	h.emitN(tenant, 100)
	h.settled(20*time.Second, delivery.Delivered, 100)
	r.mu.Lock()
	if r.most != 3 {
		t.Errorf("%d requests at once, want 3 and no more", r.most)
	}
	r.most = 0
	r.mu.Unlock()
	h.change(tenant, ep, func(s *endpoint.Settings) { s.MaxInFlight = 1 })
	h.followed(w, ep)
	h.emitN(tenant, 30)
	h.settled(20*time.Second, delivery.Delivered, 130)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most != 1 {
		t.Errorf("%d requests at once after the limit went down to 1", r.most)
	}
}

// exceeds reports by how much arrivals exceed a token bucket of rate and burst: in any time range at most the burst
// plus the refill is allowed. Requests can bunch up on their way, so slack is what a busy machine can add.
func exceeds(seen []arrival, rate, burst float64, slack time.Duration) (excess float64) {
	for i := range seen {
		for j := i; j < len(seen); j++ {
			span := (seen[j].at.Sub(seen[i].at) + slack).Seconds()
			excess = max(excess, float64(j-i+1)-(burst+rate*span))
		}
	}
	return excess
}

func TestTheRateLimitIsATokenBucket(t *testing.T) {
	t.Parallel()
	const rate, burst, events = 50, 10, 120
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		limit, most := rate, burst
		s.RateLimit, s.Burst, s.MaxInFlight = &limit, &most, 20
	})
	h.worker(true)
	h.emitN(tenant, events)
	h.settled(30*time.Second, delivery.Delivered, events)
	seen := r.seen()
	if e := exceeds(seen, rate, burst, 150*time.Millisecond); e > 0 {
		t.Errorf("%.1f requests more than the bucket holds", e)
	}
	took := seen[len(seen)-1].at.Sub(seen[0].at)
	ideal := time.Duration(float64(events-burst) / rate * float64(time.Second))
	if took < ideal*95/100 || took > ideal*150/100 {
		t.Errorf("%d events took %v, want about %v", events, took, ideal)
	}
}

func TestTheBucketIsPassedOnAndEmptyAfterATakeover(t *testing.T) {
	t.Parallel()
	const rate, burst = 10, 20
	for _, tt := range []struct {
		name string
		dead bool
	}{{"handed on", false}, {"taken over", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			r := newReceiver(t, nil)
			tenant := h.tenant()
			ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
				limit, most := rate, burst
				s.RateLimit, s.Burst, s.MaxInFlight = &limit, &most, 20
			})
			// The lane's owner has used 15 of 20 tokens, and then hands it on, or is declared dead.
			before := db.NewID()
			h.exec("INSERT INTO workers (id, name) VALUES ($1, 'before')", before)
			h.exec("UPDATE lanes SET owner = $2 WHERE endpoint_id = $1", ep, before)
			want := 5.0
			if tt.dead {
				want = 0
				if freed, done, err := queue.DeclareDead(t.Context(), h.db, before, 0); err != nil || !done ||
					len(freed) != 1 {
					t.Fatal(freed, done, err)
				}
			} else {
				h.exec("UPDATE lanes SET owner = NULL, tokens = 5, released_at = now() WHERE endpoint_id = $1", ep)
			}
			released := time.Now()
			h.emitN(tenant, 40)
			h.worker(true)
			h.settled(30*time.Second, delivery.Delivered, 40)
			seen := r.seen()
			have := want + rate*(seen[0].at.Sub(released)+150*time.Millisecond).Seconds()
			if e := exceeds(seen, rate, max(have, 1), 150*time.Millisecond); e > 0 {
				t.Errorf("%.1f requests more than the %.1f tokens that were there", e, have)
			}
		})
	}
}

func TestAGracefulStopHandsOnWhatIsLeftInTheBucket(t *testing.T) {
	t.Parallel()
	const rate, burst = 1, 10
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		limit, most := rate, burst
		s.RateLimit, s.Burst = &limit, &most
	})
	_, stop := h.worker(true)
	began := time.Now()
	h.emitN(tenant, 7)
	h.settled(20*time.Second, delivery.Delivered, 7)
	stop()
	var tokens float64
	h.query("SELECT tokens FROM lanes WHERE endpoint_id = $1 AND owner IS NULL", []any{&tokens}, ep)
	if most := 3 + rate*time.Since(began).Seconds(); tokens < 3 || tokens > most {
		t.Errorf("%.2f tokens were saved, want 3 to %.2f", tokens, most)
	}
	if n := h.count("SELECT count(*) FROM workers"); n != 0 {
		t.Errorf("%d workers are on the list after the stop", n)
	}
}

// TestOnlyTheRequestInFlightIsSaidToBe: of three deliveries to an endpoint with one request slot, the one whose request
// has no response yet is in flight, until its outcome is recorded; the others wait for the slot.
func TestOnlyTheRequestInFlightIsSaidToBe(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	release := make(chan struct{})
	r := newReceiver(t, func(arrival) int { <-release; return 200 })
	defer close(release)
	tenant := h.tenant()
	h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.MaxInFlight = 1 })
	h.worker(true)
	began := time.Now()
	events := h.emitN(tenant, 3)
	waits := func() (reasons []condition.Reason, since time.Time) {
		for _, event := range events {
			w := h.waitsFor(tenant, h.deliveryOf(event))
			reasons = append(reasons, w.Reason)
			if w.Reason == condition.InFlight {
				since = w.Since
			}
		}
		return reasons, since
	}
	want := []condition.Reason{condition.InFlight, condition.Concurrency, condition.Concurrency}
	eventually(t, 20*time.Second, "one is in flight and two wait for its slot", func() bool {
		reasons, since := waits()
		return slices.Equal(reasons, want) && since.After(began.Add(-time.Second)) && since.Before(time.Now())
	})
}
