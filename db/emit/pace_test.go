package emit

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestACommitWaitsOnlyWhileThatPays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		last    int           // requests in the last commit
		since   time.Duration // it began
		waiting int
		more    int // requests that arrive each millisecond
		want    time.Duration
	}{
		{"the first of all", 0, time.Hour, 1, 0, 0},
		{"one after the other", 1, 2 * time.Millisecond, 1, 0, 0},
		{"a few at a time", 3, 2 * time.Millisecond, 3, 0, 0},
		{"after a rest", 100, time.Second, 10, 0, 0},
		{"long after the last one began", 20, 6 * time.Millisecond, 10, 0, 0},
		{"those of the last one come back", 16, 2 * time.Millisecond, 16, 16, time.Millisecond},
		{"they come back slowly", 16, time.Millisecond, 16, 2, 2 * time.Millisecond},
		{"they do not come back", 32, time.Millisecond, 1, 0, 2 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Hour)
			p := pace{began: time.Now().Add(-tt.since), last: tt.last}
			began := time.Now()
			p.wait(func() int { return tt.waiting + tt.more*int(time.Since(began)/time.Millisecond) })
			if waited := time.Since(began); waited != tt.want {
				t.Errorf("%s: waited %v, want %v", tt.name, waited, tt.want)
			}
		})
	}
}
