package worker

import (
	"testing"

	"posthorn/db"
	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/worker/lanes"
)

func TestAnOlderChangeOverwritesNoNewer(t *testing.T) {
	t.Parallel()
	l := &lanes.Lane{}
	ep := db.NewID()
	change := func(n int64, failures int, text string) *result {
		return &result{
			job: &lanes.Job{Lane: l},
			health: &health.Change{
				EndpointID: ep,
				N:          n,
				Counters:   delivery.Counters{ConsecutiveFailures: failures},
				LastError:  health.LastError{Text: text},
			},
		}
	}
	rec := batchOf(db.NewID(), []*result{change(2, 2, "b"), change(3, 0, ""), change(1, 1, "a")}, false)
	if len(rec.Health) != 1 || rec.Health[0].N != 3 || rec.Health[0].Counters.ConsecutiveFailures != 0 ||
		rec.Health[0].LastError.Text != "b" {
		t.Errorf("%+v", rec.Health)
	}
	l.SetHealthSaved(3)
	if rec := batchOf(db.NewID(), []*result{change(2, 2, "b")}, false); len(rec.Health) != 0 {
		t.Errorf("%+v", rec.Health)
	}
}
