package dbtest

import (
	"testing"
	"time"
)

// Eventually asks until a condition holds that depends on other goroutines or processes, and fails the test when it
// does not hold in time.
func Eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}
