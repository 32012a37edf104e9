package retry_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"posthorn/domain/fault"
	"posthorn/domain/retry"
)

// The table as an operator reads it. Each line: name, attempts, jitter, and the earliest, planned and latest wait after
// each attempt.
const table = `
standard     10 attempts, 20%:  5s (4s..6s), 5m0s (4m0s..6m0s), 30m0s (24m0s..36m0s), 2h0m0s (1h36m0s..2h24m0s), 5h0m0s (4h0m0s..6h0m0s), 10h0m0s (8h0m0s..12h0m0s), 14h0m0s (11h12m0s..16h48m0s), 20h0m0s (16h0m0s..24h0m0s), 24h0m0s (19h12m0s..24h0m0s)
exponential  12 attempts, full: 1m0s (1s..1m0s), 2m0s (1s..2m0s), 4m0s (1s..4m0s), 8m0s (1s..8m0s), 16m0s (1s..16m0s), 32m0s (1s..32m0s), 1h4m0s (1s..1h4m0s), 2h8m0s (1s..2h8m0s), 4h16m0s (1s..4h16m0s), 8h32m0s (1s..8h32m0s), 17h4m0s (1s..17h4m0s)
five          6 attempts, 10%:  1m0s (54s..1m6s), 5m0s (4m30s..5m30s), 30m0s (27m0s..33m0s), 2h0m0s (1h48m0s..2h12m0s), 12h0m0s (10h48m0s..13h12m0s)
short         4 attempts, 10%:  5s (4.5s..5.5s), 30s (27s..33s), 5m0s (4m30s..5m30s)
quick         3 attempts, 10%:  1s (1s..1.1s), 4s (3.6s..4.4s)
daily         6 attempts, 25%:  1m0s (45s..1m15s), 5m0s (3m45s..6m15s), 30m0s (22m30s..37m30s), 2h0m0s (1h30m0s..2h30m0s), 24h0m0s (18h0m0s..24h0m0s)
seven         7 attempts, 10%:  30s (27s..33s), 2m0s (1m48s..2m12s), 10m0s (9m0s..11m0s), 1h0m0s (54m0s..1h6m0s), 6h0m0s (5h24m0s..6h36m0s), 24h0m0s (21h36m0s..24h0m0s)
once          1 attempts, 0%:  
`

func TestTheScheduleTableIsThePromisedOne(t *testing.T) {
	t.Parallel()
	almostOne := math.Nextafter(1, 0)
	var got strings.Builder
	got.WriteByte('\n')
	for _, name := range retry.Names() {
		s, ok := retry.Named(name)
		if !ok || s.Name != name {
			t.Fatalf("Named(%q) = %+v, %v", name, s, ok)
		}
		jitter := fmt.Sprintf("%.0f%%: ", s.Jitter*100)
		if s.Full {
			jitter = "full:"
		}
		fmt.Fprintf(&got, "%-12s %2d attempts, %s ", name, s.Attempts(), jitter)
		for attempt, planned := range s.Delays {
			early, _ := s.Delay(attempt+1, 0)
			late, _ := s.Delay(attempt+1, almostOne)
			if attempt > 0 {
				got.WriteString(", ")
			}
			fmt.Fprintf(&got, "%s (%s..%s)", planned, min(early, late).Round(time.Millisecond), max(early, late).Round(time.Millisecond))
		}
		got.WriteByte('\n')
	}
	if got.String() != table {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), table)
	}
}

func TestTheDefaultScheduleExists(t *testing.T) {
	t.Parallel()
	if retry.Names()[0] != retry.Default {
		t.Errorf("the first schedule is %q, not the default", retry.Names()[0])
	}
	if _, ok := retry.Named("no-such"); ok {
		t.Error("found a schedule that does not exist")
	}
}

func TestChangingANamedScheduleChangesNobodyElses(t *testing.T) {
	t.Parallel()
	mine, _ := retry.Named("short")
	mine.Delays[0] = time.Hour
	if theirs, _ := retry.Named("short"); theirs.Delays[0] != 5*time.Second {
		t.Errorf("the shared table changed: %v", theirs.Delays)
	}
	delays := []time.Duration{time.Second, time.Minute}
	custom, err := retry.Custom(delays, 0)
	if err != nil {
		t.Fatal(err)
	}
	delays[0] = time.Hour
	if custom.Delays[0] != time.Second {
		t.Error("a custom schedule shares its caller's slice")
	}
}

func TestAScheduleEndsAfterItsLastDelay(t *testing.T) {
	t.Parallel()
	for _, name := range retry.Names() {
		s, _ := retry.Named(name)
		if _, more := s.Delay(s.Attempts()-1, 0.5); !more && s.Attempts() > 1 {
			t.Errorf("%s ends one attempt early", name)
		}
		for _, attempt := range []int{s.Attempts(), s.Attempts() + 1, math.MaxInt} {
			if d, more := s.Delay(attempt, 0.5); more || d != 0 {
				t.Errorf("%s goes on after attempt %d: %s", name, attempt, d)
			}
		}
	}
	if _, more := (retry.Schedule{}).Delay(1, 0); more {
		t.Error("the zero schedule retries")
	}
}

func TestCustomSchedulesKeepTheirRange(t *testing.T) {
	t.Parallel()
	repeat := func(d time.Duration, n int) []time.Duration {
		all := make([]time.Duration, n)
		for i := range all {
			all[i] = d
		}
		return all
	}
	tests := []struct {
		name   string
		delays []time.Duration
		jitter float64
		field  string // empty: accepted
	}{
		{"the shortest", repeat(time.Second, 1), 0, ""},
		{"the longest", repeat(24*time.Hour, 20), 1, ""},
		{"none: a single attempt", nil, 0.1, ""},
		{"one too many", repeat(time.Minute, 21), 0.1, "retry_policy.delays"},
		{"too short", repeat(time.Second-1, 1), 0.1, "retry_policy.delays"},
		{"too long", repeat(24*time.Hour+1, 1), 0.1, "retry_policy.delays"},
		{"negative", repeat(-time.Minute, 1), 0.1, "retry_policy.delays"},
		{"a bad one among good ones", []time.Duration{time.Minute, 0, time.Minute}, 0.1, "retry_policy.delays"},
		{"negative jitter", repeat(time.Minute, 1), -0.01, "retry_policy.jitter"},
		{"jitter over one", repeat(time.Minute, 1), 1.01, "retry_policy.jitter"},
		{"jitter that is no number", repeat(time.Minute, 1), math.NaN(), "retry_policy.jitter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := retry.Custom(tt.delays, tt.jitter)
			if tt.field == "" {
				if err != nil || s.Name != "custom" || s.Attempts() != len(tt.delays)+1 {
					t.Fatalf("Custom = %+v, %v", s, err)
				}
				return
			}
			f := fault.As(err)
			if f == nil || len(f.Fields) != 1 || f.Fields[0].Name != tt.field || f.Kind != fault.Invalid {
				t.Fatalf("error %v, want one about %s", err, tt.field)
			}
		})
	}
}

func TestEveryWaitStaysWithinItsJitterAndNeverUnderASecond(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := retry.Schedule{
			Delays: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
				return time.Duration(rapid.Int64Range(int64(retry.MinDelay), int64(retry.MaxDelay)).Draw(t, "delay"))
			}), 1, retry.MaxDelays).Draw(t, "delays"),
			Jitter: rapid.Float64Range(0, 1).Draw(t, "jitter"),
			Full:   rapid.Bool().Draw(t, "full"),
		}
		attempt := rapid.IntRange(-1, 25).Draw(t, "attempt")
		random := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "random")
		d, more := s.Delay(attempt, random)
		if want := attempt <= len(s.Delays); more != want {
			t.Fatalf("more = %v after attempt %d of %d", more, attempt, s.Attempts())
		}
		if !more {
			return
		}
		planned := float64(s.Delays[max(attempt, 1)-1])
		low, high := planned*(1-s.Jitter), min(planned*(1+s.Jitter), float64(retry.MaxDelay))
		if s.Full {
			low, high = 0, planned
		}
		// One microsecond for what the arithmetic rounds.
		if got := float64(d); d < retry.MinDelay || got > high+1e3 || (d > retry.MinDelay && got < low-1e3) {
			t.Fatalf("%s is outside %s..%s", d, time.Duration(low), time.Duration(high))
		}
	})
}

func TestAWaitGrowsWithItsDrawExceptUnderFullJitterWhereItShrinks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(retry.Names()).Draw(t, "name")
		s, _ := retry.Named(name)
		if s.Attempts() == 1 {
			return
		}
		attempt := rapid.IntRange(1, s.Attempts()-1).Draw(t, "attempt")
		a := rapid.Float64Range(0, 1).Draw(t, "a")
		b := rapid.Float64Range(a, 1).Draw(t, "b")
		first, _ := s.Delay(attempt, a)
		second, _ := s.Delay(attempt, b)
		if s.Full {
			first, second = second, first
		}
		if first > second {
			t.Fatalf("%s: %s from %v, %s from %v", name, first, a, second, b)
		}
	})
}

// The longest delay with the widest jitter is still spread, and never over the limit.
func TestNoWaitIsLongerThanADayAfterJitter(t *testing.T) {
	t.Parallel()
	s, err := retry.Custom([]time.Duration{retry.MaxDelay}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for random, want := range map[float64]time.Duration{
		0:    retry.MinDelay,
		0.5:  12 * time.Hour,
		0.75: 18 * time.Hour,
		1:    24 * time.Hour,
	} {
		if got, _ := s.Delay(1, random); got != want {
			t.Errorf("drawn %v: %s, want %s", random, got, want)
		}
	}
	standard, _ := retry.Named(retry.Default)
	if got, _ := standard.Delay(9, 1); got != 24*time.Hour {
		t.Errorf("the last wait of standard is up to %s", got)
	}
}

func TestADrawOutsideItsRangeStillGivesAWaitWithinBounds(t *testing.T) {
	t.Parallel()
	for _, random := range []float64{-1, 2, math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, name := range retry.Names() {
			s, _ := retry.Named(name)
			for i, planned := range s.Delays {
				d, more := s.Delay(i+1, random)
				if !more || d < retry.MinDelay || float64(d) > float64(planned)*(1+s.Jitter)+1 {
					t.Errorf("%s after attempt %d with %v: %s, %v", name, i+1, random, d, more)
				}
			}
		}
	}
}
