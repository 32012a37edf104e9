package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/domain/transform"
)

// parcel is an event in the body of a batch.
type parcel struct {
	ID   string `json:"id"`
	Data struct {
		N   int    `json:"n"`
		Key string `json:"key"`
	} `json:"data"`
}

// loader receives batches. answer says what it does with one: a status, and of a 207 the status of each event; nil is
// 200.
type loader struct {
	*httptest.Server
	mu       sync.Mutex
	requests []load
	answer   func([]parcel) (int, map[string]int)
	taken    map[string][]int // numbers of accepted events, by key, in order
}

type load struct {
	parcels []parcel
	header  http.Header
	body    []byte
	at      time.Time
}

func newLoader(t testing.TB, answer func([]parcel) (int, map[string]int)) *loader {
	l := &loader{answer: answer, taken: map[string][]int{}}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		one := load{header: r.Header, body: body, at: time.Now()}
		if err := json.Unmarshal(body, &one.parcels); err != nil {
			t.Errorf("the body is no array of events: %v: %.200s", err, body)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.requests = append(l.requests, one)
		status, results := 200, map[string]int(nil)
		if l.answer != nil {
			status, results = l.answer(one.parcels)
		}
		for _, p := range one.parcels {
			if status/100 == 2 && (results[p.ID] == 0 || results[p.ID]/100 == 2) {
				l.taken[p.Data.Key] = append(l.taken[p.Data.Key], p.Data.N)
			}
		}
		w.WriteHeader(status)
		if status == http.StatusMultiStatus {
			list := []map[string]any{{"id": "evt_unknown", "status": 500}}
			for name, code := range results {
				list = append(list, map[string]any{"id": name, "status": code})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"results": list})
		}
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *loader) seen() []load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

func batched(events, wait int, more ...func(*endpoint.Settings)) func(*endpoint.Settings) {
	return func(s *endpoint.Settings) {
		s.BatchEvents, s.BatchWait = &events, &wait
		for _, change := range more {
			change(s)
		}
	}
}

func parcels(n int, key func(int) string) []emit.Item {
	items := make([]emit.Item, n)
	for i := range items {
		k := key(i)
		items[i] = emit.Item{Emission: event.Emission{Type: "order.paid", Key: k, Data: fmt.Appendf(nil, `{"n":%d,"key":%q}`, i, k)}}
	}
	return items
}

func unordered(int) string { return "" }

func (h *house) allSettled(n int) func() bool {
	return func() bool {
		return h.count("SELECT count(*) FROM deliveries WHERE status >= 2") == n && h.count("SELECT count(*) FROM queue") == 0
	}
}

// hurried makes retries due while something is not yet so.
func (h *house) hurried(ok func() bool) func() bool {
	return func() bool {
		h.exec("UPDATE queue SET due_at = now() WHERE state = 1 AND due_at < now() + interval '1 day'")
		return ok()
	}
}

// TestEventsShareRequests: each request is an array of events with one signature over the whole body, an id of its own,
// and is shown by each of its deliveries.
func TestEventsShareRequests(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	l := newLoader(t, nil)
	ep := h.endpoint(tenant, l.URL, batched(10, 200))
	h.worker(true)
	events := h.emit(tenant, parcels(25, unordered)...)
	eventually(t, 20*time.Second, "25 deliveries", h.allSettled(25))
	seen := l.seen()
	if len(seen) > 8 {
		t.Errorf("25 events came in %d requests", len(seen))
	}
	names := map[string]bool{}
	got := map[int]int{}
	for _, r := range seen {
		names[r.header.Get("Webhook-Id")] = true
		if !strings.HasPrefix(r.header.Get("Webhook-Id"), "bat_") || r.header.Get("Content-Type") != "application/json" || len(r.parcels) > 10 {
			t.Errorf("a request has the id %q, %q, and %d events", r.header.Get("Webhook-Id"), r.header.Get("Content-Type"), len(r.parcels))
		}
		for _, p := range r.parcels {
			got[p.Data.N]++
		}
		h.signed(tenant, ep, r)
	}
	if len(names) != len(seen) || len(got) != 25 {
		t.Errorf("%d requests have %d ids and %d different events", len(seen), len(names), len(got))
	}
	h.as(tenant, func(q *sql.Queries) error {
		var dlv id.UUID
		h.query("SELECT id FROM deliveries WHERE event_id = $1", []any{&dlv}, events[3])
		d, err := deliveries.Read(t.Context(), q, tenant, dlv)
		if err != nil {
			return err
		}
		tries, err := deliveries.Attempts(t.Context(), q, d, 10)
		if err != nil || len(tries) != 1 {
			t.Fatalf("%d attempts: %v", len(tries), err)
		}
		sent, err := deliveries.ReadSent(t.Context(), q, h.ring, queue.Links{}, d)
		shown := sent.Request(tries[0])
		h.shows(shown, seen, events[3])
		return err
	})
}

// TestTheDeliveriesOfABatchAreListedByItsID: those of each request, and a retried one with each of its batches.
func TestTheDeliveriesOfABatchAreListedByItsID(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant, other := h.tenant(), h.tenant()
	fails := true // the first request
	l := newLoader(t, func([]parcel) (int, map[string]int) {
		if fails {
			fails = false
			return http.StatusServiceUnavailable, nil
		}
		return http.StatusOK, nil
	})
	h.endpoint(tenant, l.URL, batched(10, 200))
	h.worker(true)
	h.emit(tenant, parcels(25, unordered)...)
	eventually(t, 20*time.Second, "25 deliveries", h.hurried(h.allSettled(25)))
	again := 0
	for _, r := range l.seen() {
		batch, err := id.Batch.Parse(r.header.Get("Webhook-Id"))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{}
		for _, p := range r.parcels {
			want[p.ID] = true
		}
		for who, n := range map[id.UUID]int{tenant: len(r.parcels), other: 0} {
			got := map[string]bool{}
			h.as(who, func(q *sql.Queries) error {
				list := deliveries.ListOptions{Batch: batch, Range: show.Range{Limit: 50}}
				page, err := deliveries.List(t.Context(), q, who, list)
				for _, d := range page.Rows {
					if got[id.Event.Format(d.EventID)] = true; d.Attempts > 1 {
						again++
					}
				}
				return err
			})
			if len(got) != n || n > 0 && !maps.Equal(got, want) {
				t.Errorf("the list of %s has %d deliveries, its request had %d", r.header.Get("Webhook-Id"), len(got), n)
			}
		}
	}
	if again < 20 {
		t.Errorf("%d rows of the lists were retried, want those of the first batch twice", again)
	}
}

// signed checks a request's signature as its receiver does.
func (h *house) signed(tenant, ep id.UUID, r load) {
	h.t.Helper()
	wire := signature.Wire{Format: signature.Standard}
	if err := wire.Verify(r.header.Get, r.body, []string{h.newestSecret(tenant, ep)}, time.Now(), time.Minute); err != nil {
		h.t.Errorf("the signature of a batch: %v", err)
	}
}

// shows checks that a delivery's page shows the request that had its event.
func (h *house) shows(shown show.Request, seen []load, ev id.UUID) {
	h.t.Helper()
	for _, r := range seen {
		for _, p := range r.parcels {
			if p.ID != id.Event.Format(ev) {
				continue
			}
			if shown.Batch == nil || shown.Batch.ID != r.header.Get("Webhook-Id") || shown.Batch.Events != len(r.parcels) {
				h.t.Errorf("the batch is shown as %+v", shown.Batch)
			}
			if len(shown.Body) < 3 || !bytes.Contains(r.body, shown.Body[1:len(shown.Body)-1]) {
				h.t.Errorf("the body %s is not in %s", shown.Body, r.body)
			}
			for _, one := range shown.Headers {
				if got := r.header.Get(one.Name); got != one.Value {
					h.t.Errorf("the header %s is shown as %q and was %q", one.Name, one.Value, got)
				}
			}
			return
		}
	}
	h.t.Error("no request had the event")
}

// TestABatchWaitsForMoreAndNotWhenItIsFull: the first event waits as long as the endpoint says, unless enough others
// come.
func TestABatchWaitsForMoreAndNotWhenItIsFull(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	full, short := newLoader(t, nil), newLoader(t, nil)
	h.endpoint(tenant, full.URL, batched(5, 60_000, func(s *endpoint.Settings) { s.EventTypes = []string{"order.paid"} }))
	h.endpoint(tenant, short.URL, batched(100, 700, func(s *endpoint.Settings) { s.EventTypes = []string{"order.paid"} }))
	h.worker(true)
	began := time.Now()
	h.emit(tenant, parcels(2, unordered)...)
	eventually(t, 10*time.Second, "they have waited for a while", func() bool { return time.Since(began) > 400*time.Millisecond })
	h.emit(tenant, parcels(3, unordered)...)
	eventually(t, 20*time.Second, "both", h.allSettled(10))
	if n := len(full.seen()); n != 1 {
		t.Errorf("5 events made %d requests", n)
	}
	// The wait is the endpoint's own, and no lateness of the platform.
	if n := h.count("SELECT count(*) FROM attempts WHERE held_ms >= 250"); n < 4 {
		t.Errorf("the wait of %d of 4 deliveries counts as their endpoints'", n)
	}
	if seen := short.seen(); len(seen) != 1 || seen[0].at.Sub(began) < 600*time.Millisecond {
		t.Errorf("%d requests, the first after %s", len(seen), seen[0].at.Sub(began))
	}
}

// TestOrderHoldsInBatches: with strict order and by key, with failing batches, failing events in them, and takeovers,
// each key's events are accepted once and in order.
func TestOrderHoldsInBatches(t *testing.T) {
	t.Parallel()
	for _, ordering := range []string{"strict", "key"} {
		t.Run(ordering, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			tenant := h.tenant()
			var large int
			l := newLoader(t, func(of []parcel) (int, map[string]int) {
				large = max(large, len(of))
				switch rand.IntN(6) {
				case 0:
					return http.StatusServiceUnavailable, nil
				case 1: // from one event of a key on, all of this key
					failed, bad := map[string]int{}, map[string]bool{}
					for _, p := range of {
						if bad[p.Data.Key] = bad[p.Data.Key] || rand.IntN(8) == 0; bad[p.Data.Key] {
							failed[p.ID] = http.StatusServiceUnavailable
						}
					}
					return http.StatusMultiStatus, failed
				}
				return http.StatusOK, nil
			})
			h.endpoint(tenant, l.URL, batched(20, 20, func(s *endpoint.Settings) {
				s.Ordering, s.CircuitBreaker, s.RetryPolicy = ordering, false, endpoint.Custom
				s.RetryDelays = slices.Repeat([]int{1}, 30)
			}))
			_, stop := h.worker(true)
			keys := func(i int) string { return fmt.Sprint("k", i%7) }
			h.emit(tenant, parcels(300, keys)...)
			eventually(t, 30*time.Second, "some are delivered", h.hurried(func() bool { return h.count("SELECT count(*) FROM deliveries WHERE status = 2") > 60 }))
			stop()
			h.worker(true)
			eventually(t, 60*time.Second, "300 deliveries", h.hurried(h.allSettled(300)))
			l.mu.Lock()
			defer l.mu.Unlock()
			total := 0
			for key, numbers := range l.taken {
				total += len(numbers)
				if !slices.IsSorted(numbers) {
					t.Errorf("%s came as %v", key, numbers)
				}
			}
			if n := h.count("SELECT count(*) FROM deliveries WHERE status = 2"); n != 300 || total != 300 {
				t.Errorf("%d are delivered, %d were accepted", n, total)
			}
			if large < 5 {
				t.Errorf("no request had more than %d events", large)
			}
		})
	}
}

// TestAnEventThatSpoilsItsBatchesIsAloneInTheEnd: the others are delivered, and it fails by the response to it alone.
func TestAnEventThatSpoilsItsBatchesIsAloneInTheEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	l := newLoader(t, func(of []parcel) (int, map[string]int) {
		for _, p := range of {
			if p.Data.N == 13 {
				return http.StatusUnprocessableEntity, nil
			}
		}
		return http.StatusOK, nil
	})
	h.endpoint(tenant, l.URL, batched(40, 100))
	h.worker(true)
	events := h.emit(tenant, parcels(40, unordered)...)
	eventually(t, 30*time.Second, "40 deliveries", h.allSettled(40))
	if n := h.count("SELECT count(*) FROM deliveries WHERE status = 2"); n != 39 {
		t.Errorf("%d of 39 are delivered", n)
	}
	var reason, attempts, most int
	h.query("SELECT reason, attempts FROM deliveries WHERE event_id = $1", []any{&reason, &attempts}, events[13])
	h.query("SELECT max(attempts) FROM deliveries", []any{&most})
	if delivery.Reason(reason) != delivery.Rejected || attempts > 7 || most > 7 {
		t.Errorf("it failed as %s after %d attempts; the most of all is %d", delivery.Reason(reason), attempts, most)
	}
	if n := h.count("SELECT count(*) FROM dead_letters"); n != 1 {
		t.Errorf("%d dead letters", n)
	}
}

// TestResultsOfEventsInABatch: a 207 says what failed. Its other events are delivered. One that can't be read decides
// nothing.
func TestResultsOfEventsInABatch(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	again := false
	l := newLoader(t, func(of []parcel) (int, map[string]int) {
		results := map[string]int{}
		for _, p := range of {
			switch p.Data.N {
			case 3:
				results[p.ID] = http.StatusUnprocessableEntity
			case 5:
				if !again {
					results[p.ID], again = http.StatusInternalServerError, true
				}
			case 6:
				results[p.ID] = http.StatusCreated
			}
		}
		return http.StatusMultiStatus, results
	})
	broken := newReceiver(t, func(arrival) int { return http.StatusMultiStatus }) // without a body
	h.endpoint(tenant, l.URL, batched(10, 300, func(s *endpoint.Settings) {
		s.RetryPolicy, s.RetryDelays = endpoint.Custom, []int{1, 1, 1}
	}))
	none := h.endpoint(tenant, broken.URL, batched(10, 300))
	h.worker(true)
	events := h.emit(tenant, parcels(10, unordered)...)
	eventually(t, 20*time.Second, "10 deliveries", func() bool { return h.count("SELECT count(*) FROM deliveries WHERE status >= 2") == 10 })
	status := func(n int) (status, attempts, last int) {
		h.query("SELECT status, attempts, last_status FROM deliveries WHERE event_id = $1 AND endpoint_id <> $2", []any{&status, &attempts, &last}, events[n], none)
		return status, attempts, last
	}
	for n := range events {
		s, tried, last := status(n)
		want := [3]int{int(delivery.Delivered), 1, 200}
		switch n {
		case 3:
			want = [3]int{int(delivery.Failed), 1, 422}
		case 5:
			want = [3]int{int(delivery.Delivered), 2, 200}
		case 6:
			want[2] = 201
		}
		if [3]int{s, tried, last} != want {
			t.Errorf("event %d: status, attempts and last response are %v, not %v", n, [3]int{s, tried, last}, want)
		}
	}
	eventually(t, 20*time.Second, "the unreadable response", func() bool {
		return h.count("SELECT count(*) FROM attempts WHERE endpoint_id = $1 AND failure = $2 AND error LIKE '%results%'", none, int16(delivery.FailProtocol)) >= 10
	})
	if n := h.count("SELECT count(*) FROM deliveries WHERE endpoint_id = $1 AND status = 1", none); n != 10 {
		t.Errorf("%d of 10 wait for a retry after a 207 without results", n)
	}
}

// TestABodyHasAtMostTheBytesOfItsEndpoint: as it was rendered, also where the transformation makes events larger than
// they were.
func TestABodyHasAtMostTheBytesOfItsEndpoint(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	plain, grown := newLoader(t, nil), newLoader(t, nil)
	size := 2000
	h.endpoint(tenant, plain.URL, batched(100, 100, func(s *endpoint.Settings) { s.BatchBytes = &size }))
	h.endpoint(tenant, grown.URL, batched(100, 100, func(s *endpoint.Settings) {
		s.BatchBytes = &size
		s.Transformation = &transform.Transformation{Kind: transform.CEL, Expression: `{"id": event.id, "data": {"n": data.n, "key": ""}, "x": "` + strings.Repeat("x", 700) + `"}`}
	}))
	h.worker(true)
	items := parcels(60, unordered)
	items[7].Emission.Data = []byte(`{"n":7,"text":"` + strings.Repeat("y", 5000) + `"}`)
	h.emit(tenant, items...)
	eventually(t, 30*time.Second, "120 deliveries", h.allSettled(120))
	for _, l := range []*loader{plain, grown} {
		n := 0
		for _, r := range l.seen() {
			n += len(r.parcels)
			if len(r.body) > size && len(r.parcels) > 1 {
				t.Errorf("a request with %d events has %d bytes", len(r.parcels), len(r.body))
			}
		}
		if n != 60 || len(l.seen()) > 40 {
			t.Errorf("%d events came in %d requests", n, len(l.seen()))
		}
	}
}

// TestABatchIsOneRequestForItsEndpoint: the breaker opens after as many failed requests as without batches, and probes
// are single events.
func TestABatchIsOneRequestForItsEndpoint(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	l := newLoader(t, func([]parcel) (int, map[string]int) { return http.StatusServiceUnavailable, nil })
	ep := h.endpoint(tenant, l.URL, batched(50, 100, func(s *endpoint.Settings) { s.MaxInFlight = 1 }))
	w, _ := h.worker(true)
	h.emit(tenant, parcels(150, unordered)...)
	eventually(t, 20*time.Second, "three requests", func() bool { return len(l.seen()) >= 3 })
	v, _ := w.dispatch.View(ep)
	if n := len(l.seen()); v.Counters.ConsecutiveFailures > n {
		t.Errorf("%d failures are counted for %d requests", v.Counters.ConsecutiveFailures, n)
	}
	h.exec("UPDATE queue SET due_at = now() WHERE state = 1")
	l.mu.Lock()
	l.answer = nil
	l.mu.Unlock()
	w.scheduler.soon(0)
	eventually(t, 30*time.Second, "150 deliveries", h.allSettled(150))
}

// TestABatchOfTransformedEvents: CloudEvents have the content type of their batches. An event that can't be transformed
// waits alone.
func TestABatchOfTransformedEvents(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	l := newLoader(t, nil)
	ce, err := transform.Parse([]byte(`{"preset":"cloudevents"}`))
	if err != nil {
		t.Fatal(err)
	}
	ep := h.endpoint(tenant, l.URL, batched(10, 200, func(s *endpoint.Settings) { s.Transformation = ce }))
	h.worker(true)
	h.emit(tenant, parcels(4, unordered)...)
	eventually(t, 20*time.Second, "4 deliveries", h.allSettled(4))
	for _, r := range l.seen() {
		if got := r.header.Get("Content-Type"); got != "application/cloudevents-batch+json" || !bytes.Contains(r.body, []byte(`"specversion":"1.0"`)) {
			t.Errorf("a batch of CloudEvents is %q: %s", got, r.body)
		}
	}
	h.change(tenant, ep, func(s *endpoint.Settings) {
		s.Transformation = &transform.Transformation{Kind: transform.CEL, Expression: `data.n == 2 ? dyn("text") : dyn({"id": event.id, "data": {"n": 100 / (data.n - 1)}})`}
	})
	h.emit(tenant, parcels(5, unordered)...)
	eventually(t, 20*time.Second, "3 of 5 deliveries", func() bool { return h.count("SELECT count(*) FROM deliveries WHERE status = 2") == 7 })
	eventually(t, 5*time.Second, "2 wait for an edit", func() bool {
		return h.count("SELECT count(*) FROM queue WHERE state = 1 AND attempts = 0 AND due_at > now() + interval '1 year'") == 2
	})
	h.change(tenant, ep, func(s *endpoint.Settings) { s.Transformation = nil })
	eventually(t, 20*time.Second, "9 deliveries", h.allSettled(9))
}
