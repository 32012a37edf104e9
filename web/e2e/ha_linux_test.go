//go:build e2e || soak

package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"posthorn/tools/need"
)

const (
	managedServers = 3
	managedTTL     = 20 // seconds until a leader that says nothing is replaced
	managedRate    = 25 // events a second
)

// managed is an installation on three PostgreSQL servers that Patroni manages with etcd, as docs/ops/ha.md says: a
// quorum of replicas has each commit. Two web processes and two workers; one of each reaches the primary through
// HAProxy, the other by naming all servers.
type managed struct {
	*world
	l       *lan
	patroni string // its modules
	nodes   []*manager
	near    *node
	outages []string
}

// manager is a machine with etcd, Patroni and the PostgreSQL that Patroni starts.
type manager struct {
	*node
	m       *managed
	dir     string
	etcd    *daemon
	patroni *daemon
}

// daemon is a program that runs until it is killed.
type daemon struct {
	name string
	cmd  *exec.Cmd
	log  *lines
}

func startDaemon(t *testing.T, name string, cmd *exec.Cmd) *daemon {
	t.Helper()
	d := &daemon{name: name, cmd: cmd, log: newLines(t, name)}
	cmd.Stdout, cmd.Stderr = d.log, d.log
	// A session of its own: what it starts is killed and frozen with it.
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	cmd.WaitDelay = time.Second // what it started can outlive it, and keeps its output open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		d.log.end()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s said at last:\n%s", name, d.log.tail(15))
		}
	})
	return d
}

// patroniModules is a copy of Patroni's published package, which every user may read: of POSTHORN_PATRONI, or of what
// `make ha-tools` brought.
func patroniModules(t *testing.T) string {
	t.Helper()
	from := os.Getenv("POSTHORN_PATRONI")
	if from == "" {
		from = filepath.Join("..", "..", "bin", "ha")
	}
	if _, err := os.Stat(from); err != nil {
		need.Missing(t, "bin/ha", "Run `make ha-tools` to bring Patroni.")
	}
	dir := folder(t)
	if text, err := exec.Command("sh", "-ec", `cp -r "$1" "$2/patroni" && chmod -R a+rX "$2"`, "sh", from, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, text)
	}
	return filepath.Join(dir, "patroni")
}

// python is the one that `make ha-tools` asks, too.
func python(t *testing.T) string {
	t.Helper()
	const system = "/usr/bin/python3"
	if _, err := os.Stat(system); err == nil {
		return system
	}
	return need.Program(t, "python3")
}

func newManaged(t *testing.T) *managed {
	t.Helper()
	need.Programs(t, "etcd", "haproxy", "python3")
	m := &managed{l: newLAN(t), patroni: patroniModules(t)}
	m.near = m.l.node("near")
	places := map[string]*node{}
	for i := range managedServers {
		n := &manager{node: m.l.node(fmt.Sprintf("pg%d", i+1)), m: m, dir: folder(t)}
		m.nodes = append(m.nodes, n)
		t.Cleanup(func() { n.signal(syscall.SIGKILL) }) // PostgreSQL outlives a Patroni that is killed
	}
	for _, name := range []string{"web-0", "web-1", "worker-0", "worker-1"} {
		places[name] = m.l.node(name)
	}
	m.l.reachedFrom(m.near)
	for _, n := range m.nodes {
		n.startEtcd(t, "new")
	}
	m.nodes[0].startPatroni(t)
	eventually(t, patience, "a primary", func() bool { return m.leader() == m.nodes[0] })
	for _, n := range m.nodes[1:] {
		n.startPatroni(t)
	}
	m.whole(t)
	first := m.nodes[0]
	(&server{t: t, at: place{network: first.ns.pid, who: unprivileged(t)}, host: first.addr, port: "5432"}).admit()

	hosts := make([]string, len(m.nodes))
	for i, n := range m.nodes {
		hosts[i] = net.JoinHostPort(n.addr, "5432")
	}
	several := "postgres://posthorn@" + strings.Join(hosts, ",") + "/posthorn?sslmode=disable&connect_timeout=2"
	r := newReceiver(t, m.near.listen(), func(a *arrival) int {
		a.hold(20 * time.Millisecond)
		return http.StatusOK
	})
	m.world = newWorldOf(t, []string{"POSTHORN_MASTER_KEY=" + masterKey, "POSTHORN_EGRESS_ALLOW=" + m.l.net + ".0/24"}, r)
	m.at = m.near.place()
	start := func(name, command string, proxied bool) *process {
		at := places[name]
		url := several
		if proxied {
			m.startProxy(t, at)
			url = "postgres://posthorn@" + at.addr + ":5000/posthorn?sslmode=disable&connect_timeout=2"
		}
		return m.launchAt(at.place(), append(at.environ(), "POSTHORN_DATABASE_URL="+url), name, command).ready()
	}
	m.environ = append(m.environ, "POSTHORN_DATABASE_URL="+several)
	webs := []*process{start("web-0", "web", false), start("web-1", "web", true)}
	m.serveAt(webs...)
	start("worker-0", "worker", false)
	start("worker-1", "worker", true)
	m.open(several + "&target_session_attrs=read-write")
	m.makeTenant()
	for i := range 4 {
		m.endpoint(fmt.Sprintf("/%d", i), settings{
			"event_types":  []string{fmt.Sprintf("plain.%d", i)},
			"retry_policy": settings{"name": "custom", "delays": []int{1, 1, 2, 4, 8, 16}},
		})
	}
	return m
}

func (n *manager) command(name string, args ...string) *exec.Cmd {
	cmd := place{network: n.ns.pid, who: unprivileged(n.l.t)}.command(name, args...)
	cmd.Env = []string{"PATH=" + filepath.Dir(postgresProgram(n.l.t, "pg_ctl")) + ":" + os.Getenv("PATH"), "HOME=" + n.dir, "LC_ALL=C.UTF-8", "PYTHONPATH=" + n.m.patroni}
	return cmd
}

func (n *manager) startEtcd(t *testing.T, state string) {
	t.Helper()
	members := make([]string, len(n.m.nodes))
	for i, other := range n.m.nodes {
		members[i] = fmt.Sprintf("%s=http://%s:2380", other.name, other.addr)
	}
	n.etcd = startDaemon(t, "etcd of "+n.name, n.command("etcd", "--name", n.name, "--data-dir", filepath.Join(n.dir, "etcd"),
		"--listen-client-urls", "http://"+n.addr+":2379", "--advertise-client-urls", "http://"+n.addr+":2379",
		"--listen-peer-urls", "http://"+n.addr+":2380", "--initial-advertise-peer-urls", "http://"+n.addr+":2380",
		"--initial-cluster", strings.Join(members, ","), "--initial-cluster-state", state, "--log-level", "error"))
}

// startPatroni starts it with the configuration of docs/ops/ha.md.
func (n *manager) startPatroni(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "ops", "patroni.yml"))
	if err != nil {
		t.Fatal(err)
	}
	etcds := make([]string, len(n.m.nodes))
	for i, other := range n.m.nodes {
		etcds[i] = other.addr + ":2379"
	}
	filled := strings.NewReplacer(
		"NAME", n.name,
		"ADDRESS", n.addr,
		"ETCD_HOSTS", strings.Join(etcds, ","),
		"NETWORK", n.l.net+".0/24",
		"/var/lib/postgresql/data", filepath.Join(n.dir, "data"),
		"/usr/lib/postgresql/bin", filepath.Dir(postgresProgram(t, "postgres")),
		"scram-sha-256", "trust",
	).Replace(string(text))
	file := filepath.Join(n.dir, "patroni.yml")
	if err := os.WriteFile(file, []byte(filled), 0o644); err != nil {
		t.Fatal(err)
	}
	n.patroni = startDaemon(t, "patroni of "+n.name, n.command(python(t), "-m", "patroni", file))
}

// startProxy starts HAProxy with the configuration of docs/ops/ha.md on a machine.
func (m *managed) startProxy(t *testing.T, at *node) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "ops", "haproxy-postgresql.cfg"))
	if err != nil {
		t.Fatal(err)
	}
	pairs := []string{"bind *:5000", "bind " + at.addr + ":5000"}
	for _, n := range m.nodes {
		pairs = append(pairs, n.name+".example.com", n.addr)
	}
	file := filepath.Join(folder(t), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
	startDaemon(t, "haproxy of "+at.name, place{network: at.ns.pid, who: unprivileged(t)}.command("haproxy", "-W", "-db", "-f", file))
	proxy := &server{t: t, name: "haproxy", host: at.addr, port: "5000"}
	eventually(t, patience, "HAProxy knows the primary", func() bool {
		conn, err := proxy.connect()
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(t.Context()) }()
		var replica bool
		return conn.QueryRow(t.Context(), "SELECT pg_is_in_recovery()").Scan(&replica) == nil && !replica
	})
}

// is asks a node's Patroni whether it has a role.
func (n *manager) is(role string) bool {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	res, err := client.Get("http://" + n.addr + ":8008/" + role)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// leader is the node with the primary; nil: there is none.
func (m *managed) leader() *manager {
	for _, n := range m.nodes {
		if n.is("primary") {
			return n
		}
	}
	return nil
}

// whole waits until there are a primary and two replicas in its quorum.
func (m *managed) whole(t *testing.T) {
	t.Helper()
	eventually(t, patience, "a primary with two replicas", func() bool {
		leader, replicas := m.leader(), 0
		for _, n := range m.nodes {
			if n != leader && n.is("quorum") {
				replicas++
			}
		}
		return leader != nil && replicas == managedServers-1
	})
}

// processes are those of a node's Patroni and its PostgreSQL.
func (n *manager) processes() (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range found {
		words, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		where, _ := os.Readlink(filepath.Join(dir, "cwd"))
		if bytes.Contains(words, []byte(filepath.Join(n.dir, "patroni.yml"))) || where == filepath.Join(n.dir, "data") {
			var pid int
			if _, err := fmt.Sscan(filepath.Base(dir), &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func (n *manager) signal(s syscall.Signal) {
	for _, pid := range n.processes() {
		_ = syscall.Kill(pid, s)
	}
}

// fault does something to the cluster while events flow, waits until events are acknowledged again and the cluster is
// whole, and notes for how long none was.
func (m *managed) fault(t *testing.T, what string, do func(leader *manager) (undo func())) {
	t.Helper()
	leader := m.leader()
	if leader == nil {
		t.Fatal("there is no primary")
	}
	var mu sync.Mutex
	longest, last, stop := time.Duration(0), time.Now(), make(chan struct{})
	acked := len(m.acknowledgements())
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			n := len(m.acknowledgements())
			mu.Lock()
			if n > acked {
				acked, last = n, time.Now()
			}
			longest = max(longest, time.Since(last))
			mu.Unlock()
		}
	})
	undo := do(leader)
	before := len(m.acknowledgements())
	eventually(t, patience, "events are acknowledged after "+what, func() bool { return len(m.acknowledgements()) > before+4*managedRate })
	if undo != nil {
		undo()
	}
	m.whole(t)
	close(stop)
	watch.Wait()
	m.outages = append(m.outages, fmt.Sprintf("%s: no 202 for %v", what, longest.Round(100*time.Millisecond)))
	if longest > time.Minute {
		t.Errorf("%s: no event was acknowledged for %v", what, longest)
	}
}

// TestAManagedClusterLosesNothing kills, freezes and cuts off the primary of a cluster that Patroni manages, lets it
// switch, and takes etcd away: with POSTHORN_E2E_FAULTS=all, otherwise the first two. Nothing that was acknowledged is
// lost, and only what was under way is doubled.
func TestAManagedClusterLosesNothing(t *testing.T) {
	t.Parallel()
	m := newManaged(t)
	end := m.emitting()
	defer end()

	all := m.faults()
	if os.Getenv("POSTHORN_E2E_FAULTS") != "all" { // the others take minutes
		all = all[:2]
	}
	for _, f := range all {
		m.fault(t, f.name, f.do)
	}
	end()
	m.settled(len(m.acknowledgements()), patience)
	m.check(t)
}

// emitting sends events until the function that it returns is called.
func (m *managed) emitting() (end func()) {
	stop := make(chan struct{})
	var emitters sync.WaitGroup
	const clients = 40 // enough that requests which wait for a primary don't keep the next ones
	for c := range clients {
		emitters.Go(func() {
			tick := time.NewTicker(clients * time.Second / managedRate)
			defer tick.Stop()
			for i := c; ; i += clients {
				select {
				case <-stop:
					return
				case <-tick.C:
					m.emit(event(fmt.Sprintf("plain.%d", i%4), i))
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(stop)
		emitters.Wait()
	})
}

// clusterFault is what can happen to a cluster. do does it and returns what puts an end to it, if anything has to.
type clusterFault struct {
	name string
	do   func(leader *manager) (undo func())
}

// faults are those that docs/ops/ha.md has figures for.
func (m *managed) faults() []clusterFault {
	t := m.l.t
	another := func(leader *manager) {
		eventually(t, patience, "another primary", func() bool { n := m.leader(); return n != nil && n != leader })
	}
	return []clusterFault{
		{"kill -9 of the primary and its manager", func(leader *manager) func() {
			leader.signal(syscall.SIGKILL)
			another(leader)
			return func() { leader.startPatroni(t) }
		}},
		{"a switchover", func(leader *manager) func() {
			res, err := (&http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: dial}}).
				Post("http://"+leader.addr+":8008/switchover", "application/json", strings.NewReader(`{"leader":"`+leader.name+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Fatalf("the switchover: %d", res.StatusCode)
			}
			return nil
		}},
		{"a frozen primary that is thawed", func(leader *manager) func() {
			leader.signal(syscall.SIGSTOP)
			another(leader)
			return func() { leader.signal(syscall.SIGCONT) }
		}},
		{"a primary that is cut off from the others", func(leader *manager) func() {
			for _, other := range m.nodes {
				if other != leader {
					m.l.cut(leader.node, other.node)
				}
			}
			another(leader)
			return func() {
				for _, other := range m.nodes {
					if other != leader {
						m.l.heal(leader.node, other.node)
					}
				}
			}
		}},
		{"the loss of etcd", func(*manager) func() {
			for _, n := range m.nodes {
				_ = syscall.Kill(-n.etcd.cmd.Process.Pid, syscall.SIGKILL)
			}
			time.Sleep(2 * managedTTL * time.Second) // the outage itself: longer than a leader's key lives
			return func() {
				for _, n := range m.nodes {
					n.startEtcd(t, "existing")
				}
			}
		}},
	}
}

func (m *managed) check(t *testing.T) {
	t.Helper()
	acks, tally := m.acknowledgements(), m.receiver.tally()
	known, doubled := map[string]bool{}, 0
	for _, a := range m.receiver.seen() {
		known[a.id] = true
	}
	lost := 0
	for key, id := range acks {
		if !known[id] {
			lost++
			t.Errorf("event %s = %s was acknowledged and never arrived", key, id)
		}
	}
	for _, n := range tally {
		doubled += n - 1
	}
	m.balanced(1)
	t.Logf("%d events acknowledged, %d lost, %d doubled; %s; refusals by status %v", len(acks), lost, doubled, strings.Join(m.outages, "; "), m.codes)
	if most := len(acks) / 100; doubled > most {
		t.Errorf("%d deliveries were doubled: more than what was under way", doubled)
	}
}
