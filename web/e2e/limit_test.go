//go:build (e2e || soak) && unix

package e2e

import (
	"slices"
	"testing"
	"time"
)

// TestLimitsHoldWhileTheOwnerIsKilled: an endpoint's rate and its requests at once stay within what it allows, whoever
// serves it and however the one before ended.
func TestLimitsHoldWhileTheOwnerIsKilled(t *testing.T) {
	t.Parallel()
	const (
		rate     = 20
		burst    = 10
		inFlight = 3
		events   = 500
	)
	w := newWorld(t, func(a *arrival) int {
		if a.path == "/slow" {
			a.hold(200 * time.Millisecond)
		}
		return 200
	})
	web := w.launch("web", "web").ready()
	w.serveAt(web)
	workers := []*process{w.launch("worker-0", "worker").ready(), w.launch("worker-1", "worker").ready()}
	w.endpoint("/rate", settings{"rate_limit": rate, "burst": burst, "max_in_flight": 20})
	w.endpoint("/slow", settings{"max_in_flight": inFlight})
	batch := make([]emission, events)
	for i := range batch {
		batch[i] = event("order.completed", i)
	}
	started := time.Now()
	w.emitAll(batch, 0, 16)
	h := hits{}
	var killed []time.Time
	for _, path := range []string{"/rate", "/slow"} {
		var owner int
		from := w.receiver.count()
		eventually(t, patience, "the lane is served", func() bool {
			owner = slices.IndexFunc(workers, func(p *process) bool { return w.owns(p, path) })
			return owner >= 0 && w.receiver.count() > from+2*rate && w.receiver.busy() > 0
		})
		workers[owner].kill()
		killed = append(killed, time.Now())
		h.after(w, killed[len(killed)-1])
		workers[owner] = w.launch(workers[owner].name, "worker").ready()
	}
	took := w.settled(2*events, 3*time.Minute)
	h.late(w)
	t.Logf("%d events to two endpoints in %v, settled %v after the last kill; kills hit %d deliveries", events, time.Since(started).Round(time.Second), took.Round(time.Second), h.total())
	w.balanced(2)
	w.receiver.expect(w.acknowledgements(), everyPath("/rate", "/slow"), func(what string) int { return 1 + h[what] })

	var all, slow []arrival
	for _, a := range w.receiver.seen() {
		if a.path == "/rate" {
			all = append(all, a)
		} else {
			slow = append(slow, a)
		}
	}
	paced(t, moments(all), rate, burst, jitter)
	// A worker that takes a lane over from a dead one can't know what was left of its burst: the bucket is empty. The
	// grace is for a machine that stands still; a full bucket would still be seen.
	const grace = 400 * time.Millisecond
	for i := 1; i < len(all); i++ {
		if gap := all[i].started.Sub(all[i-1].started); gap < 10*time.Second {
			continue
		}
		taken := all[i].started
		for j := i; j < len(all) && all[j].started.Sub(taken) < 5*time.Second; j++ {
			if n, span := float64(j-i+1), all[j].started.Sub(taken); n > 1+rate*(span+grace).Seconds() {
				t.Errorf("%.0f requests came within %v of the takeover, whose bucket should be empty", n, span)
				break
			}
		}
	}
	// It is a limit, not a brake: while a worker served the lane, the endpoint got its rate.
	for from, i := 0, 1; i <= len(all); i++ {
		if i < len(all) && all[i].started.Sub(all[i-1].started) < 10*time.Second {
			continue
		}
		if n, span := i-from, all[i-1].started.Sub(all[from].started); span > time.Duration(n)*time.Second/rate+
			3*time.Second {
			t.Errorf("%d requests took %v at %d a second", n, span, rate)
		}
		from = i
	}
	if most := atOnce(slow, killed); most > inFlight {
		t.Errorf("%d requests were under way at once, %d are allowed", most, inFlight)
	} else if most < inFlight {
		t.Errorf("only %d requests were ever under way at once, %d are allowed", most, inFlight)
	}
}

// jitter is for machines that are busy: requests are paced where they are sent and seen where they arrive, and one
// may come late and the next in time.
const jitter = 250 * time.Millisecond

// moments are when arrivals began.
func moments(all []arrival) []time.Time {
	list := make([]time.Time, len(all))
	for i, a := range all {
		list[i] = a.started
	}
	return list
}

// paced checks that requests, in their order, came at no more than a rate, in every window of time.
func paced(t *testing.T, all []time.Time, rate, burst float64, grace time.Duration) {
	t.Helper()
	worst := 0.0
	for i := range all {
		for j := i; j < len(all); j++ {
			span := all[j].Sub(all[i])
			if n := float64(j - i + 1); n > burst+rate*(span+grace).Seconds() {
				t.Errorf("%.0f requests came within %v; %.0f a second and %.0f at once are allowed", n, span, rate, burst)
				return
			} else if over := n - burst - rate*span.Seconds(); over > worst {
				worst = over
			}
		}
	}
	t.Logf("at worst %.1f requests more than burst and rate allow", worst)
}

// atOnce is the greatest number of requests that were under way together. Those that a kill orphaned count until then:
// their sender is gone, though the receiver may not have seen it yet.
func atOnce(all []arrival, killed []time.Time) (most int) {
	type moment struct {
		at   time.Time
		step int
	}
	var moments []moment
	for _, a := range all {
		end := a.ended
		for _, k := range killed {
			if a.started.Before(k) && end.After(k) && end.Sub(k) < 2*time.Second {
				end = k
				break
			}
		}
		moments = append(moments, moment{a.started, 1}, moment{end, -1})
	}
	slices.SortFunc(moments, func(a, b moment) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.step - b.step // an end frees the slot for a beginning of the same moment
	})
	now := 0
	for _, m := range moments {
		now += m.step
		most = max(most, now)
	}
	return most
}
