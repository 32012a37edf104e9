package home_test

import (
	"testing"
	"time"

	"posthorn/domain/home"
)

func TestAHomesStateIsWhatItLastSaidAndSinceWhen(t *testing.T) {
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
		{&home.Report{Release: "1"}, home.NoDatabase, 4},
		{nil, home.Down, 5},
		{&home.Report{Release: "1"}, home.NoDatabase, 6},
		{&home.Report{Release: "2", Database: true}, home.NoWorkers, 7},
		{well(nil), home.Operational, 8},
	} {
		s = s.After(step.got, at(i))
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
