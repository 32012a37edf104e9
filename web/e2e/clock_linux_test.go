//go:build e2e || soak

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"posthorn/tools/need"
)

// fakedPostgres is a folder with a PostgreSQL whose clock is off by what set says, by libfaketime. It skips the test
// where that is not installed; in continuous integration it is.
func fakedPostgres(t *testing.T) (dir string, set func(off time.Duration)) {
	t.Helper()
	libraries, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if len(libraries) == 0 {
		need.Missing(t, "faketime", "Its library sets the clock of a PostgreSQL.")
	}
	found, err := exec.LookPath("postgres")
	if err != nil {
		all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
		if len(all) == 0 {
			need.Missing(t, "postgres", "That of this machine was fetched by Posthorn; its clock is not faked.")
		}
		found = all[len(all)-1]
	}
	dir = dataDir(t)
	clock := filepath.Join(dir, "clock")
	set = func(off time.Duration) {
		// Renamed into its place: the server never reads half of it.
		if err := os.WriteFile(clock+".new", fmt.Appendf(nil, "%+d\n", int(off.Seconds())), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(clock+".new", clock); err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	script := fmt.Sprintf("#!/bin/sh\nexport LD_PRELOAD=%s FAKETIME_TIMESTAMP_FILE=%s FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_DISABLE_SHM=1\nexec %s \"$@\"\n", libraries[0], clock, found)
	if err := os.WriteFile(filepath.Join(dir, "postgres"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"initdb", "pg_ctl"} {
		if err := os.Symlink(filepath.Join(filepath.Dir(found), name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, set
}

// TestASteppedClockSendsNothingEarlyOrTwice sets the database's clock an hour ahead, 30 days ahead, and back again,
// while retries wait.
func TestASteppedClockSendsNothingEarlyOrTwice(t *testing.T) {
	t.Parallel()
	programs, set := fakedPostgres(t)
	dir := dataDir(t)
	w := newWorldAt(
		t,
		[]string{"POSTHORN_DATA_DIR=" + dir, "PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH")},
		func(a *arrival) int {
			if a.nth == 1 {
				return 500
			}
			return 200
		},
	)
	serve := w.launch("serve", "serve").ready()
	w.serveAt(serve)
	w.open(embeddedURL(dir))
	w.makeTenant()
	const delay, events = 8 * time.Second, 8 // fewer failures than open the breaker
	w.endpoint("/hook", settings{"retry_policy": settings{"name": "custom", "delays": []int{int(delay / time.Second), 3600}}})

	offset := func() (off time.Duration) {
		var now time.Time
		if err := w.sql.QueryRow(context.Background(), "SELECT clock_timestamp()").Scan(&now); err != nil {
			t.Fatal(err)
		}
		return time.Until(now)
	}
	before := 0
	for round, step := range []time.Duration{time.Hour, 30 * 24 * time.Hour, 0} {
		for i := range events {
			w.emit(event(fmt.Sprintf("clock.%d", round), i))
		}
		eventually(t, patience, "all have failed once", func() bool {
			return w.ask("SELECT count(*) FROM queue WHERE state = 1") == events
		})
		set(step)
		eventually(t, patience, "the clock is set", func() bool { return (offset() - step).Abs() < 2*time.Second })
		eventually(t, patience, "the step is on record", func() bool {
			return serve.log.count("the database's clock was set") == round+1
		})
		before += 2 * events
		eventually(t, patience, "all were sent again", func() bool { return w.receiver.count() == before })
	}
	first := map[string]arrival{}
	for _, a := range w.receiver.seen() {
		if a.nth == 1 {
			first[a.id] = a
			continue
		}
		// The jitter of a custom schedule is a tenth; by how much a clock was set is known to a few milliseconds.
		if gap := a.started.Sub(first[a.id].started); a.nth > 2 || gap < delay*9/10-250*time.Millisecond {
			t.Errorf("%s came for the %d. time after %v; the schedule says %v", a.id, a.nth, gap.Round(time.Millisecond), delay)
		}
	}
	w.settled(3*events, 30*time.Second)
	w.balanced(1)
	if !serve.running() {
		t.Error("the process went down")
	}
}
