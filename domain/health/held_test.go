package health_test

import (
	"testing"
	"time"

	"posthorn/domain/endpoint"
	"posthorn/domain/health"
)

func TestHeldDeliveriesAreKeptAsLongAsTheirEndpointAllows(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, tt := range []struct {
		status    endpoint.Status
		retention int
		hold      time.Duration
		notice    time.Duration
	}{
		{endpoint.Unverified, 90, 7 * day, 5 * day},
		{endpoint.Unverified, 3, 3 * day, 36 * time.Hour},
		{endpoint.Paused, 90, 90 * day, 88 * day},
		{endpoint.Disabled, 90, 90 * day, 88 * day},
		{endpoint.Disabled, 4, 4 * day, 2 * day},
		{endpoint.Disabled, 1, day, 12 * time.Hour},
	} {
		hold := health.HoldFor(tt.status, tt.retention)
		if got := health.NoticeAfter(hold); hold != tt.hold || got != tt.notice {
			t.Errorf("%s with %d days: held for %v, told after %v; want %v and %v", tt.status, tt.retention, hold, got, tt.hold, tt.notice)
		}
	}
}
