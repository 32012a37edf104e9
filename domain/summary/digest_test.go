package summary_test

import (
	"testing"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/health"
	"posthorn/domain/summary"
)

const hour = time.Hour

func TestADigestGoesAtMostOncePerUTCDayAndOnlyWithAReason(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 10*3600)
	well := of(in("ep", condition.Active, attempts(999, 1000)))
	failed := summary.Facts{FailedDeliveries: 1}
	degraded := of(failing("ep", health.Attempts{}))
	gone := in("ep", condition.Disabled, health.Attempts{})
	gone.Disabled = health.Gone
	critical := of(gone)
	old := in("ep", condition.OnHold, health.Attempts{})
	old.Condition.Since = noon.Add(-25 * hour)
	paused := of(old)
	today := summary.DigestDay(noon)
	tests := []struct {
		name      string
		in        summary.Facts
		last, now time.Time
		want      bool
	}{
		{"all is well", well, time.Time{}, noon, false},
		{"degraded, none yet", degraded, time.Time{}, noon, true},
		{"critical, none yet", critical, time.Time{}, noon, true},
		{"a delivery failed permanently", failed, time.Time{}, noon, true},
		{"only a pause that began before yesterday", paused, time.Time{}, noon, false},
		{"one today", degraded, today, noon, false},
		{"one this very moment", critical, noon, noon, false},
		{"one today, at the day's first moment", degraded, today, today, false},
		{"one today, at the day's last moment", degraded, today, today.Add(24*hour - 1), false},
		{"one yesterday, at the first moment of today", degraded, today.Add(-1), today, true},
		{"one yesterday, and all is well", well, today.AddDate(0, 0, -1), noon, false},
		{"one last year", failed, today.AddDate(-1, 0, 0), noon, true},
		{"the clock was put back over midnight", critical, today, today.Add(-1), false},
		{"the clock was put back a month", critical, today, today.AddDate(0, -1, 0), false},
		{"it is another day in the east, but not in UTC", degraded, today, today.Add(20 * hour).In(east), false},
		{"it is still the same day in the east, but not in UTC", degraded, today, today.Add(24 * hour).In(east), true},
		{"a day that was kept in another zone", degraded, today.Add(23 * hour).In(east), today.Add(24 * hour), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := summary.ShouldDigest(summary.Of(tt.in), tt.last, tt.now); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestAWeekOfFailuresMakesSevenDigests(t *testing.T) {
	t.Parallel()
	s := summary.Of(of(failing("ep", health.Attempts{})))
	var last time.Time
	n := 0
	start := summary.DigestDay(noon).Add(37 * time.Minute)
	for now := start; now.Before(start.AddDate(0, 0, 7)); now = now.Add(hour) {
		if summary.ShouldDigest(s, last, now) {
			last, n = summary.DigestDay(now), n+1
		}
	}
	if n != 7 {
		t.Errorf("%d digests in 7 days", n)
	}
}
