package quota_test

import (
	"testing"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/quota"
)

func TestTheSizeOfAnEventIsLimitedWhereSomebodySaysSo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		platform, tenant string
		want             int
	}{
		{"", "{}", 0},
		{`{"limits":{"max_payload":2048}}`, `{}`, 2048},
		{`{"limits":{"max_payload":2048}}`, `{"limits":{"max_payload":4096}}`, 4096},
		{"{}", `{"limits":{"max_payload":1}}`, 0},
		{"junk", `{"limits":{"max_payload":"x"}}`, 0},
	} {
		if got := quota.Read([]byte(tt.platform), []byte(tt.tenant)); got.MaxPayload != tt.want ||
			got.EventsPerMonth != 0 {
			t.Errorf("%s over %s: %+v", tt.tenant, tt.platform, got)
		}
	}
	if got := quota.Read([]byte(`{"limits":{"events_per_second":7,"events_per_month":9}}`), []byte(`{"limits":{"events_per_second":0}}`)); got.EventsPerSecond != 0 || got.EventsPerMonth != 9 {
		t.Errorf("%+v", got)
	}
}

func TestRefusalsSayWhenThereIsRoomAgain(t *testing.T) {
	t.Parallel()
	l := quota.Limits{EventsPerSecond: 10, EventsPerMonth: 100, MaxPayload: 2048}
	now := time.Date(2031, 12, 31, 23, 59, 0, 0, time.FixedZone("x", 3600)) // 22:59 UTC
	r := l.OverMonth(now)
	if want := 3661; r.Reset != want || r.Fault.RetryAfter != want || r.Limit != 100 {
		t.Errorf("%+v", r)
	}
	if got := quota.Resets(now); !got.Equal(time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("resets at %s", got)
	}
	var err error = l.OverSecond()
	if !fault.Is(err, "events_per_second_limit") || fault.As(err).Kind != fault.Limited {
		t.Errorf("%v", err)
	}
	if l.CheckPayload(2048) != nil || !fault.Is(l.CheckPayload(2049), "payload_too_large") || (quota.Limits{}).CheckPayload(1<<20) != nil {
		t.Error("payload")
	}
}

func TestTheStagesOfAMonth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit, used int64
		want        quota.Stage
	}{
		{100, 79, quota.Below},
		{100, 80, quota.High},
		{100, 99, quota.High},
		{100, 100, quota.Reached},
		{100, 101, quota.Reached},
		{1, 0, quota.Below},
		{1, 1, quota.Reached},
		{3, 2, quota.Below},
		{4, 3, quota.Below},
		{6, 5, quota.High},
		{0, 1 << 40, quota.Below},
	} {
		if got := (quota.Limits{EventsPerMonth: int(tt.limit)}).StageOf(tt.used); got != tt.want {
			t.Errorf("%d of %d: %q, want %q", tt.used, tt.limit, got, tt.want)
		}
	}
}
