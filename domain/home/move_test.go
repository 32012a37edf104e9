package home_test

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/home"
)

func TestAMoveIsOverdueOnceItsCommandHasBeenMissingForLong(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		stopped time.Duration // before now; 0: its command runs
		closed  bool
		want    bool
	}{
		{0, false, false},
		{0, true, false},
		{59 * time.Second, true, false},
		{time.Minute, true, true},
		{59 * time.Minute, false, false},
		{time.Hour, false, true},
	} {
		m := home.Move{Closed: c.closed}
		if c.stopped > 0 {
			m.StoppedAt = now.Add(-c.stopped)
		}
		if m.Overdue(now) != c.want {
			t.Errorf("%+v: overdue is not %v", c, c.want)
		}
	}
}

func TestAMoveSaysHowToFinishAndHowToEndIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		move          home.Move
		title, action []string
	}{
		{
			home.Move{Tenant: "ten_1", Name: "Acme", Home: "eu2", Closed: true, KeptLog: 16e6},
			[]string{"Acme", "to the home eu2", "accepts no events"},
			[]string{"posthorn tenant move ten_1 --to eu2", "--rollback", "16 MB"},
		},
		{
			home.Move{Tenant: "ten_1", Home: "eu1", In: true},
			[]string{"ten_1", "from the home eu1 has stopped."},
			[]string{"In the home eu1", "--rollback"},
		},
	} {
		for _, text := range c.title {
			if !strings.Contains(c.move.Title(), text) {
				t.Errorf("%q lacks %q", c.move.Title(), text)
			}
		}
		for _, text := range c.action {
			if !strings.Contains(c.move.Action(), text) {
				t.Errorf("%q lacks %q", c.move.Action(), text)
			}
		}
	}
}
