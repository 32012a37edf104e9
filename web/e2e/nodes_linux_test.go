//go:build e2e || soak

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The lanes of an installation of several nodes.
const (
	plainLanes = 18 // half of them at the receiver that is cut off
	farLanes   = plainLanes / 2
	nodesRate  = 15
	nodesBurst = 8
	nodesSlow  = 3
	nodesKeys  = 3
)

// What a fault may double: what was sent and not recorded when it came. A worker that loses its database notices by the
// first result that it can't record, within a second (worker/record.go); the rest is a busy machine's.
const (
	noticeCut  = 2500 * time.Millisecond
	noticeHalt = 500 * time.Millisecond // arrivals of requests that were on their way
	recording  = 2 * time.Second        // until the result of an answer is on record, on a busy machine
)

// cutOff is a fault and whose arrivals it may double.
type cutOff struct {
	what    string
	from    *node
	began   time.Time
	notice  time.Duration
	doubled int
}

// nodes is an installation of several machines.
type nodes struct {
	*world
	l          *lan
	db         *node
	near, far  *node // receivers
	machines   map[string]*node
	running    map[string]*process
	faults     []*cutOff
	where      sync.Map // path by idempotency key
	stop       chan struct{}
	emitters   sync.WaitGroup
	emitted    atomic.Int64
	milestones []string
}

// TestSeveralNodesLoseNothing: two web and three worker processes, each on a machine of its own, while machines are
// added, stopped, killed, frozen and cut off from the database or from receivers. Run after run nothing is lost, only
// what was under way at a cut is doubled, and rate, concurrency and order hold at the receivers.
func TestSeveralNodesLoseNothing(t *testing.T) {
	t.Parallel()
	for run := range times(t, "POSTHORN_E2E_RUNS", 1) {
		t.Run(fmt.Sprint(run+1), func(t *testing.T) {
			t.Parallel()
			n := newNodes(t)
			n.emit()
			n.join()
			// The second run freezes the worker that the first kills, and who is cut off changes.
			victims := []string{"worker-0", "worker-1", "worker-2"}
			victims = append(victims[run%3:], victims[:run%3]...)
			n.cutAndHalt(victims[0], victims[1], victims[2], run%2 == 1)
			n.leave(victims[2])
			close(n.stop)
			n.emitters.Wait()
			n.settled(int(n.emitted.Load()), time.Minute)
			n.check()
		})
	}
}

// newNodes brings up the database, both web processes and two workers.
func newNodes(t *testing.T) *nodes {
	t.Helper()
	l := newLAN(t)
	n := &nodes{l: l, machines: map[string]*node{}, running: map[string]*process{}, stop: make(chan struct{})}
	n.near, n.far, n.db = l.node("near"), l.node("far"), l.node("db")
	for _, name := range []string{"web-0", "web-1", "worker-0", "worker-1", "worker-2"} {
		n.machines[name] = l.node(name)
	}
	l.reachedFrom(n.near)
	postgres := newServer(t, n.db.addr, "5432", n.db.place())
	near, far := n.near.listen(), n.far.listen()
	r := newReceiver(t, near, func(a *arrival) int {
		if a.path == "/slow" {
			a.hold(200 * time.Millisecond)
		} else {
			a.hold(time.Duration(10+a.data.N%5*10) * time.Millisecond)
		}
		return http.StatusOK
	}, far)
	n.world = newWorldOf(t, []string{
		"POSTHORN_DATABASE_URL=" + urlOf(postgres), "POSTHORN_MASTER_KEY=" + masterKey, "POSTHORN_EGRESS_ALLOW=" + l.net + ".0/24",
	}, r)
	n.at = n.near.place()
	n.start("web-0", "web")
	n.start("web-1", "web")
	n.serveAt(n.running["web-0"], n.running["web-1"])
	n.start("worker-0", "worker")
	n.start("worker-1", "worker")
	n.open(urlOf(postgres))
	n.makeTenant()
	for i := range plainLanes {
		s := settings{
			"event_types":     []string{fmt.Sprintf("plain.%d", i)},
			"max_in_flight":   4,
			"timeout_seconds": 2,
			"retry_policy":    settings{"name": "custom", "delays": []int{1, 1, 2, 4, 8, 16}},
		}
		if i < farLanes {
			s["url"] = "http://" + far.Addr().String() + plainPath(i)
		}
		n.endpoint(plainPath(i), s)
	}
	n.endpoint("/rate", settings{"event_types": []string{"rate"}, "rate_limit": nodesRate, "burst": nodesBurst, "max_in_flight": 20})
	n.endpoint("/slow", settings{"event_types": []string{"slow"}, "max_in_flight": nodesSlow})
	n.endpoint("/keyed", settings{"event_types": []string{"keyed"}, "ordering": "key", "max_in_flight": 8})
	return n
}

func plainPath(i int) string { return fmt.Sprintf("/%d", i%plainLanes) }

func (n *nodes) start(name, command string) *process {
	m := n.machines[name]
	n.running[name] = n.launchAt(m.place(), m.environ(), name, command).ready()
	return n.running[name]
}

// emit keeps events flowing until the end: to all lanes in turn, and of each key by a client of its own.
func (n *nodes) emit() {
	send := func(e emission, path string) {
		n.where.Store(e.idemp, path)
		n.world.emit(e)
		n.emitted.Add(1)
	}
	flow := func(every time.Duration, clients int, next func(i int) (emission, string)) {
		var at atomic.Int64
		for range clients {
			n.emitters.Go(func() {
				tick := time.NewTicker(every * time.Duration(clients))
				defer tick.Stop()
				for {
					select {
					case <-n.stop:
						return
					case <-tick.C:
						send(next(int(at.Add(1) - 1)))
					}
				}
			})
		}
	}
	flow(25*time.Millisecond, 8, func(i int) (emission, string) {
		return event(fmt.Sprintf("plain.%d", i%plainLanes), i), plainPath(i)
	})
	flow(100*time.Millisecond, 2, func(i int) (emission, string) { return event("rate", i), "/rate" })
	flow(125*time.Millisecond, 2, func(i int) (emission, string) { return event("slow", i), "/slow" })
	for k := range nodesKeys {
		key := fmt.Sprintf("key-%d", k)
		flow(300*time.Millisecond, 1, func(i int) (emission, string) {
			return emission{Type: "keyed", Key: key, Data: payload{Key: key, N: i}, idemp: fmt.Sprintf("%s/%d", key, i)}, "/keyed"
		})
	}
}

// milestone notes what was seen to take how long, for the report.
func (n *nodes) milestone(format string, args ...any) {
	n.milestones = append(n.milestones, fmt.Sprintf(format, args...))
}

func (n *nodes) lanesOf(name string) int {
	n.t.Helper()
	return n.ask("SELECT count(*) FROM lanes l JOIN workers w ON w.id = l.owner WHERE NOT w.dead AND (w.name = $1 OR w.name LIKE $1 || '#%')", name)
}

// join adds a worker, which gets its share of the lanes.
func (n *nodes) join() {
	n.t.Helper()
	const all = plainLanes + 3
	eventually(n.t, patience, "all lanes are served", func() bool { return n.lanesOf("worker-0")+n.lanesOf("worker-1") == all })
	n.start("worker-2", "worker")
	took := eventually(n.t, 45*time.Second, "the new worker has its share of the lanes", func() bool { return n.lanesOf("worker-2") >= all/3-2 })
	n.milestone("lanes of the worker that joined after %v: %d of %d", took.Round(time.Second), n.lanesOf("worker-2"), all)
}

// fault notes that something begins now whose results nobody will record.
func (n *nodes) fault(what string, from *node, notice time.Duration) {
	n.faults = append(n.faults, &cutOff{what: what, from: from, began: time.Now(), notice: notice})
}

// cutAndHalt cuts a worker off from the database and kills or freezes another. The third stays, is cut off from half of
// the receivers for a moment, and meanwhile the web processes are killed and cut off too. Then all are there again.
func (n *nodes) cutAndHalt(cut, halted, healthy string, freeze bool) {
	t := n.t
	t.Helper()
	n.fault(cut+" cut off from the database", n.machines[cut], noticeCut)
	n.l.cut(n.machines[cut], n.db)
	began := startWatch()
	victim := n.running[halted]
	if freeze {
		n.fault(halted+" frozen", n.machines[halted], noticeHalt)
		victim.signal(syscall.SIGSTOP)
	} else {
		n.fault(halted+" killed", n.machines[halted], noticeHalt)
		victim.kill()
		n.start(halted, "worker")
	}
	// Nothing of this waits for the thirty seconds.
	n.breakWebs()
	n.l.cut(n.machines[healthy], n.far)
	time.Sleep(2500 * time.Millisecond) // the cut
	n.l.heal(n.machines[healthy], n.far)
	dead := func() int { return n.ask("SELECT count(*) FROM workers WHERE dead") }
	eventually(t, time.Minute, "both are declared dead", func() bool { return dead() == 2 })
	took := began.passed()
	n.milestone("lanes taken over %v after the cut", took.Round(time.Second))
	if took > 50*time.Second {
		t.Errorf("the lanes were taken over only %v after the cut", took)
	}
	if s := status(n.running[cut].metrics + "/readyz"); s != http.StatusServiceUnavailable {
		t.Errorf("a worker that is cut off from its database says %d", s)
	}
	// What stands now must stand when they are back.
	before := n.settledStatuses()
	n.l.heal(n.machines[cut], n.db)
	healed := startWatch()
	n.running[cut].log.await(t, "declared dead")
	n.running[cut].ready()
	n.milestone("ready %v after the cut was healed", healed.passed().Round(time.Second))
	if freeze {
		victim.signal(syscall.SIGCONT)
		victim.log.await(t, "declared dead")
		victim.ready()
	}
	for _, name := range []string{cut, halted} {
		eventually(t, 45*time.Second, name+" serves lanes again", func() bool { return n.lanesOf(name) > 0 })
	}
	after := n.settledStatuses()
	for id, status := range before {
		if after[id] != status {
			t.Errorf("a late result changed delivery %s from %s to %s", id, status, after[id])
		}
	}
}

// breakWebs kills one web process and cuts the other off from the database, one after the other: clients go on.
func (n *nodes) breakWebs() {
	n.t.Helper()
	n.running["web-0"].kill()
	acked := len(n.acknowledgements())
	eventually(n.t, 10*time.Second, "the other web process takes events", func() bool { return len(n.acknowledgements()) > acked+20 })
	n.start("web-0", "web")
	n.l.cut(n.machines["web-1"], n.db)
	acked = len(n.acknowledgements())
	eventually(n.t, 20*time.Second, "the first web process takes events again", func() bool { return len(n.acknowledgements()) > acked+20 })
	eventually(n.t, 10*time.Second, "a web process without a database is not ready", func() bool {
		return status(n.running["web-1"].metrics+"/readyz") == http.StatusServiceUnavailable
	})
	n.l.heal(n.machines["web-1"], n.db)
	healed := startWatch()
	n.running["web-1"].ready()
	n.milestone("web ready %v after its cut was healed", healed.passed().Round(100*time.Millisecond))
}

// leave stops a worker and a web process as an operator does: nothing is doubled, and the others go on at once.
func (n *nodes) leave(worker string) {
	n.t.Helper()
	if code := n.running[worker].stop(); code != 0 {
		n.t.Errorf("%s stopped with %d", worker, code)
	}
	seen := n.receiver.count()
	eventually(n.t, 10*time.Second, "deliveries go on", func() bool { return n.receiver.count() > seen+100 })
	n.serveAt(n.running["web-0"])
	if code := n.running["web-1"].stop(); code != 0 {
		n.t.Errorf("web-1 stopped with %d", code)
	}
}

// settledStatuses is what has become of the deliveries that have come to their end.
func (n *nodes) settledStatuses() map[string]string {
	n.t.Helper()
	rows, err := n.sql.Query(context.Background(), "SELECT id::text, concat_ws(' ', status, reason, attempts, last_status, settled_at) FROM deliveries WHERE status >= 2")
	if err != nil {
		n.t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var id, status string
		if err := rows.Scan(&id, &status); err != nil {
			n.t.Fatal(err)
		}
		all[id] = status
	}
	if err := rows.Err(); err != nil {
		n.t.Fatal(err)
	}
	return all
}

// excuse says which fault explains that an arrival was not the last of its event; nil: none.
func (n *nodes) excuse(a arrival) *cutOff {
	for _, f := range n.faults {
		if a.from != f.from.addr {
			continue
		}
		unanswered := a.ended.IsZero() || a.ended.After(f.began.Add(-recording))
		if unanswered && a.started.Before(f.began.Add(f.notice)) {
			return f
		}
	}
	return nil
}

// failedAttempts are those that are on record without an answer of the receiver ("path event attempt").
func (n *nodes) failedAttempts() map[string]bool {
	n.t.Helper()
	rows, err := n.sql.Query(context.Background(), `SELECT substring(p.url FROM '/[^/]*$'), d.event_id::text, a.number::text
		FROM attempts a JOIN deliveries d ON d.id = a.delivery_id JOIN endpoints p ON p.id = a.endpoint_id WHERE a.status <> 200 AND NOT a.late`)
	if err != nil {
		n.t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]bool{}
	for rows.Next() {
		var path, event, number string
		if err := rows.Scan(&path, &event, &number); err != nil {
			n.t.Fatal(err)
		}
		all[path+" "+eventID(n.t, event)+" "+number] = true
	}
	if err := rows.Err(); err != nil {
		n.t.Fatal(err)
	}
	return all
}

func (n *nodes) check() {
	t := n.t
	t.Helper()
	all := n.receiver.seen()
	copies := map[string][]arrival{}
	for _, a := range all {
		what := a.path + " " + a.id
		copies[what] = append(copies[what], a)
	}
	excused, doubles, retries, failed := map[string]int{}, 0, 0, n.failedAttempts()
	for what, list := range copies {
		// Answers that were cut off are on record as attempts that failed, and the next attempt is no double. Which
		// of the two arrives first is the network's affair.
		sent := slices.DeleteFunc(slices.Clone(list), func(a arrival) bool { return failed[what+" "+a.attempt] })
		excused[what] = len(list) - len(sent)
		retries += len(list) - len(sent)
		for _, a := range sent[:max(len(sent)-1, 0)] {
			doubles++
			if f := n.excuse(a); f != nil {
				f.doubled++
				excused[what]++
			}
		}
	}
	n.receiver.expect(n.acknowledgements(), func(key string) []string {
		path, _ := n.where.Load(key)
		return []string{path.(string)}
	}, func(what string) int { return 1 + excused[what] })
	n.balanced(1)
	if bad := n.ask("SELECT count(*) FROM deliveries WHERE status <> 2"); bad != 0 {
		t.Errorf("%d deliveries did not end as delivered", bad)
	}
	var report []string
	for _, f := range n.faults {
		report = append(report, fmt.Sprintf("%s doubled %d", f.what, f.doubled))
	}
	t.Logf("%d events, %d arrivals, %d doubled, %d tried again for want of an answer, %d late attempts; %s; %s; refusals by status %v",
		len(n.acknowledgements()), len(all), doubles, retries,
		n.ask("SELECT count(*) FROM attempts WHERE late"), strings.Join(n.milestones, "; "), strings.Join(report, "; "), n.codes)
	n.checkLimits(all)
	n.inOrder("/keyed", func(a arrival) string { return a.data.Key })
}

func (n *nodes) checkLimits(all []arrival) {
	of := func(path string) []arrival {
		return slices.DeleteFunc(slices.Clone(all), func(a arrival) bool { return a.path != path })
	}
	var killed []time.Time
	for _, f := range n.faults {
		if strings.HasSuffix(f.what, "killed") {
			killed = append(killed, f.began)
		}
	}
	// By the moment of sending, and by that of arrival: several machines on one may bunch together what was sent
	// apart, by no more than the longest way that a request had.
	moment := n.sent("/rate")
	paced(n.t, slices.SortedFunc(maps.Values(moment), time.Time.Compare), nodesRate, nodesBurst, jitter)
	longest := time.Second
	for _, a := range of("/rate") {
		if sent, ok := moment[a.id+" "+a.attempt]; ok {
			longest = max(longest, a.started.Sub(sent))
		}
	}
	if longest > time.Second {
		n.t.Logf("a request was under way to its receiver for %v", longest.Round(time.Millisecond))
	}
	paced(n.t, moments(of("/rate")), nodesRate, nodesBurst, longest)
	if most := atOnce(of("/slow"), killed); most > nodesSlow {
		n.t.Errorf("%d requests were under way at once, %d are allowed", most, nodesSlow)
	}
}

// sent is when the requests to a path were started, of those that are on record ("event attempt").
func (n *nodes) sent(path string) map[string]time.Time {
	n.t.Helper()
	rows, err := n.sql.Query(context.Background(), `SELECT d.event_id::text, a.number::text, a.created_at
		FROM attempts a JOIN deliveries d ON d.id = a.delivery_id JOIN endpoints p ON p.id = a.endpoint_id WHERE p.url LIKE '%' || $1`, path)
	if err != nil {
		n.t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]time.Time{}
	for rows.Next() {
		var event, number string
		var at time.Time
		if err := rows.Scan(&event, &number, &at); err != nil {
			n.t.Fatal(err)
		}
		what := eventID(n.t, event) + " " + number
		if _, twice := all[what]; twice {
			what += " again" // a late one, beside that which counts
		}
		all[what] = at
	}
	if err := rows.Err(); err != nil || len(all) == 0 {
		n.t.Fatal(len(all), err)
	}
	return all
}
