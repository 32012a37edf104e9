package health_test

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/health"
)

// attempts of which so many succeeded, the others answered 5xx.
func attempts(ok, total int64) health.Attempts {
	return health.Attempts{health.ClassOK: ok, health.ClassServer: total - ok}
}

func TestRatesReadInPercentAndNeverBetterThanTheyAre(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]health.Attempts{
		"-":      {},
		"100.0%": attempts(7, 7),
		"0.0%":   attempts(0, 7),
		"98.9%":  attempts(989, 1000),
		"99.9%":  attempts(999_999, 1_000_000),
		"66.6%":  {2, 0, 1},
		"14.2%":  {1, 1, 1, 1, 1, 1, 1},
		"50.0%":  {1, -5, 0, 1},
	} {
		if got := a.Rate().String(); got != want {
			t.Errorf("%v: got %s, want %s", a, got, want)
		}
	}
	if got := attempts(3, 4).Rate().Share(); got != 0.75 {
		t.Errorf("got %v", got)
	}
	if (health.Attempts{}).Rate().Known() || (health.Rate{}).Share() != 0 {
		t.Error("nothing has a rate")
	}
}

func TestSeveritiesHaveTheirWords(t *testing.T) {
	t.Parallel()
	for s, want := range map[health.Severity]string{health.OK: "ok", health.Warned: "warning", health.Critical: "critical", 9: "severity_9", -1: "severity_-1"} {
		if s.String() != want {
			t.Errorf("got %s, want %s", s, want)
		}
	}
}

func TestEveryProblemHasAnActionOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]health.Problem{}
	for _, p := range health.Problems() {
		action := p.Action()
		if other, twice := seen[action]; twice || !strings.HasSuffix(action, ".") {
			t.Errorf("%s: %q (also of %q)", p, action, other)
		}
		seen[action] = p
	}
	if len(seen) != 17 || health.Problem("").Action() != "" || health.Problem("whim").Action() != "" {
		t.Errorf("%d problems, or an action for none", len(seen))
	}
}

// An endpoint is degraded while it fails too often, and no longer once that is over.
func TestAnEndpointIsDegradedWhileItFailsTooOften(t *testing.T) {
	t.Parallel()
	bad, ago := health.Rate{Succeeded: 73, Total: 100}, func(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }
	for name, c := range map[string]struct {
		record         health.Record
		degraded, over bool
	}{
		"no attempts":                       {health.Record{}, false, true},
		"99 %":                              {health.Record{Day: health.Rate{Succeeded: 99, Total: 100}, Failed: ago(1)}, false, false},
		"under 99 %":                        {health.Record{Day: health.Rate{Succeeded: 98, Total: 100}, Failed: ago(1)}, true, false},
		"nothing ever succeeded":            {health.Record{Day: health.Rate{Total: 24}, Failed: ago(600)}, true, false},
		"failed last":                       {health.Record{Day: bad, Succeeded: ago(40), Failed: ago(30)}, true, false},
		"failed a moment ago":               {health.Record{Day: bad, Succeeded: ago(1), Failed: ago(15)}, true, false},
		"has succeeded for a while":         {health.Record{Day: bad, Succeeded: ago(1), Failed: ago(16)}, false, true},
		"its breaker closed":                {health.Record{Day: bad, Failed: ago(2), Since: ago(1)}, false, true},
		"failed again after it was resumed": {health.Record{Day: bad, Failed: ago(1), Since: ago(2)}, true, false},
	} {
		if got := c.record.Degraded(noon); got != c.degraded || c.record.Over(noon) != c.over {
			t.Errorf("%s: degraded %t, over %t", name, got, c.record.Over(noon))
		}
	}
}

// Responses that reject an event are in no counter: a day without a success says how many there were.
func TestADayWithoutASuccessCountsAsARowOfFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		day           health.Rate
		counted, want int
	}{
		"24 responses 422":        {health.Rate{Total: 24}, 0, 24},
		"longer than a day":       {health.Rate{Total: 24}, 30, 30},
		"one succeeded":           {health.Rate{Succeeded: 1, Total: 24}, 3, 3},
		"no attempts in the day":  {health.Rate{}, 3, 3},
		"no attempt whatever yet": {health.Rate{}, 0, 0},
	} {
		if got := (health.Record{Day: c.day}).InARow(c.counted); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
