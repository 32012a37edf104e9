package handlers

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnOutageWritesOneLineASecond: every request of an outage is counted in a line, and no second has two of a kind.
func TestAnOutageWritesOneLineASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r repeats
		var lines, total atomic.Int64 // a timer's goroutine writes lines too
		write := func(n int) { lines.Add(1); total.Add(int64(n)) }
		for range 1000 { // ten seconds
			r.count("unavailable", write)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		if n := lines.Load(); total.Load() != 1000 || n < 10 || n > 12 {
			t.Errorf("%d lines counted %d of 1000 requests in ten seconds", n, total.Load())
		}
		r.count("unavailable", write)
		r.count("database_read_only", write)
		if total.Load() != 1002 {
			t.Error("the first request of an outage, or of another kind, was not written at once")
		}
		time.Sleep(3 * time.Second)
	})
}
