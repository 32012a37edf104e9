package api_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/tools/schematest"
)

// longestWait bounds the wait for a 503 (SECURITY, "Faults"), with a little more for a busy machine.
const longestWait = 6 * time.Second

func TestWithoutADatabaseThereIs503UntilItRecovers(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"refuses", "says nothing"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			database := schematest.Clone(t)
			line := newLine(t, database, func(sql string) string { return sql })
			w := startWorld(t, t.Cleanup, database, line.url)
			w.Run(w.auth.Run)
			acme := w.tenant("Acme")
			frozen := watchMachine(t)
			calls := map[string]func() *answer{
				"emit":   func() *answer { return w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":1}`) },
				"batch":  func() *answer { return w.do("POST", "/api/v1/events/batch", acme.key, `[{"type":"a","data":1}]`) },
				"list":   func() *answer { return w.do("GET", "/api/v1/events", acme.key, nil) },
				"read":   func() *answer { return w.do("GET", "/api/v1/events/"+id.Event.Format(db.NewID()), acme.key, nil) },
				"change": func() *answer { return w.do("PATCH", "/api/v1/tenant", acme.key, `{"name":"B"}`) },
			}
			for _, call := range calls {
				call()
			}
			line.cut(fault == "says nothing")
			for round := range 2 { // the first key is possibly cached, the second is not
				var all sync.WaitGroup
				for name, call := range calls {
					all.Go(func() {
						began, stood := time.Now(), frozen()
						a := call()
						if took := time.Since(began) - (frozen() - stood); took > longestWait {
							t.Errorf("%s, round %d: an answer after %s", name, round, took)
						}
						if a.Status != 503 || a.Header.Get("Retry-After") == "" {
							t.Errorf("%s, round %d: %d %s %s", name, round, a.Status, a.Header.Get("Retry-After"), a.Body)
						}
					})
				}
				all.Wait()
			}
			line.fix()
			for healed := time.Now(); ; {
				if calls["emit"]().Status == 202 && calls["list"]().Status == 200 {
					break
				}
				if time.Since(healed) > 10*time.Second {
					t.Fatal("not healed after ten seconds")
				}
			}
		})
	}
}

// watchMachine adds up how long the whole machine stopped, as virtual machines do at times. That time is no part of
// the measurement.
func watchMachine(t *testing.T) (frozen func() time.Duration) {
	t.Helper()
	var sum atomic.Int64
	tick := time.NewTicker(20 * time.Millisecond)
	t.Cleanup(tick.Stop)
	go func() {
		for last := time.Now(); t.Context().Err() == nil; {
			select {
			case <-tick.C:
			case <-t.Context().Done():
			}
			if gap := time.Since(last); gap > time.Second {
				sum.Add(int64(gap))
			}
			last = time.Now()
		}
	}()
	return func() time.Duration { return time.Duration(sum.Load()) }
}
