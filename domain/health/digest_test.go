package health_test

import (
	"testing"
	"time"

	"posthorn/domain/health"
)

func TestADigestGoesAtMostOncePerUTCDayAndOnlyWithAReason(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 10*3600)
	well := health.Inputs{Day: attempts(999, 1000)}
	failing := health.Inputs{FailedDeliveries: 1}
	degraded := health.Inputs{BreakersOpen: 1}
	critical := health.Inputs{Disabled: 1}
	today := health.DigestDay(noon)
	tests := []struct {
		name      string
		in        health.Inputs
		last, now time.Time
		want      bool
	}{
		{"all is well", well, time.Time{}, noon, false},
		{"degraded, none yet", degraded, time.Time{}, noon, true},
		{"critical, none yet", critical, time.Time{}, noon, true},
		{"a delivery failed for good", failing, time.Time{}, noon, true},
		{"one today", degraded, today, noon, false},
		{"one this very moment", critical, noon, noon, false},
		{"one today, at the day's first moment", degraded, today, today, false},
		{"one today, at the day's last moment", degraded, today, today.Add(24*hour - 1), false},
		{"one yesterday, at the first moment of today", degraded, today.Add(-1), today, true},
		{"one yesterday, and all is well", well, today.AddDate(0, 0, -1), noon, false},
		{"one last year", failing, today.AddDate(-1, 0, 0), noon, true},
		{"the clock was put back over midnight", critical, today, today.Add(-1), false},
		{"the clock was put back a month", critical, today, today.AddDate(0, -1, 0), false},
		{"it is another day in the east, but not in UTC", degraded, today, today.Add(20 * hour).In(east), false},
		{"it is still the same day in the east, but not in UTC", degraded, today, today.Add(24 * hour).In(east), true},
		{"a day that was kept in another zone", degraded, today.Add(23 * hour).In(east), today.Add(24 * hour), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := health.ShouldDigest(health.Summarise(tt.in), tt.last, tt.now); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestAWeekOfFailuresMakesSevenDigests(t *testing.T) {
	t.Parallel()
	s := health.Summarise(health.Inputs{BreakersOpen: 1})
	var last time.Time
	n := 0
	start := health.DigestDay(noon).Add(37 * time.Minute)
	for now := start; now.Before(start.AddDate(0, 0, 7)); now = now.Add(hour) {
		if health.ShouldDigest(s, last, now) {
			last, n = health.DigestDay(now), n+1
		}
	}
	if n != 7 {
		t.Errorf("%d digests in 7 days", n)
	}
}
