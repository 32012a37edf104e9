package worker

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// keyOf names the key of the nth event among this many keys.
func keyOf(n, keys int) string { return fmt.Sprintf("k%02d", n%keys) }

// orderly watches requests and records where two of a key overlap or an older event follows a newer one.
type orderly struct {
	mu     sync.Mutex
	keys   int
	inside map[string]int // by key, the event in flight
	last   map[string]int
	faults []string
	seen   map[int]int // attempts by event
}

func newOrderly(keys int) *orderly {
	return &orderly{keys: keys, inside: map[string]int{}, last: map[string]int{}, seen: map[int]int{}}
}

// enter records a request and returns the number of its event's attempts.
func (o *orderly) enter(n int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := keyOf(n, o.keys)
	if other, busy := o.inside[key]; busy {
		o.faults = append(o.faults, fmt.Sprintf("event %d of %s began while %d was under way", n, key, other))
	}
	if last, any := o.last[key]; any && n < last {
		o.faults = append(o.faults, fmt.Sprintf("event %d of %s came after %d", n, key, last))
	}
	o.inside[key], o.last[key] = n, n
	o.seen[n]++
	return o.seen[n]
}

func (o *orderly) leave(n int) {
	o.mu.Lock()
	delete(o.inside, keyOf(n, o.keys))
	o.mu.Unlock()
}

func (o *orderly) check(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, f := range o.faults {
		if i == 5 {
			t.Errorf("and %d more", len(o.faults)-5)
			break
		}
		t.Error(f)
	}
}

// emitKeyed emits events 0 to n-1, their keys in turn, in batches, and returns their ids.
func (h *house) emitKeyed(tenant id.UUID, from, to, keys int) (ids []id.UUID) {
	h.t.Helper()
	for from < to {
		var items []emit.Item
		for ; from < to && len(items) < 100; from++ {
			items = append(items, item("order.completed", keyOf(from, keys), from))
		}
		ids = append(ids, h.emit(tenant, items...)...)
	}
	return ids
}

func TestOrderHoldsPerKeyThroughRetriesFailuresAndCancels(t *testing.T) {
	t.Parallel()
	const events, keys = 2000, 50
	h := newHouse(t)
	order := newOrderly(keys)
	random := rand.New(rand.NewPCG(1, 2))
	flaky, refused := map[int]bool{}, map[int]bool{}
	for n := range events {
		switch x := random.Float64(); {
		case x < 0.02:
			flaky[n] = true
		case x < 0.06:
			refused[n] = true
		}
	}
	r := newReceiver(t, func(a arrival) int {
		attempt := order.enter(a.data.N)
		defer order.leave(a.data.N)
		switch {
		case flaky[a.data.N] && attempt == 1:
			return 500
		case refused[a.data.N]:
			return 400
		}
		return 200
	})
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		s.Ordering, s.MaxInFlight, s.RetryPolicy, s.RetryDelays = "key", 20, endpoint.Custom, []int{1}
	})
	h.pause(tenant, ep)
	ids := h.emitKeyed(tenant, 0, events, keys)
	canceled := 0
	cancelNth := func(n int) {
		if h.count("SELECT count(*) FROM queue WHERE event_id = $1", ids[n]) == 0 {
			return
		}
		dlv := h.deliveryOf(ids[n])
		// It is possibly settled between the query and the try: then it is rejected, which is correct too.
		if err := h.db.Tenant(t.Context(), tenant, func(q *sql.Queries) error {
			_, err := deliveries.Cancel(t.Context(), q, tenant, dlv)
			return err
		}); err == nil {
			canceled++
		}
	}
	for n := range keys / 5 { // heads of their keys
		cancelNth(n * 5)
	}
	h.worker(true)
	h.resume(tenant, ep)
	for range 20 {
		cancelNth(random.IntN(events))
	}
	eventually(t, 60*time.Second, "everything has ended", func() bool { return h.count("SELECT count(*) FROM queue") == 0 })
	if t.Failed() {
		t.Log(h.queueStates())
	}
	order.check(t)
	if n := h.count("SELECT count(*) FROM deliveries WHERE status IN (2, 3, 4)"); n != events {
		t.Errorf("%d of %d have ended", n, events)
	}
	if canceled < keys/5 {
		t.Errorf("%d were canceled, want at least %d", canceled, keys/5)
	}
	h.balanced()
}

func TestStrictOrderSendsOneAtATimeInTheOrderOfEmission(t *testing.T) {
	t.Parallel()
	const events = 200
	h := newHouse(t)
	order := newOrderly(1)
	r := newReceiver(t, func(a arrival) int {
		attempt := order.enter(a.data.N)
		defer order.leave(a.data.N)
		if a.data.N == 7 && attempt == 1 {
			return 503
		}
		return 200
	})
	tenant := h.tenant()
	h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		s.Ordering, s.MaxInFlight, s.RetryPolicy = "strict", 10, "quick"
	})
	h.worker(true)
	h.emitKeyed(tenant, 0, events, 7) // its events have keys, but strict ordering ignores them
	h.settled(90*time.Second, delivery.Delivered, events)
	order.check(t)
	if n := len(r.seen()); n != events+1 {
		t.Errorf("%d requests for %d events and one retry", n, events)
	}
}

func TestOrderHoldsWhenAnotherWorkerTakesOver(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stopped", "declared dead"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			const events, keys = 400, 10
			h := newHouse(t)
			order := newOrderly(keys)
			r := newReceiver(t, func(a arrival) int {
				attempt := order.enter(a.data.N)
				defer order.leave(a.data.N)
				time.Sleep(3 * time.Millisecond)
				if a.data.N%97 == 5 && attempt == 1 {
					return 500
				}
				return 200
			})
			tenant := h.tenant()
			h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
				s.Ordering, s.MaxInFlight, s.RetryPolicy = "key", 8, "quick"
			})
			first, stop := h.worker(true)
			h.emitKeyed(tenant, 0, events, keys)
			eventually(t, 20*time.Second, "the first worker is in mid-run", func() bool { return len(r.seen()) > events/4 })
			h.worker(false)
			duplicates := 0
			if how == "stopped" {
				stop()
			} else {
				// A request that is not recorded when its sender is declared dead is sent again. That is at most one
				// request for each key: the next of the key waits for the record. The receiver must ignore the overlap.
				duplicates = keys
				h.declareDead(first)
			}
			h.settled(60*time.Second, delivery.Delivered, events)
			extra := -events
			order.mu.Lock()
			for n, attempts := range order.seen {
				extra += attempts
				if n%97 == 5 {
					extra--
				}
			}
			if len(order.faults) > 0 && how == "declared dead" {
				order.faults = withoutOverlaps(order.faults)
			}
			order.mu.Unlock()
			order.check(t)
			if extra > duplicates || extra < 0 {
				t.Errorf("%d requests too many, at most %d may be", extra, duplicates)
			}
			h.balanced()
		})
	}
}

// declareDead declares a worker dead in the database, as another worker does after a silence.
func (h *house) declareDead(w *Worker) {
	h.t.Helper()
	me := w.id()
	beat := h.count("SELECT beat FROM workers WHERE id = $1", me)
	if _, done, err := queue.DeclareDead(h.t.Context(), h.db, me, int64(beat)); err != nil || !done {
		h.t.Fatalf("the worker could not be declared dead: %v, %v", done, err)
	}
}

// withoutOverlaps drops the faults that a repeated request of the same event causes.
func withoutOverlaps(faults []string) (rest []string) {
	for _, f := range faults {
		var n, other int
		var key string
		if _, err := fmt.Sscanf(f, "event %d of %s began while %d was under way", &n, &key, &other); err == nil && n == other {
			continue
		}
		rest = append(rest, f)
	}
	return rest
}

func TestADeferredEventTakesItsPlaceWhenItIsDue(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	h.endpoint(tenant, r.URL+"/keyed", func(s *endpoint.Settings) { s.Ordering = "key" })
	h.endpoint(tenant, r.URL+"/loose", nil)
	h.worker(true)
	due := time.Now().Add(2 * time.Second)
	later := func(n int) emit.Item {
		i := item("order.completed", "k", n)
		i.Emission.DeliverAt = due
		return i
	}
	h.emit(tenant, later(0), later(1))
	h.emit(tenant, item("order.completed", "k", 2), item("order.completed", "k", 3))
	past := item("order.completed", "k", 4)
	past.Emission.DeliverAt = time.Now().Add(-time.Minute)
	h.emit(tenant, past)
	h.settled(20*time.Second, delivery.Delivered, 10)
	for _, path := range []string{"/keyed", "/loose"} {
		var got []int
		for _, a := range r.seen() {
			if a.path != path {
				continue
			}
			got = append(got, a.data.N)
			if a.data.N < 2 && a.at.Before(due) {
				t.Errorf("%s: event %d came %v before its time", path, a.data.N, due.Sub(a.at))
			}
			if a.data.N < 2 && a.at.After(due.Add(3*time.Second)) {
				t.Errorf("%s: event %d came %v after its time", path, a.data.N, a.at.Sub(due))
			}
		}
		if len(got) != 5 {
			t.Errorf("%s: %v", path, got)
		}
		if path == "/keyed" && (got[3] != 0 || got[4] != 1) {
			t.Errorf("the deferred events came as %v, want them last and in their order", got)
		}
	}
	h.balanced()
}

func TestWhatWaitsBehindItsKeyIsSentWhenTheEndpointGivesUpItsOrder(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"while it is served", "before it is served"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			g := newGate(t)
			defer g.release()
			r := newReceiver(t, func(a arrival) int {
				if a.data.N == 0 {
					g.pass()
				}
				return 200
			})
			tenant := h.tenant()
			ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.Ordering = "strict" })
			none := func(s *endpoint.Settings) { s.Ordering = "none" }
			if how == "before it is served" {
				h.emitKeyed(tenant, 0, 10, 1)
				h.change(tenant, ep, none)
				h.worker(true)
				g.release()
			} else {
				w, _ := h.worker(true)
				h.emitKeyed(tenant, 0, 10, 1)
				g.waitEntered(t)
				h.change(tenant, ep, none)
				h.followed(w, ep)
				g.release()
			}
			h.settled(20*time.Second, delivery.Delivered, 10)
			if got := ns(r.seen()); len(got) != 10 || fmt.Sprint(got) != fmt.Sprint(upTo(10)) {
				t.Errorf("events came as %v, want what was queued in its order", got)
			}
		})
	}
}
