//go:build (e2e || soak) && unix

package e2e

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"posthorn/domain/id"
	"posthorn/tools/schematest"
)

const secondHomeKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// twoHomes are two installations that share their tenants. The tenant of the test is in the first.
type twoHomes struct {
	*world        // of the first, and the client
	second *world // of the second
	web    [2]*process
	worker [2]*process
	urls   [2]string // of the databases
	admins [2]string // the same for a superuser
	list   string
	ports  [2]string
}

func newTwoHomes(t *testing.T) *twoHomes {
	t.Helper()
	var urls, admins [2]string
	for i := range urls {
		urls[i], admins[i] = schematest.CloneLogical(t)
	}
	return newTwoHomesOn(t, urls, admins)
}

// newTwoHomesOn runs them on databases that are given.
func newTwoHomesOn(t *testing.T, urls, admins [2]string) *twoHomes {
	t.Helper()
	h := &twoHomes{urls: urls, admins: admins, ports: [2]string{freePort(t), freePort(t)}}
	h.list = "POSTHORN_HOMES=eu1=http://127.0.0.1:" + h.ports[0] + ",eu2=http://127.0.0.1:" + h.ports[1]
	for i := range h.urls {
		key := masterKey
		if i == 1 {
			key = secondHomeKey
		}
		w := newWorldAt(
			t,
			[]string{"POSTHORN_DATABASE_URL=" + h.urls[i], "POSTHORN_MASTER_KEY=" + key, h.list, []string{"POSTHORN_HOME=eu1", "POSTHORN_HOME=eu2"}[i]},
			func(a *arrival) int {
				a.hold(150 * time.Millisecond) // so that requests are under way whenever something is killed
				return http.StatusOK
			},
		)
		w.open(h.urls[i])
		if i == 0 {
			h.world = w
		} else {
			h.second = w
		}
	}
	h.second.receiver = h.receiver
	for i := range h.web {
		h.start(i)
	}
	h.makeTenant()
	h.serveAt(h.web[0]) // programs keep the address that they have
	return h
}

// start runs the processes of a home.
func (h *twoHomes) start(i int) {
	w := []*world{h.world, h.second}[i]
	h.web[i] = w.launchAt(w.at, []string{"POSTHORN_ADDR=127.0.0.1:" + h.ports[i]}, []string{"web-eu1", "web-eu2"}[i], "web").serving()
	h.worker[i] = w.launch([]string{"worker-eu1", "worker-eu2"}[i], "worker").serving()
}

// kill ends both processes of a home as a power cut would, notes what can come twice, and starts them again. That is
// what was sent and not recorded in the home whose worker was killed. What is sent by the other is recorded there.
func (h *twoHomes) kill(i int, allowed hits) {
	h.web[i].kill()
	h.worker[i].kill()
	w := []*world{h.world, h.second}[i]
	// What the server had got from them ends there by itself.
	eventually(h.t, patience, "the database has noticed", func() bool {
		return w.ask("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ 'posthorn.*(web|worker|emit)' AND state <> 'idle'") == 0
	})
	if h.moved() == (i == 1) {
		allowed.underWay(w)
	}
	h.start(i)
}

// mover starts a command that moves the tenant.
func (h *twoHomes) mover(said *bytes.Buffer) *exec.Cmd {
	cmd := h.at.command(binary, "tenant", "move", h.tenant, "--to", "eu2")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, h.moveEnviron()...)
	cmd.Stdout, cmd.Stderr = said, said
	return cmd
}

// moveEnviron is the environment of the mover.
func (h *twoHomes) moveEnviron() []string {
	return append(slices.Clone(h.environ), "POSTHORN_DATABASE_URL="+h.admins[0], "POSTHORN_TO_DATABASE_URL="+h.admins[1], "POSTHORN_TO_MASTER_KEY="+secondHomeKey)
}

// moved is how many of the tenant's rows the second home has, once it is there.
func (h *twoHomes) moved() bool {
	return h.second.ask("SELECT count(*) FROM tenants WHERE id = $1 AND state = 'active'", h.tenantID()) == 1
}

func (h *twoHomes) tenantID() id.UUID {
	tenant, err := id.Tenant.Parse(h.tenant)
	if err != nil {
		h.t.Fatal(err)
	}
	return tenant
}

// TestATenantMovesThroughKills moves a tenant under load, while the mover, the home that it leaves and the home that it
// comes to are killed, each in a run of its own. Nothing is lost, what comes twice was under way at a kill, and the
// books of the new home balance.
func TestATenantMovesThroughKills(t *testing.T) {
	t.Parallel()
	for name, victim := range map[string]int{"the mover": -1, "the home that it leaves": 0, "the home that it comes to": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			moveThroughKills(newTwoHomes(t), victim)
		})
	}
}

func moveThroughKills(h *twoHomes, victim int) {
	t := h.t
	h.endpoint("/one", settings{"max_in_flight": 20})
	h.endpoint("/two", settings{"max_in_flight": 20})
	batch := make([]emission, 3000)
	for i := range batch {
		batch[i] = event("order.completed", i)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.emitAll(batch, 100, 8)
	}()
	eventually(t, patience, "events flow", func() bool { return len(h.acknowledgements()) > 500 })
	allowed := hits{}
	kills := 0
	for try := 0; !h.moved() || try == 0 || victim < 0 && kills < len(traces); try++ {
		var said bytes.Buffer
		cmd := h.mover(&said)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for running := true; running; {
			select {
			case <-ended:
				running = false
			case <-time.After(h.untilNext(victim, try)):
				switch {
				case victim < 0 && kills < len(traces) && h.reached(kills):
					kills++
					_ = cmd.Process.Kill()
				case victim >= 0 && kills < 3:
					kills++
					h.kill(victim, allowed)
					h.serveAt(h.web[0])
				}
			}
		}
		if try > 30 {
			t.Fatalf("the tenant has not moved: %s", said.String())
		}
	}
	var finished struct{ Rows int }
	command(t, h.moveEnviron(), h.at, &finished, "tenant", "move", h.tenant, "--to", "eu2", "--json")
	<-done
	allowed.late(h.world)
	if len(h.acknowledgements()) != len(batch) {
		t.Errorf("%d of %d events were acknowledged", len(h.acknowledgements()), len(batch))
	}
	first := h.sql
	h.sql = h.second.sql // where the tenant is
	took := h.settled(2*len(batch), patience)
	doubled := 0
	for _, n := range h.receiver.tally() {
		doubled += n - 1
	}
	t.Logf("%d kills; settled %v after the last acknowledgement; refusals by status %v; %d were under way at the kills, %d came twice", kills, took.Round(100*time.Millisecond), h.codes, allowed.total(), doubled)
	h.balanced(2)
	h.receiver.expect(h.acknowledgements(), everyPath("/one", "/two"), func(what string) int { return 1 + allowed[what] })
	var left int
	if err := first.QueryRow(context.Background(), "SELECT (SELECT count(*) FROM queue) + (SELECT count(*) FROM lanes) + (SELECT count(*) FROM tenants WHERE state <> 'deleted')").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows of the tenant are left where it was: %v", left, err)
	}
	for _, web := range h.web {
		if status, answer, err := h.call(http.MethodGet, web.url+"/api/v1/events", "", ""); err != nil || status != http.StatusOK {
			t.Errorf("at %s after the move: %d %s %v", web.name, status, answer, err)
		}
	}
	var replication int
	if err := first.QueryRow(context.Background(), "SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()) + (SELECT count(*) FROM pg_publication)").Scan(&replication); err != nil || replication != 0 {
		t.Errorf("%d slots and publications are left: %v", replication, err)
	}
}

// traces are those at which the mover is killed: as soon as a step has left its trace in one of the databases.
var traces = []struct {
	home  int
	trace string
}{
	{0, "SELECT count(*) FROM tenant_moves"},
	{0, "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"},
	{1, "SELECT count(*) FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid WHERE d.datname = current_database()"},
	{1, "SELECT count(*) FROM (SELECT FROM events LIMIT 1) x"},
	{0, "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'move\\_%'"},
	{0, "SELECT count(*) FROM tenant_moves WHERE cardinality(open_lanes) > 0"},
	{0, "SELECT count(*) FROM tenant_moves WHERE state = 'closed'"},
	{1, "SELECT count(*) FROM tenant_moves WHERE state = 'copied'"},
	{1, "SELECT count(*) FROM tenant_moves WHERE state = 'done'"},
	{0, "SELECT count(*) FROM moved_tenants"},
	{0, "SELECT count(*) FROM tenant_moves WHERE state = 'done'"},
}

// reached reports whether a move has come to a moment.
func (h *twoHomes) reached(trace int) bool {
	return []*world{h.world, h.second}[traces[trace].home].ask(traces[trace].trace) > 0
}

// untilNext is when a kill is considered next: of the mover, by its traces, and of a home, after a longer time with
// each try.
func (h *twoHomes) untilNext(victim, try int) time.Duration {
	if victim < 0 {
		return time.Millisecond
	}
	return time.Duration(500+700*try) * time.Millisecond
}

// underWay notes what has been sent and not recorded: each such delivery can come once more than it has.
func (h hits) underWay(w *world) {
	w.t.Helper()
	open := w.undelivered()
	for what, n := range w.receiver.tally() {
		if open[what] {
			h[what] = n
		}
	}
}

// TestABrokenOffMoveIsToldAndEnds kills the mover in the last step, when the tenant is closed, and starts it no more.
// The workers tell the operators, and the command that the alert names ends the move: the tenant works as before, and
// no slot, publication or subscription is left that keeps the log of a server.
func TestABrokenOffMoveIsToldAndEnds(t *testing.T) {
	t.Parallel()
	h := newTwoHomes(t)
	h.endpoint("/one", settings{"max_in_flight": 20})
	h.emitAll([]emission{event("order.completed", 1)}, 1, 1)
	var said bytes.Buffer
	cmd := h.mover(&said)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	eventually(t, patience, "the move closes the tenant", func() bool { return h.reached(6) })
	_ = cmd.Process.Kill()
	<-ended
	if h.moved() {
		t.Fatal("the move ended before it was killed")
	}
	replication := func(w *world) int {
		return w.ask(`SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()) + (SELECT count(*) FROM pg_publication)
			+ (SELECT count(*) FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid WHERE d.datname = current_database())`)
	}
	if replication(h.world) == 0 {
		t.Fatal("the killed move has left nothing that could keep the log")
	}
	type alert struct{ Kind, Status, Title, Message string }
	var alerts []alert
	eventually(t, 6*time.Minute, "the operators are told", func() bool {
		command(t, h.environ, h.at, &alerts, "platform", "alerts", "--json")
		return slices.ContainsFunc(alerts, func(a alert) bool { return a.Kind == "move_stopped" })
	})
	told := alerts[slices.IndexFunc(alerts, func(a alert) bool { return a.Kind == "move_stopped" })]
	for _, want := range []string{"accepts no events", "posthorn tenant move " + h.tenant + " --to eu2", "--rollback"} {
		if !strings.Contains(told.Title+told.Message, want) {
			t.Errorf("the alert lacks %q: %+v", want, told)
		}
	}
	rollback := h.at.command(binary, "tenant", "move", h.tenant, "--to", "eu2", "--rollback")
	rollback.Env = append([]string{"PATH=" + os.Getenv("PATH")}, h.moveEnviron()...)
	if out, err := rollback.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i, w := range []*world{h.world, h.second} {
		if n := replication(w) + w.ask("SELECT count(*) FROM tenant_moves"); n != 0 {
			t.Errorf("home %d: %d slots, publications, subscriptions and moves are left", i, n)
		}
	}
	if n := h.second.ask("SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM deliveries)"); n != 0 {
		t.Errorf("%d copied rows are left", n)
	}
	h.emitAll([]emission{event("order.completed", 2)}, 1, 1)
	h.settled(2, patience)
	h.receiver.expectOnce(h.acknowledgements(), everyPath("/one"))
}

// TestAMoveSurvivesItsDatabaseServers kills PostgreSQL of the home that a tenant leaves, or of the one that it comes
// to, again and again during a move under load, and then that of its new home while the other passes its events on.
// Nothing is lost, nothing comes twice, events are rejected with 503 and Retry-After, and accepted again unaided.
func TestAMoveSurvivesItsDatabaseServers(t *testing.T) {
	t.Parallel()
	for name, victim := range map[string]int{"of the home that it leaves": 0, "of the home that it comes to": 1} {
		if victim == 0 && !thorough {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var servers [2]*server
			var urls, admins [2]string
			for i := range servers {
				servers[i] = newServer(t, "127.0.0.1", freePort(t), place{}, "wal_level=logical", "wal_retrieve_retry_interval=500ms")
				servers[i].keep("wal_level=logical", "wal_retrieve_retry_interval=500ms")
				urls[i] = urlOf(servers[i])
				admins[i] = strings.Replace(urls[i], "posthorn@", "postgres@", 1)
			}
			h := newTwoHomesOn(t, urls, admins)
			moveThroughCrashes(h, servers, victim)
		})
	}
}

func moveThroughCrashes(h *twoHomes, servers [2]*server, victim int) {
	t := h.t
	h.durable()
	h.endpoint("/one", settings{"max_in_flight": 20})
	// Events come for as long as servers crash, however long this machine needs for it.
	crashed, done, emitted := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(done)
		for {
			select {
			case <-crashed:
				return
			case <-t.Context().Done():
				return
			default:
			}
			batch := make([]emission, 100)
			for i := range batch {
				batch[i] = event("order.completed", emitted+i)
			}
			emitted += len(batch)
			h.emitAll(batch, 100, 8)
		}
	}()
	eventually(t, patience, "events flow", func() bool { return len(h.acknowledgements()) > 300 })
	crashes := 0
	for try := 0; ; try++ {
		var said bytes.Buffer
		cmd := h.mover(&said)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var err error
		select {
		case err = <-ended:
		case <-time.After(time.Duration(200+250*try) * time.Millisecond):
			if crashes < 4 {
				crashes++
				servers[victim].crash()
			}
			err = <-ended
		}
		if err == nil {
			break
		}
		if try > 20 {
			t.Fatalf("the tenant has not moved: %s", said.String())
		}
	}
	h.crashWhilePassing(servers[1])
	close(crashed)
	<-done
	h.sql = h.second.sql // where the tenant is
	took := h.settled(emitted, patience)
	t.Logf("%d crashes during the move; settled %v after the last acknowledgement; refusals by status %v", crashes, took.Round(100*time.Millisecond), h.codes)
	if crashes == 0 {
		t.Error("the move ended before a server was killed")
	}
	if len(h.acknowledgements()) != emitted {
		t.Errorf("%d of %d events were acknowledged", len(h.acknowledgements()), emitted)
	}
	for _, p := range append(h.web[:], h.worker[:]...) {
		if !p.running() {
			t.Errorf("%s went down with a database", p.name)
		}
	}
	h.balanced(1)
	// Workers live through it and their results wait.
	h.receiver.expectOnce(h.acknowledgements(), everyPath("/one"))
}

// crashWhilePassing kills the server of the home that has the tenant, and sends events to the other home.
func (h *twoHomes) crashWhilePassing(s *server) {
	t := h.t
	emit := func() (status int, after string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.web[0].url+"/api/v1/events", strings.NewReader(`{"type":"nobody.listens","data":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+h.key)
		req.Header.Set("Content-Type", "application/json")
		started := time.Now()
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("a response took %v", took)
		}
		return res.StatusCode, res.Header.Get("Retry-After")
	}
	s.halt()
	status, after := emit()
	if status != http.StatusServiceUnavailable || after == "" {
		t.Errorf("while the database is down: %d, Retry-After %q", status, after)
	}
	s.start()
	h.second.sql.Reset()
	back, acked := time.Now(), len(h.acknowledgements())
	eventually(t, patience, "events are accepted again", func() bool { return len(h.acknowledgements()) > acked })
	t.Logf("events are accepted through the other home %v after the server has started", time.Since(back).Round(10*time.Millisecond))
}

// keep writes settings of a server for its next starts.
func (s *server) keep(settings ...string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteString("\n" + strings.Join(settings, "\n") + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

// crash is a power cut of a server, and its restart.
func (s *server) crash() {
	s.t.Helper()
	s.halt()
	s.start()
}

// halt kills a server with all of its processes, and waits until none is left.
func (s *server) halt() {
	s.t.Helper()
	parent := s.cmd.Process.Pid
	children := func() (all []int) {
		files, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // it has ended
			}
			_, rest, _ := strings.Cut(string(text), ") ")
			fields := strings.Fields(rest)
			pid, err := strconv.Atoi(strings.Split(file, "/")[2])
			if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
				all = append(all, pid)
			}
		}
		return all
	}
	before := children()
	s.kill()
	for _, pid := range before {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	eventually(s.t, patience, "the server has no process left", func() bool {
		for _, pid := range before {
			if syscall.Kill(pid, 0) == nil {
				return false
			}
		}
		return true
	})
}
