//go:build e2e && unix

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAKilledWorkerShowsInTheConsole: within the bound of its beat, on the first page, and its lanes move.
func TestAKilledWorkerShowsInTheConsole(t *testing.T) {
	t.Parallel()
	s := &stage{world: newWorld(t, nil)}
	s.server = s.launch("web", "web").ready()
	s.serveAt(s.server)
	s.url = s.server.url
	workers := []*process{s.launch("worker-0", "worker").ready(), s.launch("worker-1", "worker").ready()}
	s.endpoint("/seen", settings{"event_types": []string{"*"}})
	desk := operator(t, s)
	shows := func(path, text string) bool {
		_, _, body := desk.page("/console" + path)
		return strings.Contains(body, text)
	}
	holds := func(p *process) bool { // with or without work
		return s.ask("SELECT count(*) FROM lanes l JOIN workers o ON o.id = l.owner WHERE NOT o.dead AND o.name = $1", p.name) > 0
	}
	s.emit(event("a", 0))
	victim := -1
	eventually(t, patience, "a worker holds the lane", func() bool {
		victim = slices.IndexFunc(workers, holds)
		return victim >= 0
	})
	if !shows("", "All clear") || shows("/queue", "silent") {
		t.Error("the console finds fault before there is any")
	}
	killed := time.Now()
	workers[victim].kill()
	s.emit(event("a", 1)) // work for whoever takes the lane
	const bound, looks = 30 * time.Second, 10 * time.Second
	eventually(t, bound+looks, "the overview tells of the worker", func() bool { return shows("", "1 worker stopped without signing off.") })
	t.Logf("seen %v after the kill", time.Since(killed).Round(100*time.Millisecond))
	eventually(t, patience, "the page of the queue tells that its lanes are free", func() bool { return shows("/queue", "its lanes are released") })
	eventually(t, patience, "the lane moves", func() bool { return holds(workers[1-victim]) })
	s.settled(2, patience)
	s.balanced(1)
}
