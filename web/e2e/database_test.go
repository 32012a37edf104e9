//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"posthorn/db/embedded"
)

// postmaster is the process id of a private server.
func postmaster(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

func (w *world) durable() {
	w.t.Helper()
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := w.sql.QueryRow(context.Background(), "SELECT current_setting($1)", name).Scan(&value); err != nil || value != "on" {
			w.t.Errorf("%s is %q: what is acknowledged would not be durable (%v)", name, value, err)
		}
	}
	if n := w.ask("SELECT count(*) FROM pg_db_role_setting, unnest(setconfig) c WHERE c ~ 'fsync|synchronous_commit|full_page_writes'"); n != 0 {
		w.t.Errorf("%d settings of roles or databases change what is durable", n)
	}
}

// TestAKilledPostmasterHealsUnaided kills the database server under load: refusals come in time, events are accepted
// again within 10 s, and nothing that was acknowledged is lost.
func TestAKilledPostmasterHealsUnaided(t *testing.T) {
	t.Parallel()
	w, dir, serve := newPrivateWorld(t, nil)
	w.durable()
	w.endpoint("/hook", settings{"max_in_flight": 20})
	n := max(kills(t)/2, 1)
	batch := make([]emission, 100*5*(n+1))
	for i := range batch {
		batch[i] = event("order.completed", i)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.emitAll(batch, 100, 40)
	}()
	for k := range n {
		before := len(w.acknowledgements())
		eventually(t, patience, "events flow", func() bool { return len(w.acknowledgements()) >= before+200 })
		pid := postmaster(dir)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		// Another one is started at once. How long it recovers is up to PostgreSQL and the disk.
		eventually(t, 10*time.Second, "another postmaster runs", func() bool { return postmaster(dir) > 0 && postmaster(dir) != pid })
		eventually(t, patience, "the database is there again", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return w.sql.Ping(ctx) == nil
		})
		up := time.Now()
		acked := len(w.acknowledgements())
		eventually(t, 10*time.Second, "events are accepted again", func() bool { return len(w.acknowledgements()) > acked+20 })
		t.Logf("kill %d: the database was back after %v, events were accepted after %v", k+1, up.Sub(killed).Round(10*time.Millisecond), time.Since(killed).Round(10*time.Millisecond))
	}
	<-done
	took := w.settled(len(batch), 30*time.Second)
	t.Logf("settled %v after the last acknowledgement; refusals by status %v, the slowest after %v", took.Round(10*time.Millisecond), w.codes, w.slow.Round(10*time.Millisecond))
	if w.slow > refusedWithin {
		t.Errorf("a refusal took %v; %v are promised", w.slow, refusedWithin)
	}
	if !serve.running() || w.codes[0] != 0 {
		t.Errorf("the process went down with its database: %d requests had no answer", w.codes[0])
	}
	w.durable()
	w.balanced(1)
	// The worker lives through it and its results wait: nothing is sent twice.
	w.receiver.expectOnce(w.acknowledgements(), everyPath("/hook"))
}

// TestADatabaseOutageRefusesAndHeals takes an operator's database away for 10 s.
func TestADatabaseOutageRefusesAndHeals(t *testing.T) {
	t.Parallel()
	const outage = 10 * time.Second
	dir := dataDir(t)
	start := func() *embedded.Cluster {
		c, err := embedded.Start(context.Background(), embedded.Config{
			DataDir: dir,
			Log:     slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	cluster := start()
	t.Cleanup(func() { _ = cluster.Close(context.Background()) })
	w := newWorldAt(t, []string{"POSTHORN_DATABASE_URL=" + cluster.URL(), "POSTHORN_MASTER_KEY=" + masterKey}, func(a *arrival) int {
		a.hold(200 * time.Millisecond)
		return 200
	})
	web, worker := w.launch("web", "web").ready(), w.launch("worker", "worker").ready()
	w.serveAt(web)
	w.open(cluster.URL())
	w.makeTenant()
	w.endpoint("/hook", settings{"max_in_flight": 30})
	batch := make([]emission, 100*25)
	for i := range batch {
		batch[i] = event("order.completed", i)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.emitAll(batch, 100, 40)
	}()
	eventually(t, patience, "events flow", func() bool { return len(w.acknowledgements()) >= 300 && w.receiver.busy() > 0 })
	if err := cluster.Close(context.Background()); err != nil {
		t.Log(err)
	}
	gone := time.Now()
	for _, p := range []*process{web, worker} {
		eventually(
			t,
			10*time.Second,
			p.name+" says that it is not ready",
			func() bool { return status(p.metrics+"/readyz") == http.StatusServiceUnavailable },
		)
		if s := status(p.metrics + "/healthz"); s != http.StatusOK {
			t.Errorf("%s: healthz says %d; a supervisor would restart what only waits", p.name, s)
		}
	}
	time.Sleep(time.Until(gone.Add(outage))) // the outage itself
	back, acked := time.Now(), len(w.acknowledgements())
	cluster = start()
	w.sql.Reset()
	eventually(t, 10*time.Second, "events are accepted again", func() bool { return len(w.acknowledgements()) > acked })
	healed := time.Since(back)
	if healed > 10*time.Second {
		t.Errorf("events were accepted only %v after the database began to start; 10 s are promised", healed)
	}
	<-done
	took := w.settled(len(batch), 30*time.Second)
	t.Logf("down for %v, healed after %v, settled %v after the last acknowledgement; refusals by status %v, the slowest after %v",
		back.Sub(gone).Round(time.Second), healed.Round(10*time.Millisecond), took.Round(10*time.Millisecond), w.codes,
		w.slow.Round(10*time.Millisecond))
	if w.codes[http.StatusServiceUnavailable] == 0 {
		t.Error("nothing was refused: the outage was none")
	}
	if w.slow > refusedWithin {
		t.Errorf("a refusal took %v; %v are promised", w.slow, refusedWithin)
	}
	for _, p := range []*process{web, worker} {
		if !p.running() {
			t.Errorf("%s went down with its database", p.name)
		}
	}
	w.balanced(1)
	w.receiver.expectOnce(w.acknowledgements(), everyPath("/hook"))
}
