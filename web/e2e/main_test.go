//go:build (e2e || soak) && unix

// Package e2e holds Posthorn to its promises from outside: real processes of the binary, a real PostgreSQL, real
// receivers over HTTP. What happens to them is what happens to servers: they are killed, stopped, frozen and restarted
// while events flow. SECURITY's table of faults and the list "Done when" of the engine are the tests' names.
//
//	POSTHORN_BIN        the binary (`make e2e` builds it)
//	POSTHORN_E2E_KILLS  how often the tests that kill a process do so; default 6, SECURITY says 20
//	POSTHORN_E2E_RUNS   how many runs the test of several nodes makes; default 1, docs/scale.md reports 20
//	POSTHORN_E2E_FAULTS  "all": the test of a managed cluster runs all its faults
//	POSTHORN_E2E_POSTGRES  folders of another PostgreSQL's programs, for the tests of restore; separated as in PATH
//	POSTHORN_E2E_LOGS   a folder to keep the processes' logs in
package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/tools/dbtest"
)

// binary is a copy of POSTHORN_BIN: a build while the tests run must not change what they start.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(roomVariable) != "" {
		enterRoom()
	}
	// The tests wait for time-outs most of the time: more of them at once than there are processors.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("4")
	}
	http.DefaultTransport.(*http.Transport).DialContext = dial
	go watchStandstill()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if given := os.Getenv("POSTHORN_BIN"); given != "" {
		dir, err := os.MkdirTemp("", "posthorn-e2e-")
		if err == nil {
			defer func() { _ = os.RemoveAll(dir) }()
			binary = filepath.Join(dir, "posthorn")
			err = copyProgram(given, binary)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "POSTHORN_BIN:", err)
			return 1
		}
	}
	return dbtest.Main(m)
}

// copyProgram leaves a program that every user may run.
func copyProgram(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, text, 0o755); err != nil {
		return err
	}
	return os.Chmod(filepath.Dir(to), 0o755)
}

// kills is how often a test that kills a process does so.
func kills(t *testing.T) int {
	t.Helper()
	return times(t, "POSTHORN_E2E_KILLS", 6)
}

// times reads a number from the environment.
func times(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: write a number", variable, text)
	}
	return n
}

// standstill is for how long the machine has not run this process, in nanoseconds: a virtual machine that was paused,
// or one that is far too busy. No promise holds during that time, so that what tests wait for is measured without it.
var standstill atomic.Int64

func watchStandstill() {
	const step, notable = 100 * time.Millisecond, 3 * time.Second
	for last := time.Now(); ; {
		time.Sleep(step)
		now := time.Now()
		if gap := now.Sub(last); gap > notable {
			standstill.Add(int64(gap))
		}
		last = now
	}
}

// stopwatch measures time in which the machine ran.
type stopwatch struct {
	started time.Time
	still   int64
}

func startWatch() stopwatch { return stopwatch{time.Now(), standstill.Load()} }

func (s stopwatch) passed() time.Duration {
	return time.Since(s.started) - time.Duration(standstill.Load()-s.still)
}
