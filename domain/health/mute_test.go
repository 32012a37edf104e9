package health_test

import (
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/health"
)

func TestAMuteHoldsUntilItsEndOrTheRecovery(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	forever, timed := health.Mute{At: now.Add(-time.Hour)}, health.Mute{At: now.Add(-time.Hour), Until: now.Add(time.Minute)}
	for _, tt := range []struct {
		name  string
		mute  health.Mute
		after time.Duration
		holds bool
	}{
		{"none", health.Mute{}, 0, false},
		{"before its end", timed, time.Minute - 1, true},
		{"at its end", timed, time.Minute, false},
		{"without an end", forever, 1000 * time.Hour, true},
	} {
		if got := tt.mute.Holds(now.Add(tt.after)); got != tt.holds {
			t.Errorf("%s: holds %t, want %t", tt.name, got, tt.holds)
		}
	}
	well := delivery.Counters{LastSuccessAt: now}
	bad := health.Record{Day: health.Rate{Succeeded: 1, Total: 2}, Failed: now}
	for _, tt := range []struct {
		name      string
		mute      health.Mute
		counters  delivery.Counters
		record    health.Record
		recovered bool
	}{
		{"a success", forever, well, health.Record{}, true},
		{"a success, and still degraded", forever, well, bad, false},
		{"a success before the mute", forever, delivery.Counters{LastSuccessAt: now.Add(-2 * time.Hour)}, health.Record{}, false},
		{"a failure since", forever, delivery.Counters{LastSuccessAt: now, ConsecutiveFailures: 1}, health.Record{}, false},
		{"for a time", timed, well, health.Record{}, false},
		{"none", health.Mute{}, well, health.Record{}, false},
	} {
		if got := tt.mute.Recovered(tt.counters, tt.record, now); got != tt.recovered {
			t.Errorf("%s: recovered %t, want %t", tt.name, got, tt.recovered)
		}
	}
}

func TestAMuteNeedsAnEndThatCanCome(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name     string
		until    time.Time
		troubled bool
		code     string
	}{
		{"an hour", now.Add(time.Hour), false, ""},
		{"30 days", now.Add(30 * 24 * time.Hour), false, ""},
		{"31 days", now.Add(31 * 24 * time.Hour), true, "invalid"},
		{"now", now, true, "invalid"},
		{"until it recovers", time.Time{}, true, ""},
		{"until it recovers, though it is well", time.Time{}, false, "endpoint_not_failing"},
	} {
		err := health.CheckMute(tt.until, tt.troubled, now)
		got := ""
		if f := fault.As(err); f != nil {
			got = f.Code
			if len(f.Fields) > 0 {
				got = "invalid"
			}
		}
		if got != tt.code {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.code)
		}
	}
}
