package delivery

import (
	"testing"
	"time"
)

func TestAConnectionRestsForASecondLessThanTheReceiverSays(t *testing.T) {
	t.Parallel()
	const most = 30 * time.Second
	for header, want := range map[string]time.Duration{
		"":                             most,
		"timeout=5":                    4 * time.Second,
		"timeout=5, max=100":           4 * time.Second,
		"max=100,TIMEOUT = 5":          4 * time.Second,
		`timeout="7"`:                  6 * time.Second,
		"timeout=1":                    0,
		"timeout=0":                    0,
		"timeout=600":                  most,
		"timeout=99999999999999999999": most,
		"timeout":                      most,
		"timeout=":                     most,
		"timeout=-1":                   most,
		"timeout=x":                    most,
		"max=1":                        most,
		"timeout=9, timeout=3":         2 * time.Second,
	} {
		if got := IdleLimit(header, most); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

func TestALostRequestOnAKeptConnectionIsRepeatedAtOnceAndCountsNowhere(t *testing.T) {
	t.Parallel()
	for _, attempt := range []int{1, 50} { // whatever the schedule has left
		d := Decide(Policy{}, attempt, Result{Failure: FailReset, Stale: true}, 0.5)
		if d.Status != Retrying || !d.Repeat || d.RetryIn != 0 || d.Class != Neutral || d.LaneWait != 0 {
			t.Errorf("attempt %d: %+v", attempt, d)
		}
	}
	if d := Decide(Policy{}, 50, Result{Failure: FailReset}, 0.5); d.Repeat || d.Status != Failed {
		t.Errorf("a reset of a new connection: %+v", d)
	}
}
