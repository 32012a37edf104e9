package delivery

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"posthorn/domain/id"
)

func TestALinkOpensWhileItsDeliveryIsUnderWayAndAnHourAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		status Status
		ago    time.Duration
		want   error
	}{
		{Pending, 0, nil},
		{Retrying, 100 * time.Hour, nil}, // a moment that a state without an end does not have
		{Held, 0, nil},
		{Delivered, LinkLife - time.Second, nil},
		{Delivered, LinkLife, ErrLinkEnded},
		{Failed, time.Minute, nil},
		{Failed, 2 * LinkLife, ErrLinkEnded},
		{Delivered, -time.Minute, nil}, // a clock that differs
		{Canceled, time.Second, ErrLinkVoid},
		{Expired, time.Second, ErrLinkVoid},
	} {
		if err := LinkFault(c.status, now.Add(-c.ago), now); !errors.Is(err, c.want) {
			t.Errorf("%s, ended %v ago: %v, want %v", c.status, c.ago, err, c.want)
		}
	}
}

func TestALinkNamesOneDeliveryOfOneTenant(t *testing.T) {
	t.Parallel()
	l := Link{Tenant: id.UUID{1, 2, 3}, Delivery: id.UUID{4, 5, 6}}
	if got, ok := ParseLink(l.Text()); !ok || got != l {
		t.Errorf("%v is read as %v", l, got)
	}
	for _, wrong := range [][]byte{nil, l.Text()[:31], append(l.Text(), 0), bytes.Repeat([]byte{0}, 64)} {
		if got, ok := ParseLink(wrong); ok {
			t.Errorf("%d bytes are read as %v", len(wrong), got)
		}
	}
}
