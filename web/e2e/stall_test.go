//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestAStalledWorkerOverwritesNothing freezes a worker that has requests under way until others have taken its lanes
// over and decided otherwise. What it finds out when it goes on is logged and changes nothing.
func TestAStalledWorkerOverwritesNothing(t *testing.T) {
	t.Parallel()
	const (
		inFlight = 4
		backlog  = 40 // of each lane, most of it read ahead by the worker that stalls
	)
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	// The first to ask gets the opposite of what those get who ask after the stall.
	first := map[string]int{"/accepts": 200, "/rejects": 400, "/retries": 200}
	later := map[string]int{"/accepts": 400, "/rejects": 200, "/retries": 500}
	w := newWorld(t, func(a *arrival) int {
		if first[a.path] == 0 {
			return 200
		}
		select {
		case <-release:
			if a.nth > 1 {
				return later[a.path]
			}
			return 200
		default:
		}
		<-release
		return first[a.path]
	})
	web := w.launch("web", "web").ready()
	w.serveAt(web)
	stalled := w.launch("stalled", "worker").ready()
	for path := range first {
		w.endpoint(path, settings{
			"event_types":     []string{"held" + path[1:]},
			"max_in_flight":   inFlight,
			"timeout_seconds": 30,
			"retry_policy":    settings{"name": "custom", "delays": []int{3600}},
		})
	}
	w.endpoint("/noise", settings{"event_types": []string{"noise"}, "max_in_flight": 20})
	paths := func(key string) []string {
		typ, _, _ := strings.Cut(key, "-")
		if held, is := strings.CutPrefix(typ, "held"); is {
			return []string{"/" + held}
		}
		return []string{"/noise"}
	}
	var batch []emission
	for i := range backlog {
		batch = append(batch, event("heldaccepts", i), event("heldrejects", i), event("heldretries", i))
	}
	w.emitAll(batch, 0, 8)
	eventually(t, patience, "the worker's lanes are full", func() bool { return w.receiver.busy() == len(first)*inFlight })
	// Traffic while it freezes: its recorder is in the middle of something.
	noise := make([]emission, 600)
	for i := range noise {
		noise[i] = event("noise", i)
	}
	noisy := make(chan struct{})
	go func() {
		defer close(noisy)
		w.emitAll(noise, 200, 16)
	}()
	eventually(t, patience, "there is traffic", func() bool { return w.receiver.count() > 100 })
	taker := w.launch("taker", "worker").ready()
	stalled.signal(syscall.SIGSTOP)
	frozen := time.Now()
	h := hits{}
	h.after(w, frozen)
	// Whatever was under way is answered now: the answers wait for the worker that does not look.
	free()
	deliveries := len(batch) + len(noise)
	took := w.settledBut(inFlight, deliveries-inFlight, 90*time.Second)
	t.Logf("the other worker had done everything %v after the stall", took.Round(100*time.Millisecond))
	if took > 65*time.Second {
		t.Errorf("the lanes were taken over and served only %v after the stall; 30 s and 30 s more are promised", took)
	}
	<-noisy
	before := w.statuses()
	arrivals := w.receiver.count()
	stalled.signal(syscall.SIGCONT)
	stalled.log.await(t, "declared dead")
	stalled.ready()
	// Its late results are on record.
	eventually(t, patience, "the late attempts are logged", func() bool {
		return w.ask("SELECT count(*) FROM attempts WHERE late") >= len(first)*inFlight
	})
	t.Logf("it was frozen for %v; late attempts: %d", time.Since(frozen).Round(time.Second), w.ask("SELECT count(*) FROM attempts WHERE late"))
	if after := w.statuses(); !slices.Equal(before, after) {
		t.Errorf("late results changed deliveries:\n%v\n%v", before, after)
	}
	if n := w.receiver.count(); n != arrivals {
		t.Errorf("the worker sent %d requests more when it went on", n-arrivals)
	}
	for path, want := range map[string]int{"/accepts": 3, "/rejects": 2, "/retries": 1} {
		got := w.ask("SELECT count(*) FROM deliveries d JOIN endpoints p ON p.id = d.endpoint_id WHERE p.url LIKE '%' || $1 AND d.attempts = 1 AND d.status = $2 AND EXISTS (SELECT FROM attempts a WHERE a.delivery_id = d.id AND a.late)", path, want)
		if got != inFlight {
			t.Errorf("%s: %d deliveries that were under way have status %d, want %d", path, got, want, inFlight)
		}
	}
	w.balanced(1)
	w.receiver.expect(w.acknowledgements(), paths, func(what string) int { return 1 + h[what] })
	// It is of use again: with the other gone, new events reach their endpoints through it.
	if code := taker.stop(); code != 0 {
		t.Errorf("the other worker stopped with %d", code)
	}
	w.emit(event("noise", len(noise)))
	w.settledBut(inFlight, deliveries-inFlight+1, 30*time.Second)
}

// statuses is what has become of every delivery, in a fixed order.
func (w *world) statuses() (all []string) {
	w.t.Helper()
	rows, err := w.sql.Query(context.Background(), "SELECT id::text, status, reason, attempts, last_status, coalesce(settled_at::text, '') FROM deliveries ORDER BY id")
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, settled string
		var status, reason, attempts, last int
		if err := rows.Scan(&id, &status, &reason, &attempts, &last, &settled); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, fmt.Sprint(id, status, reason, attempts, last, settled))
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return all
}
