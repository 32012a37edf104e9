//go:build (e2e || soak) && unix

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestManyWorkersShareTheWork: several workers and web processes on one database deliver everything exactly once, and
// each of them has a part in it.
func TestManyWorkersShareTheWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ workers, webs int }{{4, 2}, {2, 1}} {
		if c.webs == 1 && !thorough {
			continue
		}
		t.Run(fmt.Sprintf("%d workers", c.workers), func(t *testing.T) {
			const (
				events = 4000
				lanes  = 40
			)
			w := newWorld(t, func(a *arrival) int { a.hold(20 * time.Millisecond); return 200 })
			var webs, workers []*process
			for i := range c.webs {
				webs = append(webs, w.launch(fmt.Sprintf("web-%d", i), "web").ready())
			}
			for i := range c.workers {
				workers = append(workers, w.launch(fmt.Sprintf("worker-%d", i), "worker").ready())
			}
			w.serveAt(webs...)
			path := func(i int) string { return fmt.Sprintf("/%d", i%lanes) }
			for i := range lanes {
				w.endpoint(path(i), settings{"event_types": []string{fmt.Sprintf("type.%d", i)}})
			}
			where := map[string]string{}
			batch := make([]emission, events)
			for i := range batch {
				batch[i] = event(fmt.Sprintf("type.%d", i%lanes), i)
				where[batch[i].idemp] = path(i)
			}
			started := time.Now()
			w.emitAll(batch, 250, 32)
			w.settled(events, 30*time.Second)
			t.Logf("%d events in %v", events, time.Since(started).Round(100*time.Millisecond))
			w.receiver.expectOnce(w.acknowledgements(), func(key string) []string { return []string{where[key]} })
			w.balanced(1)
			if n := w.ask("SELECT count(*) FROM attempts WHERE NOT late AND number = 1"); n != events {
				t.Errorf("%d first attempts are on record for %d events", n, events)
			}
			sum := 0.0
			for _, p := range workers {
				n := p.metric("attempts_total")
				sum += n
				t.Logf("%s made %.0f attempts", p.name, n)
				// A fair share of lanes, reached within the first seconds: a quarter of an equal part is little.
				if n < events/float64(c.workers)/4 {
					t.Errorf("%s made %.0f of %d attempts: it was starved", p.name, n, events)
				}
			}
			if sum != events {
				t.Errorf("the workers count %.0f attempts", sum)
			}
		})
	}
}
