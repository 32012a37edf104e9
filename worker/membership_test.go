package worker

import (
	"testing"
	"time"

	"posthorn/db"
)

// TestSilenceCountsOnlyWhileAWorkerListens: the beats of (seconds, beat) that a worker sees of another, and when it takes
// it for dead.
func TestSilenceCountsOnlyWhileAWorkerListens(t *testing.T) {
	t.Parallel()
	type look struct {
		at   int
		beat int64
		dead bool
	}
	for _, c := range []struct {
		name  string
		looks []look
	}{
		{"it beats", []look{{0, 1, false}, {10, 2, false}, {20, 3, false}, {30, 4, false}, {40, 5, false}}},
		{"it falls silent", []look{{0, 1, false}, {5, 1, false}, {15, 1, false}, {25, 1, false}, {29, 1, false}, {30, 1, true}}},
		{"it is seen for the first time", []look{{100, 7, false}, {110, 7, false}, {120, 7, false}, {130, 7, true}}},
		{"the database was away", []look{{0, 1, false}, {5, 2, false}, {65, 2, false}, {70, 3, false}}},
		{"it died while the database was away", []look{{0, 1, false}, {60, 1, false}, {70, 1, false}, {80, 1, false}, {90, 1, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &membership{current: db.NewID()}
			other := db.NewID()
			start := time.Now()
			for _, l := range c.looks {
				silent := m.observe([]db.LiveWorkersRow{{ID: m.current, Beat: 1}, {ID: other, Name: "other", Beat: l.beat}}, start.Add(time.Duration(l.at)*time.Second))
				if dead := len(silent) == 1 && silent[0].ID == other; dead != l.dead {
					t.Fatalf("after %d s: dead %v, want %v", l.at, dead, l.dead)
				}
				if m.isAlone() {
					t.Fatal("it thinks that it is alone")
				}
			}
		})
	}
}
