//go:build soak && unix

package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"posthorn/db/embedded"
)

// TestSoak lets faults of all kinds happen to an installation, one every half minute or so, for as long as
// POSTHORN_SOAK says (1h, 90m): make soak SOAK=2h. It reports its totals.
func TestSoak(t *testing.T) {
	t.Parallel()
	lasting := soaking(t)
	const lanes, perSecond = 20, 50
	dir := dataDir(t)
	cluster, err := embedded.Start(context.Background(), embedded.Config{
		DataDir: dir,
		Log:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close(context.Background()) })
	w := newWorldAt(t, []string{"POSTHORN_DATABASE_URL=" + cluster.URL(), "POSTHORN_MASTER_KEY=" + masterKey}, func(a *arrival) int {
		a.hold(time.Duration(a.data.N%50) * 10 * time.Millisecond)
		if a.nth == 1 && a.data.N%97 == 0 {
			return 503
		}
		return 200
	})
	webs := []*process{w.launch("web-0", "web").ready(), w.launch("web-1", "web").ready()}
	workers := []*process{w.launch("worker-0", "worker").ready(), w.launch("worker-1", "worker").ready(), w.launch("worker-2", "worker").ready()}
	w.serveAt(webs...)
	w.open(cluster.URL())
	w.makeTenant()
	path := func(i int) string { return fmt.Sprintf("/%d", i%lanes) }
	for i := range lanes {
		w.endpoint(path(i), settings{"event_types": []string{fmt.Sprintf("type.%d", i)}, "retry_policy": settings{"name": "custom", "delays": []int{1, 2, 4, 8, 16}}})
	}
	stop := make(chan struct{})
	var emitting sync.WaitGroup
	where, events := map[string]string{}, 0
	emitting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			batch := make([]emission, perSecond)
			for i := range batch {
				batch[i] = event(fmt.Sprintf("type.%d", events%lanes), events)
				where[batch[i].idemp] = path(events)
				events++
			}
			w.emitAll(batch, perSecond, 16)
		}
	})
	h := hits{}
	faults := []struct {
		name string
		do   func()
	}{
		{"a worker is killed", func() {
			i := rand.IntN(len(workers))
			workers[i].kill()
			h.after(w, time.Now())
			workers[i] = w.launch(workers[i].name, "worker").ready()
		}},
		{"a worker is frozen", func() {
			p := workers[rand.IntN(len(workers))]
			p.signal(syscall.SIGSTOP)
			h.after(w, time.Now())
			time.Sleep(45 * time.Second) // the fault
			p.signal(syscall.SIGCONT)
			p.ready()
		}},
		{"a worker is replaced", func() {
			i := rand.IntN(len(workers))
			if code := workers[i].stop(); code != 0 {
				t.Errorf("%s stopped with %d", workers[i].name, code)
			}
			workers[i] = w.launch(workers[i].name, "worker").ready()
		}},
		{"a web process is killed", func() {
			i := rand.IntN(len(webs))
			webs[i].kill()
			webs[i] = w.launch(webs[i].name, "web").ready()
			w.serveAt(webs...)
		}},
		{"the postmaster is killed", func() {
			pid := cluster.PID()
			_ = syscall.Kill(pid, syscall.SIGKILL)
			eventually(t, patience, "another postmaster serves", func() bool {
				w.sql.Reset()
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				return cluster.PID() != pid && w.sql.Ping(ctx) == nil
			})
		}},
	}
	started, happened := time.Now(), map[string]int{}
	for time.Since(started) < lasting {
		f := faults[rand.IntN(len(faults))]
		t.Logf("%v, %d acknowledged: %s", time.Since(started).Round(time.Second), len(w.acknowledgements()), f.name)
		f.do()
		happened[f.name]++
		time.Sleep(time.Duration(5+rand.IntN(30)) * time.Second) // between faults
	}
	close(stop)
	emitting.Wait()
	w.settled(events, 5*time.Minute)
	t.Logf("totals of %v:\n%s", lasting, totalsOf(started, w.receiver.seen(), w.acknowledgements(), where, happened))
	w.balanced(1)
	// A 503 on the first arrival makes a second one.
	w.receiver.expect(
		w.acknowledgements(),
		func(key string) []string { return []string{where[key]} },
		func(what string) int { return 2 + h[what] },
	)
	if n := w.ask("SELECT count(*) FROM deliveries WHERE status <> 2"); n != 0 {
		t.Errorf("%d of %d deliveries did not end as delivered", n, events)
	}
}
