//go:build (e2e || soak) && unix

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"posthorn/tools/need"
)

// pooler is a PgBouncer in transaction mode before a server.
type pooler struct {
	t    *testing.T
	dir  string
	port string
	cmd  *exec.Cmd
	log  *lines
}

const pooledConnections = 5 // to the server: fewer than Posthorn has to the pooler, so that they are shared

func newPooler(t *testing.T, s *server) *pooler {
	t.Helper()
	need.Programs(t, "pgbouncer")
	p := &pooler{t: t, dir: folder(t), port: freePort(t)}
	text := pageSettings(t, [][2]string{
		{"host=db.internal port=5432", fmt.Sprintf("host=%s port=%s", s.host, s.port)},
		{"listen_addr = 0.0.0.0", "listen_addr = 127.0.0.1"},
		{"listen_port = 6432", "listen_port = " + p.port},
		{"auth_type = scram-sha-256", "auth_type = trust"},
		{"/etc/pgbouncer/userlist.txt", filepath.Join(p.dir, "users")},
		{"default_pool_size = 40", "default_pool_size = " + strconv.Itoa(pooledConnections)},
	})
	for name, content := range map[string]string{"pgbouncer.ini": text, "users": `"posthorn" ""` + "\n"} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.start()
	return p
}

// pageSettings is the pgbouncer.ini of docs/ops/deploy.md with what differs here; each of these is in the page.
func pageSettings(t *testing.T, here [][2]string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "ops", "deploy.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, settings, found := strings.Cut(string(page), "\n```ini\n")
	if settings, _, _ = strings.Cut(settings, "```"); !found || !strings.Contains(settings, "tcp_user_timeout") {
		t.Fatalf("the page has no settings: %q", settings)
	}
	if !strings.Contains(settings, "server_login_retry = 1\n") {
		t.Fatal("after an outage of the database the pooler would wait 15 s before it tries again")
	}
	for _, one := range here {
		if strings.Count(settings, one[0]) != 1 {
			t.Fatalf("the page's settings do not have %q once: %q", one[0], settings)
		}
		settings = strings.Replace(settings, one[0], one[1], 1)
	}
	return settings
}

func (p *pooler) start() {
	p.t.Helper()
	p.log = newLines(p.t, "pgbouncer")
	p.cmd = place{who: unprivileged(p.t)}.command("pgbouncer", filepath.Join(p.dir, "pgbouncer.ini"))
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	cmd, log := p.cmd, p.log
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.end()
		if p.t.Failed() {
			p.t.Logf("pgbouncer said at last:\n%s", log.tail(20))
		}
	})
	p.log.await(p.t, "process up")
}

func (p *pooler) url() string {
	return "postgres://posthorn@127.0.0.1:" + p.port + "/posthorn?sslmode=disable"
}

// TestEverythingWorksBehindAPooler: PgBouncer in transaction mode stands before the server, and one direct connection a
// process hears the announcements. The pooler is killed in the middle of it.
func TestEverythingWorksBehindAPooler(t *testing.T) {
	t.Parallel()
	postgres := newServer(t, "127.0.0.1", freePort(t), place{})
	bouncer := newPooler(t, postgres)
	// Without the direct URL the start says what is missing.
	alone := launch(t, "alone", []string{"POSTHORN_DATABASE_URL=" + bouncer.url(), "POSTHORN_MASTER_KEY=" + masterKey}, place{}, "serve")
	select {
	case <-alone.ended:
	case <-time.After(patience):
		t.Fatal("a process that knows the pooler alone neither runs nor ends")
	}
	if said := alone.log.tail(10); !strings.Contains(said, "POSTHORN_DATABASE_LISTEN_URL") {
		t.Errorf("with the pooler alone it says\n%s", said)
	}
	w := newWorldAt(t, []string{
		"POSTHORN_DATABASE_URL=" + bouncer.url(), "POSTHORN_DATABASE_LISTEN_URL=" + urlOf(postgres), "POSTHORN_MASTER_KEY=" + masterKey,
	}, func(a *arrival) int {
		switch {
		case a.path == "/fails" && a.attempt == "1" && a.data.N%5 == 0: // too few in a row to open the breaker
			return http.StatusServiceUnavailable
		case a.path == "/rejects" && a.attempt == "1" && a.nth == 1:
			return http.StatusBadRequest
		}
		return http.StatusOK
	})
	web := w.launch("web", "web").ready()
	workers := []*process{w.launch("worker-0", "worker").ready(), w.launch("worker-1", "worker").ready()}
	w.serveAt(web)
	w.open(urlOf(postgres))
	w.makeTenant()
	orders := []string{"order.*"}
	paths := []string{"/all", "/fails", "/keyed"}
	w.endpoint("/all", settings{"event_types": orders})
	w.endpoint("/fails", settings{"event_types": orders, "retry_policy": settings{"name": "custom", "delays": []int{1}}})
	w.endpoint("/keyed", settings{"event_types": orders, "ordering": "key"})
	w.endpoint("/rejects", settings{"event_types": []string{"rejected"}})
	w.endpoint("/prompt", settings{"event_types": []string{"prompt"}})

	const perSecond = 100
	batch := make([]emission, perSecond*8)
	for i := range batch {
		batch[i] = emission{Type: "order.completed", Key: fmt.Sprintf("key-%d", i%5), Data: payload{N: i}, idemp: fmt.Sprintf("order-%d", i)}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.emitAll(batch, perSecond, 20)
	}()
	eventually(t, patience, "events flow", func() bool { return len(w.acknowledgements()) >= 3*perSecond })
	if err := bouncer.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = bouncer.cmd.Wait()
	bouncer.start()
	back, acked := startWatch(), len(w.acknowledgements())
	eventually(t, 10*time.Second, "events are accepted again", func() bool { return len(w.acknowledgements()) > acked+20 })
	t.Logf("accepted again %v after the pooler was back; refusals by status %v", back.passed().Round(10*time.Millisecond), w.codes)
	<-done
	w.settled(len(batch)*len(paths), 45*time.Second)
	w.balanced(len(paths))
	w.receiver.expect(w.acknowledgements(), everyPath(paths...), func(what string) int {
		if strings.HasPrefix(what, "/fails") {
			return 2
		}
		return 1
	})
	w.announced(t)
	w.replayed(t)
	// They were shared: all processes together have 22 connections to the pooler, and it has these to the server.
	if n := w.ask("SELECT count(*) FROM pg_stat_activity WHERE usename = 'posthorn' AND client_port IS NOT NULL AND application_name LIKE 'posthorn%' AND application_name <> 'posthorn listen'"); n > pooledConnections {
		t.Errorf("%d connections came through the pooler, which has %d", n, pooledConnections)
	}
	for _, p := range append(workers, web) {
		if n := p.log.count("prepared statement"); n != 0 {
			t.Errorf("%s complains of prepared statements %d times", p.name, n)
		}
	}
	ready := func() bool { return status(web.metrics+"/readyz") == http.StatusOK }
	postgres.kill()
	eventually(t, patience, "the process is not ready without a database", func() bool { return !ready() })
	postgres.start()
	back = startWatch()
	eventually(t, patience, "the process is ready again", ready)
	// The pooler tries again each second (server_login_retry), and so does the process.
	if took := back.passed(); took > 4*time.Second {
		t.Errorf("it was ready %v after the database was back", took)
	}
}

// announced checks that a commit is heard over the direct connection: without it a delivery waits for the walk, up to a
// second.
func (w *world) announced(t *testing.T) {
	t.Helper()
	var waits []time.Duration
	for i := range 10 {
		emitted, seen := time.Now(), w.receiver.count()
		w.emit(event("prompt", i))
		eventually(t, patience, "the event arrives", func() bool { return w.receiver.count() > seen })
		waits = append(waits, time.Since(emitted))
	}
	prompt := 0
	for _, d := range waits {
		if d < 300*time.Millisecond {
			prompt++
		}
	}
	if prompt < 7 {
		t.Errorf("of ten events %d arrived within 300 ms: %v", prompt, waits)
	}
}

// replayed has a dead letter made and replayed, by a bulk job.
func (w *world) replayed(t *testing.T) {
	t.Helper()
	w.emit(event("rejected", 1))
	eventually(t, patience, "the delivery is a dead letter", func() bool { return w.ask("SELECT count(*) FROM dead_letters") == 1 })
	w.manage(http.MethodPost, "/replays", settings{"filter": settings{"status": "failed"}, "reason": "the receiver is fixed"}, nil)
	eventually(t, patience, "the replay is delivered", func() bool {
		return w.ask("SELECT count(*) FROM deliveries WHERE replay_of IS NOT NULL AND status = 2") == 1
	})
}
