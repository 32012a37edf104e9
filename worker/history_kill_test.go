package worker

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/worker/history"
)

// These variables make the test binary a process that works on history once and ends.
const (
	keeperDatabase = "POSTHORN_TEST_KEEPER_DATABASE"
	keeperFolder   = "POSTHORN_TEST_KEEPER_FOLDER"
	keeperKill     = "POSTHORN_TEST_KEEPER_KILL" // the call of the store after which it kills itself; 0: none
)

// keeperMain is the whole of such a process.
func keeperMain() error {
	ctx := context.Background()
	d, err := db.Open(ctx, os.Getenv(keeperDatabase), db.Options{MaxConns: 4})
	if err != nil {
		return err
	}
	defer d.Close()
	store, err := history.Open(history.Where{URL: "file://" + os.Getenv(keeperFolder)})
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(os.Getenv(keeperKill), 10, 64)
	if err != nil {
		return err
	}
	store = &deadly{Store: store, at: at}
	fmt.Println("working") // the test's clock starts
	return history.New(history.Config{DB: d, Store: store, Log: slog.Default(), After: 3, Back: 2}).Work(ctx)
}

// deadly kills its process right after one of its calls.
type deadly struct {
	history.Store
	at    int64
	calls atomic.Int64
}

func (s *deadly) next() {
	if s.calls.Add(1) != s.at {
		return
	}
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}

func (s *deadly) Put(ctx context.Context, name string, body []byte) error {
	defer s.next()
	return s.Store.Put(ctx, name, body)
}

func (s *deadly) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	defer s.next()
	return s.Store.Get(ctx, name, most)
}

func (s *deadly) Range(ctx context.Context, name string, from, n int64) ([]byte, error) {
	defer s.next()
	return s.Store.Range(ctx, name, from, n)
}

func (s *deadly) Delete(ctx context.Context, name string) error {
	defer s.next()
	return s.Store.Delete(ctx, name)
}

func (s *deadly) List(ctx context.Context, prefix string) ([]string, error) {
	defer s.next()
	return s.Store.List(ctx, prefix)
}

// keeperProcess is a process that works on history. It kills itself after a call, if one is given; otherwise the test
// kills it after a while. It reports whether the process ended by itself and well.
func (h *house) keeperProcess(path string, call int, after time.Duration) bool {
	h.t.Helper()
	ctx, kill := context.WithCancel(h.t.Context())
	defer kill()
	cmd := exec.CommandContext(ctx, os.Args[0]) // killed with SIGKILL when the context ends
	cmd.Env = append(os.Environ(), keeperDatabase+"="+h.url, keeperFolder+"="+path, keeperKill+"="+strconv.Itoa(call))
	var said bytes.Buffer
	cmd.Stderr = &said
	begins, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := begins.Read(make([]byte, 1)); err == nil && call == 0 {
		defer time.AfterFunc(after, kill).Stop()
	}
	err = cmd.Wait()
	well := cmd.ProcessState.Success() // also where the kill came too late, which Wait reports
	if !well && cmd.ProcessState.Exited() {
		h.t.Fatalf("the process did not work: %v\n%s", err, said.String())
	}
	// The dead process holds its lease for five minutes: they pass.
	h.exec("UPDATE chores SET done_at = now() WHERE name = 'history' AND done_at > now()")
	return well
}

// A process that moves a day of history is killed with SIGKILL: after each of its calls of the store, and at random
// times within its transactions. Another goes on with the work; no row is lost or doubled, and the books agree at
// every moment.
func TestKillsLeaveHistoryWhole(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "http://127.0.0.1:1", nil)
	day := h.historyDay(tenant, ep, 5, 600)
	before := h.historyRows(tenant)
	store, path := h.folder()
	there := func(want string, objects int) {
		t.Helper()
		state, why := h.historyState(tenant, day)
		if state != want || len(files(t, path)) != objects {
			t.Fatalf("the day is %s, want %s: %s; objects: %v", state, want, why, files(t, path))
		}
	}
	round := func(kill func() bool) (killed int) {
		t.Helper()
		for ; !kill(); killed++ {
			h.reconciled()
		}
		there("stored", 3)
		h.published(store, tenant, 600)
		if n := h.count("SELECT count(*) FROM deliveries WHERE tenant_id = $1", tenant); n != 0 {
			t.Fatalf("%d deliveries are left", n)
		}
		h.ask(tenant, day)
		for ; !kill(); killed++ {
			h.reconciled()
		}
		there("back", 0)
		h.published(store, tenant, 0)
		if h.historyRows(tenant) != before {
			t.Fatal("rows that came back differ")
		}
		h.reconciled()
		h.exec("UPDATE history_days SET back_at = now() - interval '3 days'")
		return killed
	}
	call := 0
	n := round(func() bool { call++; return h.keeperProcess(path, call, 0) })
	for range 2 {
		most := 50 * time.Millisecond // grows, so that a machine that is busy gets through it too
		n += round(func() bool {
			most *= 2
			return h.keeperProcess(path, 0, rand.N(most))
		})
	}
	t.Logf("%d kills in the work on %s", n, id.Tenant.Format(tenant))
	if n < 6 {
		t.Errorf("%d kills only", n)
	}
}
