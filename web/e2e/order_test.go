//go:build (e2e || soak) && unix

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestOrderPerKeyHoldsThroughFaults: events of a key reach the receiver in the order in which they were acknowledged,
// through failures, dead letters, a pause, and kills of the lane's owner.
func TestOrderPerKeyHoldsThroughFaults(t *testing.T) {
	t.Parallel()
	const (
		keys    = 12
		perKey  = 60
		faulty  = 17 // every so many-th event fails at first
		refused = 23 // every so many-th is refused for good
	)
	// The keys go forward side by side: each has its faults at numbers of its own, or they would open the breaker
	// together.
	nth := func(key, n, every int) bool { return (n+key)%every == every-1 }
	w := newWorld(t, func(a *arrival) int {
		a.hold(30 * time.Millisecond)
		key, _ := strconv.Atoi(strings.TrimPrefix(a.data.Key, "key-"))
		switch {
		case a.path == "/strict":
			return 200
		case nth(key, a.data.N, refused):
			return 400
		case nth(key, a.data.N, faulty) && a.attempt == "1":
			return 500
		}
		return 200
	})
	web := w.launch("web", "web").ready()
	w.serveAt(web)
	workers := []*process{w.launch("worker-0", "worker").ready(), w.launch("worker-1", "worker").ready()}
	keyed := w.endpoint("/keyed", settings{"ordering": "key", "max_in_flight": 8, "retry_policy": settings{"name": "custom", "delays": []int{1, 1, 1, 1}}})
	strict := w.endpoint("/strict", settings{"ordering": "strict", "event_types": []string{"strict.*"}})
	// One client a key: it waits for each acknowledgement, which is what makes an order.
	emit := func(from, until int) {
		var clients sync.WaitGroup
		for k := range keys {
			clients.Go(func() {
				key := fmt.Sprintf("key-%d", k)
				typ := "keyed.event"
				if k == 0 {
					typ = "strict.event"
				}
				for n := from; n < until; n++ {
					w.emit(emission{Type: typ, Key: key, Data: payload{Key: key, N: n}, idemp: fmt.Sprintf("%s/%d", key, n)})
				}
			})
		}
		clients.Wait()
	}
	deliveries := keys*perKey + perKey // the strict endpoint gets the first key's once more
	h := hits{}
	owner := func() int { return slices.IndexFunc(workers, func(p *process) bool { return w.owns(p, "/keyed") }) }
	kill := func() {
		t.Helper()
		victim := -1
		eventually(t, patience, "a worker owns the lane and is at work", func() bool {
			victim = owner()
			return victim >= 0 && w.receiver.busy() > 0
		})
		workers[victim].kill()
		h.after(w, time.Now())
		workers[victim] = w.launch(workers[victim].name, "worker").ready()
	}
	emit(0, perKey/3)
	kill()
	emit(perKey/3, perKey/2)
	// The lane's next owner is paused in the middle, and what is emitted meanwhile waits behind what was held.
	eventually(t, 2*time.Minute, "another worker has taken over", func() bool { return owner() >= 0 && w.receiver.busy() > 0 })
	w.manage(http.MethodPost, "/endpoints/"+keyed+"/pause", settings{}, nil)
	w.manage(http.MethodPost, "/endpoints/"+strict+"/pause", settings{}, nil)
	emit(perKey/2, perKey)
	paused := w.receiver.count()
	if w.ask("SELECT count(*) FROM queue") == 0 {
		t.Error("nothing waits although the endpoints are paused")
	}
	w.manage(http.MethodPost, "/endpoints/"+keyed+"/resume", nil, nil)
	w.manage(http.MethodPost, "/endpoints/"+strict+"/resume", nil, nil)
	eventually(t, patience, "deliveries go on", func() bool { return w.receiver.count() > paused+20 })
	kill()
	took := w.settled(deliveries, 2*time.Minute)
	h.late(w)
	t.Logf("settled %v after the last kill; kills hit %d deliveries", took.Round(100*time.Millisecond), h.total())
	w.inOrder("/keyed", func(a arrival) string { return a.data.Key })
	w.inOrder("/strict", func(arrival) string { return "" })
	// What was refused is a dead letter, what failed at first was delivered.
	rejects := 0
	for i := range keys * perKey {
		if nth(i/perKey, i%perKey, refused) {
			rejects++
		}
	}
	if n := w.ask("SELECT count(*) FROM deliveries WHERE status = 3 AND reason = 2"); n != rejects {
		t.Errorf("%d deliveries were rejected, want %d", n, rejects)
	}
	if n := w.ask("SELECT count(*) FROM deliveries WHERE status = 2"); n != deliveries-rejects {
		t.Errorf("%d deliveries were delivered, want %d", n, deliveries-rejects)
	}
	if n := w.ask("SELECT count(*) FROM deliveries WHERE status = 2 AND attempts > 1"); n == 0 {
		t.Error("no delivery was retried: the failures were none")
	}
	tally := w.receiver.tally()
	for key, id := range w.acknowledgements() {
		if tally["/keyed "+id] == 0 {
			t.Errorf("%s never arrived", key)
		}
	}
}

// inOrder checks that no event of a group arrives after a later one of its group: neither for the first time nor again.
func (w *world) inOrder(path string, group func(arrival) string) {
	w.t.Helper()
	last := map[string]arrival{}
	wrong := 0
	for _, a := range w.receiver.seen() {
		if a.path != path {
			continue
		}
		g := group(a)
		before, known := last[g]
		if known && a.data.N < before.data.N {
			if wrong++; wrong <= 10 {
				w.t.Errorf("%s, key %q: event %d (attempt %s, arrival %d, answered %d) came %v after event %d (attempt %s, arrival %d)", path, g, a.data.N, a.attempt, a.nth, a.status,
					a.started.Sub(before.started).Round(time.Millisecond), before.data.N, before.attempt, before.nth)
			}
		}
		if known && a.data.N > before.data.N+1 {
			if wrong++; wrong <= 10 {
				w.t.Errorf("%s, key %q: event %d came right after event %d", path, g, a.data.N, before.data.N)
			}
		}
		// A later event of the key must find its predecessor answered.
		if known && a.data.N > before.data.N && (before.ended.IsZero() || before.ended.After(a.started)) {
			if wrong++; wrong <= 10 {
				w.t.Errorf("%s, key %q: event %d came while event %d was under way", path, g, a.data.N, before.data.N)
			}
		}
		last[g] = a
	}
}
