package queue_test

import (
	"testing"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/health"
)

func TestTheRecordedBreakerCountsWhateverTheCountersSay(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	next := at.Add(8 * time.Minute)
	for _, tt := range []struct {
		name string
		h    sql.EndpointHealth
		want health.Breaker
	}{
		{"nothing", sql.EndpointHealth{}, health.Breaker{}},
		{"an endpoint without a breaker", sql.EndpointHealth{ConsecutiveFailures: 10, LastFailureAt: &at}, health.Breaker{}},
		{
			"open",
			sql.EndpointHealth{
				ConsecutiveFailures: 14,
				LastFailureAt:       &at,
				BreakerState:        health.Open,
				OpenedAt:            &at,
				NextProbeAt:         &next,
				Probes:              3,
			},
			health.Breaker{State: health.Open, OpenedAt: at, NextProbeAt: next, Probes: 3},
		},
	} {
		if got := endpoints.Breaker(tt.h); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
