package analytics

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t
}

// Every minute of a window is read once: from the roll-ups by hour or from those by minute.
func TestEveryMinuteOfAWindowIsReadOnce(t *testing.T) {
	t.Parallel()
	now := at("2026-03-10 15:42:07")
	for _, c := range []struct{ since, until string }{
		{"2026-03-09 15:42:07", "2026-03-10 15:42:07"},
		{"2026-03-09 15:00:00", "2026-03-10 15:00:00"},
		{"2026-03-10 15:10:00", "2026-03-10 15:42:07"},
		{"2026-03-10 13:30:00", "2026-03-10 15:42:07"},
		{"2026-03-08 00:00:00", "2026-03-09 00:00:00"},
		{"2026-03-08 00:10:00", "2026-03-08 00:20:00"},
		{"2026-03-08 00:10:00", "2026-03-08 02:20:00"},
	} {
		w := Between(at(c.since), at(c.until), now)
		in := func(m, from, to time.Time) int {
			if !m.Before(from) && m.Before(to) {
				return 1
			}
			return 0
		}
		for m := w.Since; m.Before(w.Until); m = m.Add(time.Minute) {
			hour := m.Truncate(time.Hour)
			byHour := in(hour, w.Hours[0], w.Hours[1])
			if n := byHour + in(m, w.Minutes[0], w.Minutes[1]) + in(m, w.Minutes[2], w.Minutes[3]); n != 1 {
				t.Fatalf("%v: the minute %v is read %d times: %+v", c, m, n, w)
			}
			if byHour == 1 && !hour.Before(at("2026-03-10 14:00:00")) {
				t.Fatalf("%v: the hour %v is not settled yet", c, hour)
			}
		}
	}
}

func TestAWindowKeepsToItsBucketsAndBounds(t *testing.T) {
	t.Parallel()
	now := at("2026-03-10 15:42:07")
	for _, c := range []struct {
		by           Width
		since, until string
		want, code   string
	}{
		{Hour, "", "", "2026-03-09T16:00:00Z 2026-03-10T16:00:00Z", ""},
		{Minute, "", "", "2026-03-10T14:43:00Z 2026-03-10T15:43:00Z", ""},
		{Day, "", "", "2026-02-09T00:00:00Z 2026-03-11T00:00:00Z", ""},
		{Hour, "2026-03-10 10:20:00", "2026-03-10 11:20:00", "2026-03-10T10:00:00Z 2026-03-10T12:00:00Z", ""},
		{Hour, "2026-03-10 10:20:00", "2027-01-01 00:00:00", "2026-03-10T10:00:00Z 2026-03-10T16:00:00Z", ""},
		{Hour, "2026-03-10 16:20:00", "", "", "window_empty"},
		{Hour, "2026-03-10 12:00:00", "2026-03-10 12:00:00", "", "window_empty"},
		{Minute, "2026-03-09 15:43:00", "", "2026-03-09T15:43:00Z 2026-03-10T15:43:00Z", ""},
		{Minute, "2026-03-09 15:42:59", "", "", "window_too_long"},
		{Hour, "2026-02-07 15:00:00", "", "", "window_too_long"},
		{Day, "2025-01-01 00:00:00", "", "", "window_too_long"},
	} {
		var since, until time.Time
		if c.since != "" {
			since = at(c.since)
		}
		if c.until != "" {
			until = at(c.until)
		}
		w, err := Asked(c.by, since, until, now)
		if c.code != "" {
			if !fault.Is(err, c.code) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if got := w.Since.Format(time.RFC3339) + " " + w.Until.Format(time.RFC3339); err != nil || got != c.want {
			t.Errorf("%+v: %s %v", c, got, err)
		}
	}
}

func TestSeriesCountByKind(t *testing.T) {
	t.Parallel()
	var s Series
	ep := id.UUID{1}
	early, late := at("2026-03-10 10:00:00"), at("2026-03-10 11:00:00")
	s.Add(Key{Bucket: late, Endpoint: ep}, Count{Kind: 0*16 + 6, N: 8, Us: 400_000})
	s.Add(Key{Bucket: late, Endpoint: ep}, Count{Kind: 3*16 + 14 + Retry, N: 2, Us: 50_000_000})
	s.Add(Key{Bucket: early, Endpoint: ep}, Count{Kind: 5*16 + 13, N: 1, Us: 15_000_000})
	s.Add(Key{Bucket: early, Endpoint: ep}, Count{Kind: 7 * 16, N: 5, Us: 5}) // of a class that nobody knows
	rows := s.Rows()
	if len(rows) != 2 || !rows[0].Bucket.Equal(early) || rows[0].Total() != 1 || rows[0].Failed() != 1 {
		t.Fatalf("%+v", rows)
	}
	r := rows[1]
	if r.Total() != 10 || r.Failed() != 2 || r.Retries != 2 || r.Mean() != 5040*time.Millisecond {
		t.Errorf("%+v, mean %v", r, r.Mean())
	}
	if p50, p99 := r.Quantile(0.5), r.Quantile(0.99); p50 < 50*time.Millisecond || p50 > 100*time.Millisecond ||
		p99 < 20*time.Second {
		t.Errorf("p50 %v, p99 %v", p50, p99)
	}
	byClass := Series{ByClass: true}
	byClass.Add(Key{Bucket: late}, Count{Kind: 3*16 + Retry, N: 2})
	byClass.Add(Key{Bucket: late}, Count{N: 1})
	if rows := byClass.Rows(); len(rows) != 2 || rows[0].Class != "ok" || rows[1].Class != "server_error" || rows[1].Retries != 2 {
		t.Errorf("%+v", rows)
	}
	var none Cell
	if none.Mean() != 0 || none.Quantile(0.5) != 0 || none.Total() != 0 {
		t.Error("no attempts give no numbers")
	}
}

func TestTheTopFailWorst(t *testing.T) {
	t.Parallel()
	var s Series
	for i, failed := range []int64{3, 0, 9, 1} {
		s.Add(Key{Type: string(rune('a' + i))}, Count{Kind: 3 * 16, N: failed})
		s.Add(Key{Type: string(rune('a' + i))}, Count{N: 100})
	}
	var got []string
	for _, r := range s.Top(2) {
		got = append(got, r.Type)
	}
	if strings.Join(got, "") != "ca" || len(s.Top(10)) != 3 {
		t.Errorf("%v", got)
	}
}

func TestCSVRunsNoFormula(t *testing.T) {
	t.Parallel()
	got := string(CSV([][]string{
		{"=1+1", "+1", "-order.paid", "@a", "\tx", "-5", "-1.5", "5", "", "a,b", `say "x"`, "|x", "-", "-1.2.3"},
	}))
	want := `'=1+1,'+1,'-order.paid,'@a,` + "'\tx" + `,-5,-1.5,5,,"a,b","say ""x""",'|x,'-,'-1.2.3` + "\r\n"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A small endpoint that fails every request comes before large ones that fail a few, and is not left out for them.
func TestTheWorstFailTheLargestShare(t *testing.T) {
	t.Parallel()
	var s Series
	for i := range 5 {
		s.Add(Key{Type: string(rune('a' + i))}, Count{Kind: 3 * 16, N: int64(70 + i)})
		s.Add(Key{Type: string(rune('a' + i))}, Count{N: 930})
	}
	s.Add(Key{Type: "small"}, Count{Kind: 3 * 16, N: 3})
	s.Add(Key{Type: "healthy"}, Count{N: 100})
	got := make([]string, 0, 3)
	for _, r := range s.Worst(3) {
		got = append(got, r.Type)
	}
	if strings.Join(got, " ") != "small e d" || len(s.Worst(10)) != 6 {
		t.Errorf("%q, %d in all", got, len(s.Worst(10)))
	}
}
