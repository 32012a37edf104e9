//go:build e2e && unix

package e2e

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/dbtest"
	"posthorn/db/migrations"
	"posthorn/domain/id"
)

const (
	homeSecret    = "a secret that all homes of a test know"
	secondHomeKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// twoHomes are two installations that share their tenants. The tenant of the test is in the first.
type twoHomes struct {
	*world        // of the first, and the client
	second *world // of the second
	web    [2]*process
	worker [2]*process
	urls   [2]string // of the databases
	list   string
	ports  [2]string
}

func newTwoHomes(t *testing.T) *twoHomes {
	t.Helper()
	h := &twoHomes{ports: [2]string{freePort(t), freePort(t)}}
	h.list = "POSTHORN_HOMES=eu1=http://127.0.0.1:" + h.ports[0] + ",eu2=http://127.0.0.1:" + h.ports[1]
	for i := range h.urls {
		h.urls[i] = dbtest.Clone(t, migrations.Fingerprint(), db.MigrateUp)
		key := masterKey
		if i == 1 {
			key = secondHomeKey
		}
		w := newWorldAt(t, []string{"POSTHORN_DATABASE_URL=" + h.urls[i], "POSTHORN_MASTER_KEY=" + key, h.list, "POSTHORN_HOME_SECRET=" + homeSecret, []string{"POSTHORN_HOME=eu1", "POSTHORN_HOME=eu2"}[i]}, nil)
		w.open(h.urls[i])
		if i == 0 {
			h.world = w
		} else {
			h.second = w
		}
	}
	for i := range h.web {
		h.start(i)
	}
	h.makeTenant()
	h.serveAt(h.web[0], h.web[1])
	return h
}

// start runs the processes of a home.
func (h *twoHomes) start(i int) {
	w := []*world{h.world, h.second}[i]
	h.web[i] = w.launchAt(w.at, []string{"POSTHORN_ADDR=127.0.0.1:" + h.ports[i]}, []string{"web-eu1", "web-eu2"}[i], "web").serving()
	h.worker[i] = w.launch([]string{"worker-eu1", "worker-eu2"}[i], "worker").serving()
}

// kill ends both processes of a home as a power cut would, notes what was under way, and starts them again.
func (h *twoHomes) kill(i int, note func()) {
	h.web[i].kill()
	h.worker[i].kill()
	note()
	h.start(i)
}

// mover starts a command that moves the tenant.
func (h *twoHomes) mover(said *bytes.Buffer) *exec.Cmd {
	cmd := h.at.command(binary, "tenant", "move", h.tenant, "--to", "eu2")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "POSTHORN_TO_DATABASE_URL=" + h.urls[1], "POSTHORN_TO_MASTER_KEY=" + secondHomeKey}, h.environ...)
	cmd.Stdout, cmd.Stderr = said, said
	return cmd
}

// moved is how many of the tenant's rows the second home has, once it is there.
func (h *twoHomes) moved() bool {
	tenant, err := id.Tenant.Parse(h.tenant)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.second.ask("SELECT count(*) FROM tenants WHERE id = $1 AND state = 'active'", tenant) == 1
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
	for try := 0; !h.moved() || try == 0; try++ {
		var said bytes.Buffer
		cmd := h.mover(&said)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(time.Duration(200+150*try) * time.Millisecond):
			if kills < 5 {
				kills++
				if victim < 0 {
					_ = cmd.Process.Kill()
				} else {
					h.kill(victim, func() { h.underWay(allowed) })
					h.serveAt(h.web[0], h.web[1])
				}
			}
			<-ended
		}
		if try > 20 {
			t.Fatalf("the tenant has not moved: %s", said.String())
		}
	}
	var finished struct{ Rows int }
	command(t, append([]string{"POSTHORN_TO_DATABASE_URL=" + h.urls[1], "POSTHORN_TO_MASTER_KEY=" + secondHomeKey}, h.environ...), h.at, &finished, "tenant", "move", h.tenant, "--to", "eu2", "--json")
	<-done
	if len(h.acknowledgements()) != len(batch) {
		t.Errorf("%d of %d events were acknowledged", len(h.acknowledgements()), len(batch))
	}
	first := h.sql
	h.sql = h.second.sql // where the tenant is
	took := h.settled(2*len(batch), patience)
	t.Logf("%d kills; settled %v after the last acknowledgement; refusals by status %v; at most %d could come twice", kills, took.Round(100*time.Millisecond), h.codes, allowed.total())
	h.balanced(2)
	h.receiver.expect(h.acknowledgements(), everyPath("/one", "/two"), func(what string) int { return 1 + allowed[what] })
	var left int
	if err := first.QueryRow(context.Background(), "SELECT (SELECT count(*) FROM queue) + (SELECT count(*) FROM lanes) + (SELECT count(*) FROM tenants WHERE state <> 'deleted')").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows of the tenant are left where it was: %v", left, err)
	}
	// Both homes take requests for it.
	for range 2 {
		if status, answer, err := h.call(http.MethodGet, h.web[0].url+"/api/v1/events", "", ""); err != nil || status != http.StatusOK {
			t.Errorf("through the home that it left: %d %s %v", status, answer, err)
		}
	}
}

// underWay notes what a kill can have come twice: requests that the receiver has not answered, or had so shortly before
// that their results need not be recorded.
func (h *twoHomes) underWay(allowed hits) {
	for _, a := range h.receiver.seen() {
		if a.ended.IsZero() || time.Since(a.ended) < 2*time.Second {
			allowed[a.path+" "+a.id]++
		}
	}
}
