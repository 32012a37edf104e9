package home_test

import (
	"testing"
	"time"

	"posthorn/domain/home"
)

func TestAHomesStateIsWhatItSaysTwiceAndSinceWhen(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	s := home.Seen{State: home.Unknown}
	for i, step := range []struct {
		got, want home.State
		since     int
	}{
		{home.Down, home.Down, 0},
		{home.Operational, home.Operational, 1},
		{home.Down, home.Operational, 1}, // once: a doubt
		{home.Operational, home.Operational, 1},
		{home.NotReady, home.Operational, 1},
		{home.NotReady, home.NotReady, 5},
		{home.Down, home.Down, 6},
		{home.Operational, home.Operational, 7},
	} {
		s = s.After(step.got, "1.2", at(i))
		if s.State != step.want || !s.Since.Equal(at(step.since)) {
			t.Errorf("step %d: %s since %s, want %s since minute %d", i, s.State, s.Since, step.want, step.since)
		}
	}
	if !s.SeenAt.Equal(at(7)) || s.Release != "1.2" {
		t.Errorf("seen at %s, release %q", s.SeenAt, s.Release)
	}
}

func TestEachStateHasAWordAndABadOneAMeaning(t *testing.T) {
	t.Parallel()
	for _, s := range []home.State{home.Operational, home.NotReady, home.Down, home.Unknown} {
		if s.Word() == "" || s.Bad() && s.Means() == "" {
			t.Errorf("%s: %q, %q", s, s.Word(), s.Means())
		}
	}
}
