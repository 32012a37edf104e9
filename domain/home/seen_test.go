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
	well := func(counts *home.Counts) *home.Report {
		return &home.Report{Release: "1", Database: true, Workers: 1, Counts: counts}
	}
	s := home.Seen{Name: "eu2"}
	if s.State() != home.Unknown {
		t.Errorf("before it is asked: %s", s.State())
	}
	for i, step := range []struct {
		got   *home.Report
		want  home.State
		since int
	}{
		{nil, home.Down, 0},
		{nil, home.Down, 0},
		{well(&home.Counts{Tenants: 7}), home.Operational, 2},
		{well(nil), home.Operational, 2},
		{&home.Report{Release: "1"}, home.Operational, 2}, // once: a doubt
		{well(nil), home.Operational, 2},
		{nil, home.Operational, 2},
		{&home.Report{Release: "1"}, home.NoDatabase, 6}, // twice: since the first
		{nil, home.Down, 8},
		{&home.Report{Release: "1"}, home.NoDatabase, 9},
		{&home.Report{Release: "2", Database: true}, home.NoWorkers, 10},
		{well(nil), home.Operational, 11},
	} {
		s = s.After(step.got, at(i), at(i))
		if s.State() != step.want || !s.Since.Equal(at(step.since)) {
			t.Errorf("step %d: %s since %v, want %s since %v", i, s.State(), s.Since, step.want, at(step.since))
		}
		if (step.want.Means() == "") == step.want.Bad() {
			t.Errorf("%s means %q", step.want, step.want.Means())
		}
	}
	if s.Last.Counts == nil || s.Last.Counts.Tenants != 7 || !s.CountsAt.Equal(at(2)) {
		t.Errorf("the last counts are not kept: %+v of %v", s.Last.Counts, s.CountsAt)
	}
}

func TestTwoQuestionsAtOnceAreOneDoubt(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	s := home.Seen{}.After(&home.Report{Database: true, Workers: 1}, at(0), at(0))
	for _, noted := range []int{3, 4} { // both were asked at 2
		if s = s.After(nil, at(2), at(noted)); s.State() != home.Operational || !s.Doubted.Equal(at(3)) {
			t.Fatalf("at %d: %s, doubted at %v", noted, s.State(), s.Doubted)
		}
	}
	if s = s.After(nil, at(4), at(6)); s.State() != home.Down || !s.Since.Equal(at(3)) || !s.Doubted.IsZero() {
		t.Errorf("asked again: %s since %v, doubted at %v", s.State(), s.Since, s.Doubted)
	}
}
