//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// undelivered lists the deliveries that have not come to their end, as the receiver counts arrivals ("path id").
func (w *world) undelivered() map[string]bool {
	w.t.Helper()
	rows, err := w.sql.Query(context.Background(), "SELECT d.event_id::text, p.url FROM deliveries d JOIN endpoints p ON p.id = d.endpoint_id WHERE d.status < 2")
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	list := map[string]bool{}
	for rows.Next() {
		var event, url string
		if err := rows.Scan(&event, &url); err != nil {
			w.t.Fatal(err)
		}
		list[url[len(w.receiver.url):]+" "+eventID(w.t, event)] = true
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return list
}

// hits counts, for each event, the kills that may make it arrive once more: those that found it sent and not recorded.
type hits map[string]int

// after takes in a kill. unanswered are the arrivals that the receiver still held when it came.
func (h hits) after(w *world, killed time.Time) (sent int) {
	w.t.Helper()
	open := w.undelivered()
	for _, a := range w.receiver.seen() {
		what := a.path + " " + a.id
		if !open[what] {
			continue
		}
		// A request that the killed process had just written can reach the receiver after this looked: its sender was
		// dead by then, so no result of it could be recorded. It belongs to the kill before this one.
		if !a.ended.IsZero() && a.status == 200 && !a.cut && killed.Sub(a.ended) > 5*time.Second && h[what] == 0 {
			w.t.Errorf("%s was answered %v before the kill, and its result was not recorded", what, killed.Sub(a.ended).Round(time.Millisecond))
		}
		open[what] = false // once, however often it arrived
		h[what]++
		sent++
	}
	return sent
}

// late adds the arrivals of the last kill that reached the receiver after it was looked at: their sender had hung up.
func (h hits) late(w *world) {
	for _, a := range w.receiver.seen() {
		if what := a.path + " " + a.id; a.cut && h[what] == 0 {
			h[what]++
		}
	}
}

func (h hits) total() (n int) {
	for _, k := range h {
		n += k
	}
	return n
}

// TestKilledWorkersLoseNothing kills workers in the middle of their work, again and again.
func TestKilledWorkersLoseNothing(t *testing.T) {
	t.Parallel()
	const (
		lanes    = 10
		inFlight = 5
		hold     = time.Second
	)
	w := newWorld(t, func(a *arrival) int { a.hold(hold); return 200 })
	web := w.launch("web", "web").ready()
	w.serveAt(web)
	workers := []*process{w.launch("worker-0", "worker").ready(), w.launch("worker-1", "worker").ready()}
	path := func(i int) string { return fmt.Sprintf("/%d", i%lanes) }
	for i := range lanes {
		w.endpoint(path(i), settings{"event_types": []string{fmt.Sprintf("type.%d", i)}, "max_in_flight": inFlight})
	}
	n, emitted := kills(t), 0
	events := max(1000, n*lanes*inFlight*3) // so that every kill finds some done and some under way
	where := map[string]string{}
	emit := func(until int) {
		batch := make([]emission, 0, until-emitted)
		for ; emitted < until; emitted++ {
			e := event(fmt.Sprintf("type.%d", emitted%lanes), emitted)
			where[e.idemp] = path(emitted)
			batch = append(batch, e)
		}
		w.emitAll(batch, 0, 8)
	}
	h := hits{}
	for k := range n {
		emit(max(emitted, events*(k+1)/n))
		// A kill that finds nothing under way would prove nothing, and neither would one that lets nothing be done.
		ended := w.ask("SELECT count(*) FROM deliveries WHERE status >= 2")
		eventually(t, patience, "deliveries end", func() bool { return w.ask("SELECT count(*) FROM deliveries WHERE status >= 2") >= ended+lanes*inFlight })
		victim := -1
		eventually(t, patience, "lanes are under way", func() bool {
			victim = slices.IndexFunc(workers, func(p *process) bool { return w.owns(p, "") })
			if victim < 0 && w.receiver.busy() == 0 {
				emit(emitted + 2*lanes*inFlight) // all were done before this looked: a busy machine
			}
			return victim >= 0 && w.receiver.busy() >= inFlight
		})
		workers[victim].kill()
		killed := time.Now()
		sent := h.after(w, killed)
		t.Logf("kill %d of %s: %d deliveries were under way or not recorded", k+1, workers[victim].name, sent)
		if most := lanes * inFlight * 3; sent > most {
			t.Errorf("%d deliveries were under way at one kill, at most %d can be", sent, most)
		}
		workers[victim] = w.launch(workers[victim].name, "worker").ready()
	}
	// The lease is 30 s; then what the lanes hold, which with quick kills is nearly everything, and as much again.
	took := w.settled(emitted, time.Minute+time.Duration(emitted/(lanes*inFlight))*hold)
	h.late(w)
	t.Logf("settled %v after the last kill; %d kills hit %d deliveries", took.Round(100*time.Millisecond), n, h.total())
	w.balanced(1)
	w.receiver.expect(
		w.acknowledgements(),
		func(key string) []string { return []string{where[key]} },
		func(what string) int { return 1 + h[what] },
	)
	if n := w.ask("SELECT count(*) FROM deliveries WHERE status <> 2"); n != 0 {
		t.Errorf("%d deliveries did not end as delivered", n)
	}
	// Every send is on record, but for those that a kill cut off.
	arrived, logged := w.receiver.count(), w.ask("SELECT count(*) FROM attempts")
	if missing := arrived - logged; missing < 0 || missing > h.total() {
		t.Errorf("%d attempts are on record for %d arrivals; the kills account for at most %d", logged, arrived, h.total())
	}
	if duplicates := arrived - emitted; duplicates > h.total() {
		t.Errorf("%d duplicates; the kills account for at most %d", duplicates, h.total())
	}
}
