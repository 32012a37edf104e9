package health_test

import (
	"slices"
	"testing"

	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/health"
)

func TestEveryStateAnswersEveryCauseAsTheDesignSays(t *testing.T) {
	t.Parallel()
	const (
		unverified, active, paused, disabled = endpoint.Unverified, endpoint.Active, endpoint.Paused, endpoint.Disabled
	)
	to := func(s endpoint.Status) endpoint.Change { return endpoint.Change{To: s} }
	verify := func(s endpoint.Status) endpoint.Change { return endpoint.Change{To: s, Verify: true} }
	refused := endpoint.Change{}
	want := map[health.Cause]map[endpoint.Status]endpoint.Change{
		health.Pause:  {unverified: refused, active: to(paused), paused: to(paused), disabled: refused},
		health.Resume: {unverified: refused, active: to(active), paused: to(active), disabled: verify(disabled)},
		health.Disable: {
			unverified: to(unverified), active: to(disabled), paused: to(paused),
			disabled: to(disabled),
		},
		health.Verified: {unverified: to(active), active: to(active), paused: to(paused), disabled: to(active)},
		health.Verify: {
			unverified: verify(unverified), active: verify(active), paused: verify(paused),
			disabled: verify(disabled),
		},
		health.URLChanged: {
			unverified: verify(unverified), active: verify(unverified), paused: verify(unverified),
			disabled: verify(unverified),
		},
	}
	var moves []health.Arrow
	tried := 0
	for _, from := range endpoint.Statuses() {
		for _, by := range health.Causes() {
			w, known := want[by][from]
			if !known {
				t.Fatalf("nobody said what %s does to %s", by, from)
			}
			tried++
			got, err := health.Next(from, by)
			if (w == refused) != (err != nil) || got != w {
				t.Errorf("%s by %s: got %+v, %v; want %+v", from, by, got, err, w)
			}
			if err != nil && fault.As(err).Kind != fault.Conflict {
				t.Errorf("%s by %s: %v is no conflict", from, by, err)
			}
			if w != refused && (w.To != from || w.Verify) {
				moves = append(moves, health.Arrow{From: from, By: by, Change: w})
			}
		}
	}
	if got := health.Arrows(); tried != 24 || !slices.Equal(got, moves) {
		t.Errorf("%d tried; the table is\n%+v, want\n%+v", tried, got, moves)
	}
}

func TestAnUnknownCauseChangesNothing(t *testing.T) {
	t.Parallel()
	got, err := health.Next(endpoint.Active, "whim")
	if got != (endpoint.Change{To: endpoint.Active}) || !fault.Is(err, "cause_unknown") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestADisabledEndpointComesBackByProvingItselfAlone(t *testing.T) {
	t.Parallel()
	for _, a := range health.Arrows() {
		if a.From == endpoint.Disabled && a.To == endpoint.Active && a.By != health.Verified {
			t.Errorf("%+v", a)
		}
	}
	at := endpoint.Active
	for _, by := range []health.Cause{
		health.Disable, health.Resume, health.Verified, health.Pause, health.Disable,
		health.Resume, health.URLChanged, health.Verified,
	} {
		c, err := health.Next(at, by)
		if err != nil {
			t.Fatalf("%s while %s: %v", by, at, err)
		}
		at = c.To
	}
	if at != endpoint.Active {
		t.Errorf("ended %s", at)
	}
}

func TestOnlyAnActiveEndpointReceives(t *testing.T) {
	t.Parallel()
	for _, s := range endpoint.Statuses() {
		if health.Holds(s) != (s != endpoint.Active) {
			t.Errorf("%s holds: %t", s, health.Holds(s))
		}
	}
}
