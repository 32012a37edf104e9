//go:build (e2e || soak) && unix

package e2e

import (
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestAFailoverLosesNothingThatWasAcknowledged kills a primary whose replica is synchronous, promotes the replica, and
// expects everything that was acknowledged there. Before that the replica is stuck for a while: nothing is acknowledged
// that it does not have, not even a second request under the same key.
func TestAFailoverLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	primary := newServer(t, "127.0.0.1", freePort(t), place{})
	replica := primary.newStandby("replica", "127.0.0.1", freePort(t), "synchronous_standby_names=")
	primary.ask("ALTER SYSTEM SET synchronous_standby_names = 'replica'")
	primary.ask("SELECT pg_reload_conf()")
	eventually(t, patience, "the replica is synchronous", func() bool {
		return primary.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
	})
	// Both are named, in the order in which they were made: Posthorn finds the one that can be written.
	w := newWorldAt(t, []string{"POSTHORN_DATABASE_URL=" + urlOf(primary, replica), "POSTHORN_MASTER_KEY=" + masterKey}, func(a *arrival) int {
		a.hold(50 * time.Millisecond)
		return http.StatusOK
	})
	web, worker := w.launch("web", "web").ready(), w.launch("worker", "worker").ready()
	w.serveAt(web)
	w.open(urlOf(primary, replica) + "&target_session_attrs=read-write")
	w.makeTenant()
	w.endpoint("/hook", settings{"max_in_flight": 20})

	receiver, err := strconv.Atoi(replica.ask("SELECT pid FROM pg_stat_wal_receiver"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(receiver, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume := sync.OnceFunc(func() { _ = syscall.Kill(receiver, syscall.SIGCONT) })
	defer resume()
	body := `{"type":"order.completed","data":{"n":0}}`
	for try := range 2 {
		status, answer, err := w.call(http.MethodPost, web.url+"/api/v1/events", body, "stuck")
		if err != nil || status != http.StatusServiceUnavailable {
			t.Errorf("try %d while the replica is stuck: %d %s %v", try+1, status, answer, err)
		}
	}
	resume()
	w.emit(emission{Type: "order.completed", Data: payload{N: 0}, idemp: "after"})

	const perSecond = 100
	batch := make([]emission, perSecond*12)
	for i := range batch {
		batch[i] = event("order.completed", i+1)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.emitAll(batch, perSecond, 40)
	}()
	eventually(t, patience, "events flow", func() bool { return len(w.acknowledgements()) >= 3*perSecond && w.receiver.busy() > 0 })
	killed := primary.kill()
	acked := w.acknowledgements()
	if told := replica.ask("SELECT pg_promote()"); told != "t" && told != "\x01" {
		t.Fatalf("the replica was not promoted: %q", told)
	}
	promoted := time.Now()
	w.sql.Reset()
	eventually(t, 15*time.Second, "events are accepted again", func() bool { return len(w.acknowledgements()) > len(acked)+20 })
	t.Logf("promoted %v after the kill, events were accepted %v later", promoted.Sub(killed).Round(10*time.Millisecond), time.Since(promoted).Round(10*time.Millisecond))
	<-done
	// One more than was acknowledged may be there: the event that was refused while the replica was stuck.
	stored := w.ask("SELECT count(*) FROM events")
	w.settled(stored, 45*time.Second)
	known := map[string]bool{}
	for _, a := range w.receiver.seen() {
		known[a.id] = true
	}
	for key, id := range w.acknowledgements() {
		if !known[id] {
			t.Errorf("event %s = %s was acknowledged and never arrived", key, id)
		}
	}
	if extra := stored - len(w.acknowledgements()); extra < 0 || extra > 1 {
		t.Errorf("%d events are stored, %d were acknowledged", stored, len(w.acknowledgements()))
	}
	tally, doubled := w.receiver.tally(), 0
	for _, n := range tally {
		doubled += n - 1
	}
	// The worker lives through it and its results wait: nothing is sent twice.
	if doubled != 0 {
		t.Errorf("%d events arrived twice", doubled)
	}
	for _, p := range []*process{web, worker} {
		if !p.running() {
			t.Errorf("%s went down with the primary", p.name)
		}
	}
}

// TestAPrimaryThatComesBackIsRefused lets the old primary run again after its replica was promoted. Both accept writes
// now. A process that has seen the new timeline connects to the old server no more, although its URL names it first.
func TestAPrimaryThatComesBackIsRefused(t *testing.T) {
	t.Parallel()
	primary := newServer(t, "127.0.0.1", freePort(t), place{})
	replica := primary.newStandby("replica", "127.0.0.1", freePort(t))
	eventually(t, patience, "the replica follows", func() bool {
		return primary.ask("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == "1"
	})
	w := newWorldAt(t, []string{"POSTHORN_DATABASE_URL=" + urlOf(primary, replica), "POSTHORN_MASTER_KEY=" + masterKey}, nil)
	web := w.launch("web", "web").ready()
	w.serveAt(web)
	w.open(urlOf(primary, replica) + "&target_session_attrs=read-write")
	w.makeTenant()
	w.emit(event("order.completed", 0))
	eventually(t, patience, "the replica has the event", func() bool {
		return replica.ask(`SELECT pg_last_wal_replay_lsn() >= '`+primary.ask("SELECT pg_current_wal_lsn()")+`'`) == "t"
	})
	primary.kill()
	if told := replica.ask("SELECT pg_promote()"); told != "t" && told != "\x01" {
		t.Fatalf("the replica was not promoted: %q", told)
	}
	w.sql.Reset()
	w.emit(event("order.completed", 1))
	primary.start()
	before := primary.askIn("posthorn", "SELECT count(*) FROM posthorn.events")
	// Each connection is a new one, so that each could have gone to the server that is named first.
	for i := 2; i < 30; i++ {
		replica.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'posthorn%'")
		w.emit(event("order.completed", i))
	}
	if after := primary.askIn("posthorn", "SELECT count(*) FROM posthorn.events"); after != before {
		t.Errorf("the old primary has %s events, it had %s", after, before)
	}
	if n := replica.askIn("posthorn", "SELECT count(*) FROM posthorn.events"); n != "30" {
		t.Errorf("the new primary has %s of 30 events", n)
	}
}
