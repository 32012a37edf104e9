package reconcile_test

import (
	"testing"
	"time"

	"posthorn/domain/reconcile"
)

func TestPagesAgreeOnEveryNumberOrDiffer(t *testing.T) {
	t.Parallel()
	entered := reconcile.Entered(10, 5, 2, 1)
	entered.Events = 7
	same := reconcile.Page{Accepted: 10, Delivered: 5, Failed: 2, Canceled: 1, Waiting: 2, Queued: 2, Events: 7}
	if n := reconcile.Amount(entered, same); n != 0 {
		t.Errorf("equal pages differ by %d", n)
	}
	for name, change := range map[string]func(*reconcile.Page){
		"accepted":  func(p *reconcile.Page) { p.Accepted -= 3 },
		"delivered": func(p *reconcile.Page) { p.Delivered += 3 },
		"failed":    func(p *reconcile.Page) { p.Failed -= 3 },
		"canceled":  func(p *reconcile.Page) { p.Canceled += 3 },
		"waiting":   func(p *reconcile.Page) { p.Waiting -= 3 },
		"queued":    func(p *reconcile.Page) { p.Queued += 3 },
		"events":    func(p *reconcile.Page) { p.Events -= 3 },
	} {
		other := same
		change(&other)
		if n := reconcile.Amount(entered, other); n != 3 {
			t.Errorf("%s: differs by %d, want 3", name, n)
		}
	}
}

func TestPlacesOfOthersHideNoDeliveryWithoutOne(t *testing.T) {
	t.Parallel()
	for _, tt := range [][4]int64{{3, 0, 3, 3}, {3, 1, 2, 2}, {3, 1, 3, 2}, {3, 0, 4, 4}, {3, 3, 0, 0}, {0, 0, 2, 2}} {
		if n := reconcile.Placed(tt[0], tt[1], tt[2]); n != tt[3] {
			t.Errorf("of %d that wait %d have no place, and there are %d places: %d, want %d", tt[0], tt[1], tt[2], n, tt[3])
		}
	}
}

func TestTheCheckGoesFromDayToDayAndBeginsAnew(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2031, 3, n, 0, 0, 0, 0, time.UTC) }
	days := []time.Time{day(1), day(2), day(5)}
	for at, want := range map[int]int{1: 2, 2: 5, 3: 5, 5: 1, 9: 1} {
		next, again := reconcile.Next(days, day(at))
		if !next.Equal(day(want)) || again != (want == 1) {
			t.Errorf("after %d comes %s, restart %t", at, next, again)
		}
	}
	if next, again := reconcile.Next(nil, day(4)); !next.Equal(day(4)) || !again {
		t.Errorf("without days: %s %t", next, again)
	}
}

func TestYesterdayAndTodayAreCheckedApart(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2031, 3, n, 0, 0, 0, 0, time.UTC) }
	days := []time.Time{day(1), day(2), day(3), day(4), day(5)}
	far := time.FixedZone("far", 14*3600)
	for _, tt := range []struct {
		now             time.Time
		recent, history int
	}{
		{day(4), 2, 2}, // the fifth is still to come
		{day(5).Add(-time.Nanosecond), 2, 2},
		{day(5), 2, 3},
		{day(4).Add(23 * time.Hour).In(far), 2, 2}, // the fifth elsewhere
		{day(5).AddDate(1, 0, 0), 0, 5},            // a clock that was set ahead
		{day(1).AddDate(-1, 0, 0), 0, 0},
	} {
		if recent, history := reconcile.Split(days, tt.now); len(recent) != tt.recent || len(history) != tt.history {
			t.Errorf("%s: %v %v", tt.now, recent, history)
		}
	}
}

func TestAGapIsTheSameForAsLongAsTheSameIsMissing(t *testing.T) {
	t.Parallel()
	f := reconcile.Finding{
		Ledger: reconcile.Entered(10, 5, 2, 1),
		Tables: reconcile.Page{
			Accepted:  9,
			Delivered: 4,
			Failed:    2,
			Canceled:  1,
			Waiting:   2,
			Queued:    2,
		},
	}
	const want = "accepted -1, delivered -1"
	if got := f.Gap(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// One that waited is delivered: the same is missing.
	f.Ledger, f.Tables = reconcile.Entered(10, 6, 2, 1), reconcile.Page{
		Accepted:  9,
		Delivered: 5,
		Failed:    2,
		Canceled:  1,
		Waiting:   1,
		Queued:    1,
	}
	if got := f.Gap(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.Tables.Queued++
	if got := f.Gap(); got != want+", queued +1" {
		t.Errorf("%q", got)
	}
	if got := (reconcile.Finding{}).Gap(); got != "" {
		t.Errorf("nothing differs by %q", got)
	}
}
