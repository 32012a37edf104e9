package handlers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"posthorn/domain/id"
)

func TestAFullQueueRejectsAtOnceAndAPlaceGoesToWhoWaits(t *testing.T) {
	t.Parallel()
	q := newQueue(1, 1)
	leave, err := q.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	entered := make(chan error)
	go func() {
		leave, err := q.enter(context.WithoutCancel(t.Context()))
		if err == nil {
			leave()
		}
		entered <- err
	}()
	for len(q.waiting) == 0 { // until the other waits
		runtime.Gosched()
	}
	started := time.Now()
	if _, err := q.enter(t.Context()); !errors.Is(err, ErrBusy) || time.Since(started) > time.Second {
		t.Errorf("a third: %v after %s", err, time.Since(started))
	}
	leave()
	if err := <-entered; err != nil {
		t.Errorf("who waited: %v", err)
	}
	if len(q.places) != 0 || len(q.waiting) != 0 {
		t.Errorf("%d places are held, and %d wait", len(q.places), len(q.waiting))
	}
}

func TestStrangersWithManyAddressesAreLimitedTogether(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	a := NewAddresses(func() time.Time { return now })
	taken := 0
	for i := range 3000 {
		switch err := a.Take(fmt.Sprintf("198.51.%d.%d", i/250, i%250)); {
		case err == nil:
			taken++
		case !errors.Is(err, ErrBusy):
			t.Fatal(err)
		}
	}
	if taken != allAddressesRate.Burst {
		t.Errorf("%d tries at one moment, want %d", taken, allAddressesRate.Burst)
	}
	now = now.Add(time.Second)
	if err := a.Take("203.0.113.1"); err != nil {
		t.Errorf("a second later: %v", err)
	}
}

func TestOnceHalfIsInUseOneUserGetsLittle(t *testing.T) {
	t.Parallel()
	few, all := errors.New("few"), errors.New("all")
	s := NewShares(Share{1000, all}, Share{200, few})
	s.Scarce = 20
	for i := range 2 {
		if err := s.Hold(id.UUID{byte(i)}, 200); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Hold(id.UUID{2}, 200); !errors.Is(err, few) {
		t.Errorf("a third user past the half: %v", err)
	}
	for i := range 60 {
		if err := s.Hold(id.UUID{byte(10 + i)}, 10); err != nil {
			t.Fatalf("user %d of little: %v", i, err)
		}
	}
	if err := s.Hold(id.UUID{99}, 1); !errors.Is(err, all) {
		t.Errorf("when all is in use: %v", err)
	}
}

func TestANetworkIsAnAddressOrASite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8:1:2::3", "2001:db8:1:ffff::1", true},
		{"2001:db8:1::", "2001:db8:2::", false},
		{"@", "unix", true},
	} {
		if same := Network(c.a) == Network(c.b); same != c.same {
			t.Errorf("%s and %s: the same %t", c.a, c.b, same)
		}
	}
	if Network("192.0.2.1").IsZero() || Network("").IsZero() {
		t.Error("a network is the zero id, which stands for none")
	}
}
