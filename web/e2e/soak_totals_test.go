//go:build (e2e || soak) && unix

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// soakTotals are what a soak reports.
type soakTotals struct {
	events   int            // acknowledged
	faults   map[string]int // how often each happened
	lost     int            // acknowledged and never received
	doubled  int            // arrivals of what the receiver had accepted already
	rejected int            // arrivals that the receiver rejected on purpose
	minutes  []soakMinute
}

// soakMinute is a minute of it, by when the events were made.
type soakMinute struct {
	events        int
	p50, p99, max time.Duration // from the event to its first arrival
}

// totalsOf counts. where is the path of each event, by idempotency key.
func totalsOf(started time.Time, arrivals []arrival, acknowledged, where map[string]string, faults map[string]int) soakTotals {
	s := soakTotals{events: len(acknowledged), faults: faults}
	accepted, seen := map[string]bool{}, map[string]bool{}
	byMinute := map[int][]time.Duration{}
	last := 0
	for _, a := range arrivals {
		what := a.path + " " + a.id
		if !seen[what] {
			minute := max(int(a.made.Sub(started)/time.Minute), 0)
			byMinute[minute] = append(byMinute[minute], a.started.Sub(a.made))
			last = max(last, minute)
		}
		seen[what] = true
		switch {
		case a.status/100 != 2:
			s.rejected++
		case accepted[what]:
			s.doubled++
		}
		accepted[what] = accepted[what] || a.status/100 == 2
	}
	for key, id := range acknowledged {
		if !seen[where[key]+" "+id] {
			s.lost++
		}
	}
	if len(byMinute) > 0 {
		s.minutes = make([]soakMinute, last+1)
	}
	for minute, list := range byMinute {
		slices.Sort(list)
		at := func(share float64) time.Duration { return list[min(int(share*float64(len(list))), len(list)-1)] }
		s.minutes[minute] = soakMinute{len(list), at(0.50), at(0.99), list[len(list)-1]}
	}
	return s
}

// String is the report, as docs/performance.md can show it.
func (s soakTotals) String() string {
	var b strings.Builder
	all := 0
	for _, n := range s.faults {
		all += n
	}
	fmt.Fprintf(&b, "%d events acknowledged, %d faults, %d lost, %d doubled, %d rejected by the receiver on purpose\n", s.events, all, s.lost, s.doubled, s.rejected)
	for _, name := range slices.Sorted(maps.Keys(s.faults)) {
		fmt.Fprintf(&b, "  %s: %d times\n", name, s.faults[name])
	}
	b.WriteString("\n| minute | events | p50 ms | p99 ms | max ms |\n| --: | --: | --: | --: | --: |\n")
	for i, m := range s.minutes {
		fmt.Fprintf(&b, "| %d | %d | %d | %d | %d |\n", i, m.events, m.p50.Milliseconds(), m.p99.Milliseconds(), m.max.Milliseconds())
	}
	return b.String()
}

func TestASoakReportsItsTotals(t *testing.T) {
	t.Parallel()
	started := time.Date(2031, 3, 9, 12, 0, 0, 0, time.UTC)
	came := func(id string, made, after time.Duration, status int) arrival {
		return arrival{path: "/0", id: id, made: started.Add(made), started: started.Add(made + after), status: status}
	}
	arrivals := []arrival{
		came("a", time.Second, 10*time.Millisecond, 200),
		came("b", time.Second, 20*time.Millisecond, 503), // rejected on purpose, and repeated: not doubled
		came("b", time.Second, 3*time.Second, 200),
		came("c", 2*time.Minute+time.Second, 400*time.Millisecond, 200),
		came("c", 2*time.Minute+time.Second, 40*time.Second, 200), // under way at a kill
	}
	s := totalsOf(started, arrivals, map[string]string{"ka": "a", "kb": "b", "kc": "c", "kd": "d"},
		map[string]string{"ka": "/0", "kb": "/0", "kc": "/0", "kd": "/0"}, map[string]int{"a worker is killed": 2, "a web process is killed": 1})
	if s.events != 4 || s.lost != 1 || s.doubled != 1 || s.rejected != 1 || len(s.minutes) != 3 {
		t.Errorf("%+v", s)
	}
	if first, third := s.minutes[0], s.minutes[2]; first.events != 2 || first.p99 != 20*time.Millisecond || third.events != 1 || third.p99 != 400*time.Millisecond {
		t.Errorf("%+v, %+v", first, third)
	}
	if text := s.String(); !strings.Contains(text, "4 events acknowledged, 3 faults, 1 lost, 1 doubled") || !strings.Contains(text, "| 1 | 0 | 0 | 0 | 0 |") {
		t.Errorf("%s", text)
	}
}
