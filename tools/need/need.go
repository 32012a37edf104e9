// Package need is for tests that need something which not every machine has: a program, a right, a registry. Such a
// test is skipped with the name of that one thing. Continuous integration lists what was skipped, and fails where it
// has the thing (.ci/run).
package need

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"testing"
)

// listVariable names a file that gets a line for each skipped test: the thing, a tab, and the test.
const listVariable = "POSTHORN_SKIPPED"

// Missing skips a test, since the machine lacks a thing. The rest says what for, or how to get it.
func Missing(t testing.TB, thing, format string, args ...any) {
	t.Helper()
	if file := os.Getenv(listVariable); file != "" {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(f, "%s\t%s\n", thing, t.Name()) // one write, so that processes don't mix their lines
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Skipf("SKIPPED: %s is missing. "+format, append([]any{thing}, args...)...)
}

// Program is the path of an installed program.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, "Install it to run this test.")
	}
	return path
}

// Programs skips a test unless all programs are installed.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		Program(t, name)
	}
}

// Root skips a test unless it runs as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "root", "Run this test as root.")
	}
}

// Linux skips a test on other systems.
func Linux(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		Missing(t, "Linux", "This test reads what only Linux shows.")
	}
}

// outOfReach are the words with which package managers and resolvers say that a registry can't be reached.
var outOfReach = regexp.MustCompile(`(?i)dial tcp|no such host|i/o timeout|network is unreachable|connection (refused|timed out)|could(n't| not) resolve host|unknown host|` +
	`temporary failure in name resolution|name or service not known|ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|could not transfer artifact|transfer failed|403 Forbidden|` +
	`failed to establish a new connection|spurious network error|unable to connect`)

// Reached is for a command that brings something from a registry. A failed one skips the test where it says that the
// network is at fault. Everything else is a failure: a package that no longer builds is not a missing network.
func Reached(t testing.TB, registry string, err error, said []byte) {
	t.Helper()
	switch {
	case err == nil:
	case outOfReach.Match(said):
		Missing(t, registry, "%v\n%s", err, said)
	default:
		t.Fatalf("%s: %v\n%s", registry, err, said)
	}
}
