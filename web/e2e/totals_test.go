//go:build (e2e || soak) && unix

package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestTheTotalsBalanceThroughRandomKills kills processes of every kind at random while 50,000 deliveries are made,
// and then holds against each other what the clients were told, what the receivers got, the deliveries, the books,
// and the engine's own check.
func TestTheTotalsBalanceThroughRandomKills(t *testing.T) {
	t.Parallel()
	const (
		events    = 5000
		endpoints = 10
		perSecond = 120
	)
	w := newWorld(t, nil)
	names := []string{"web-0", "web-1", "worker-0", "worker-1"}
	running := make([]*process, len(names))
	start := func(i int) { running[i] = w.launch(names[i], names[i][:len(names[i])-2]).ready() }
	for i := range names {
		start(i)
	}
	w.serveAt(running[0], running[1])
	paths := make([]string, endpoints)
	for i := range paths {
		paths[i] = fmt.Sprintf("/%d", i)
		w.endpoint(paths[i], settings{"max_in_flight": 20})
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	batch := make([]emission, events)
	for i := range batch {
		batch[i] = event("order.completed", i)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.emitAll(batch, perSecond, 40)
	}()
	h, kills := hits{}, map[string]int{}
	for emitting := true; emitting; {
		select {
		case <-done:
			emitting = false
			continue
		case <-time.After(time.Duration(500+random.IntN(3000)) * time.Millisecond):
		}
		victim := random.IntN(len(names))
		running[victim].kill()
		kills[names[victim]]++
		if victim >= 2 {
			h.after(w, time.Now())
		}
		start(victim)
		w.serveAt(running[0], running[1])
	}
	took := w.settled(events*endpoints, 3*time.Minute)
	h.late(w)
	t.Logf("settled %v after the last acknowledgement; kills %v hit %d deliveries; refusals by status %v; seed %d", took.Round(100*time.Millisecond), kills, h.total(), w.codes, seed)
	if len(w.acknowledgements()) != events {
		t.Errorf("%d of %d events were acknowledged", len(w.acknowledgements()), events)
	}
	if kills["worker-0"]+kills["worker-1"] == 0 || kills["web-0"]+kills["web-1"] == 0 {
		t.Logf("the dice fell so that one kind of process was never killed: %v", kills)
	}
	w.balanced(endpoints)
	w.receiver.expect(w.acknowledgements(), everyPath(paths...), func(what string) int { return 1 + h[what] })
	// The engine's own check must come to the same: a worker that starts does what is due.
	if _, err := w.sql.Exec(t.Context(), "UPDATE chores SET done_at = '-infinity' WHERE name LIKE 'check the books%'"); err != nil {
		t.Fatal(err)
	}
	w.launch("checker", "worker").ready()
	eventually(t, patience, "the books are checked", func() bool {
		return w.ask("SELECT count(*) FROM chores WHERE name = 'check the books: recent' AND done_at > '-infinity'") == 1
	})
	if n := w.ask("SELECT count(*) FROM book_differences"); n != 0 {
		t.Errorf("the check of the books found %d pages that differ", n)
	}
	if n := w.ask("SELECT coalesce(sum(n), 0) FROM (SELECT sum(events) AS n FROM books UNION ALL SELECT sum(e) FROM ledger, unnest(events) AS e) x"); n != events {
		t.Errorf("%d events are counted, %d were acknowledged", n, events)
	}
}
