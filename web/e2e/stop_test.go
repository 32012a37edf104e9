//go:build (e2e || soak) && unix

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestStopsUnderLoadLoseAndRepeatNothing stops and replaces every process of an installation, one after the other,
// while events flow: what a deployment does.
func TestStopsUnderLoadLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	const (
		perSecond = 150
		lanes     = 12
		hold      = 150 * time.Millisecond
	)
	w := newWorld(t, func(a *arrival) int { a.hold(hold); return 200 })
	webs := []*process{w.launch("web-0", "web").ready(), w.launch("web-1", "web").ready()}
	workers := []*process{w.launch("worker-0", "worker").ready(), w.launch("worker-1", "worker").ready()}
	w.serveAt(webs...)
	path := func(i int) string { return fmt.Sprintf("/%d", i%lanes) }
	for i := range lanes {
		w.endpoint(path(i), settings{"event_types": []string{fmt.Sprintf("type.%d", i)}})
	}
	stop := make(chan struct{})
	done := make(chan int)
	where := map[string]string{}
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			batch := make([]emission, perSecond)
			for i := range batch {
				batch[i] = event(fmt.Sprintf("type.%d", n%lanes), n)
				where[batch[i].idemp] = path(n)
				n++
			}
			w.emitAll(batch, perSecond, 24)
		}
	}()
	flows := func() {
		t.Helper()
		from := w.receiver.count()
		eventually(t, patience, "events flow", func() bool { return w.receiver.count() >= from+perSecond && w.receiver.busy() > 0 })
	}
	flows()
	for round := range 2 {
		for i := range workers {
			flows()
			started := time.Now()
			if code := workers[i].stop(); code != 0 {
				t.Errorf("%s stopped with %d", workers[i].name, code)
			}
			t.Logf("round %d: %s stopped within %v", round, workers[i].name, time.Since(started).Round(10*time.Millisecond))
			workers[i] = w.launch(workers[i].name, "worker").ready()
		}
		for i := range webs {
			flows()
			if code := webs[i].stop(); code != 0 {
				t.Errorf("%s stopped with %d", webs[i].name, code)
			}
			webs[i] = w.launch(webs[i].name, "web").ready()
			w.serveAt(webs...)
		}
	}
	close(stop)
	events := <-done
	took := w.settled(events, 30*time.Second)
	t.Logf("%d events, settled %v after the last; refusals by status: %v", events, took.Round(10*time.Millisecond), w.codes)
	w.balanced(1)
	w.receiver.expectOnce(w.acknowledgements(), func(key string) []string { return []string{where[key]} })
	if arrived, logged := w.receiver.count(), w.ask("SELECT count(*) FROM attempts"); arrived != logged {
		t.Errorf("%d attempts are on record for %d arrivals", logged, arrived)
	}
	if n := w.ask("SELECT count(*) FROM workers"); n != len(workers) {
		t.Errorf("%d workers are on the list, %d run", n, len(workers))
	}
}

// TestAServerStopsCleanlyUnderLoad is the same for one process that does everything, its database included.
func TestAServerStopsCleanlyUnderLoad(t *testing.T) {
	t.Parallel()
	w, _, serve := newPrivateWorld(t, func(a *arrival) int { a.hold(100 * time.Millisecond); return 200 })
	w.endpoint("/hook", settings{"max_in_flight": 30})
	batch := make([]emission, 150*12)
	for i := range batch {
		batch[i] = event("order.completed", i)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.emitAll(batch, 150, 24)
	}()
	for range 2 {
		from := w.receiver.count()
		eventually(t, patience, "events flow", func() bool { return w.receiver.count() >= from+200 && w.receiver.busy() > 0 })
		if code := serve.stop(); code != 0 {
			t.Errorf("the server stopped with %d", code)
		}
		serve = w.launch("serve", "serve").serving()
		w.serveAt(serve)
	}
	<-done
	w.settled(len(batch), 30*time.Second)
	w.balanced(1)
	w.receiver.expectOnce(w.acknowledgements(), everyPath("/hook"))
}
