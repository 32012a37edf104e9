package worker

import (
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// TestSilenceCountsOnlyWhileAWorkerListens: the heartbeats (seconds, count) of another worker that a worker sees, and
// when it declares the other dead.
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
				silent := m.observe([]sql.LiveWorkersRow{{ID: m.current, Beat: 1}, {ID: other, Name: "other", Beat: l.beat}},
					start.Add(time.Duration(l.at)*time.Second))
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

// The console's view of workers and lanes: a dead worker is listed for a day, however long it ran, and a lane shows
// since when it is owned.
func TestOperatorsSeeWhoDiedAndSinceWhenALaneIsHeld(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	me := db.NewID()
	h.exec(`INSERT INTO workers (id, name, dead, started_at, beat_at) VALUES ($1, 'died', true, now() - interval '30 days', now() - interval '23 hours'),
		($2, 'died long ago', true, now() - interval '30 days', now() - interval '25 hours'), ($3, 'of an older version', true, now() - interval '25 hours', NULL)`, db.NewID(), db.NewID(), db.NewID())
	ep := h.endpoint(h.tenant(), "https://example.com/", nil)
	err := h.db.Worker(t.Context(), func(q *sql.Queries) error {
		if err := q.ForgetDeadWorkers(t.Context()); err != nil {
			return err
		}
		if err := q.RegisterWorker(t.Context(), me, "me"); err != nil {
			return err
		}
		leased, err := q.LeaseLanes(t.Context(), me, []id.UUID{ep})
		if len(leased) != 1 {
			t.Errorf("%d lanes are leased", len(leased))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := h.count("SELECT count(*) FROM workers WHERE name IN ('died', 'me')"); n != 2 || h.count("SELECT count(*) FROM workers") != 2 {
		t.Errorf("%d of 2 workers are seen", n)
	}
	if n := h.count("SELECT count(*) FROM workers w JOIN lanes l ON l.owner = w.id WHERE w.beat_at = l.leased_at AND now() - w.beat_at < interval '1 minute'"); n != 1 {
		t.Error("the lane does not tell since when it is held, or the worker when it last beat")
	}
}
