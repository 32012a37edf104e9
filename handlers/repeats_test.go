package handlers

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAnOutageWritesOneLineASecond: every request of an outage is counted in a line, and no second has two of a kind.
func TestAnOutageWritesOneLineASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r repeats
		lines, total := 0, 0
		write := func(n int) { lines++; total += n }
		for range 1000 { // ten seconds
			r.count("unavailable", write)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		if total != 1000 || lines < 10 || lines > 12 {
			t.Errorf("%d lines counted %d of 1000 requests in ten seconds", lines, total)
		}
		r.count("unavailable", write)
		r.count("database_read_only", write)
		if total != 1002 {
			t.Error("the first request of an outage, or of another kind, was not written at once")
		}
		time.Sleep(3 * time.Second)
	})
}
