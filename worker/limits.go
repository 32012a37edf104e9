package worker

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/worker/loop"
)

// limitsEvery is how often it is noted which lanes their own limits hold back.
const limitsEvery = 2 * time.Second

// noteLimits records which lanes their endpoints' own limits hold back, for those who ask why a delivery waits, until
// the context ends. Nothing is written where nothing changed.
func (w *Worker) noteLimits(ctx context.Context) {
	for loop.Sleep(ctx, limitsEvery) {
		now := time.Now()
		notes := w.dispatch.Limits(now)
		if len(notes) == 0 {
			continue
		}
		in := sql.NoteLimitsParams{Worker: w.id()}
		for _, n := range notes {
			ago := int64(-1)
			if !n.Until.IsZero() {
				ago = max(now.Sub(n.Until).Microseconds(), 0)
			}
			in.Endpoints, in.Limits, in.AgoUs = append(in.Endpoints, n.Endpoint), append(in.Limits, int16(n.Limit)), append(in.AgoUs, ago)
		}
		if err := w.db.Worker(ctx, func(q *sql.Queries) error { return q.NoteLimits(ctx, in) }); err != nil {
			w.dispatch.LimitsUnnoted(notes)
			if ctx.Err() == nil && !db.IsUnavailable(err) {
				w.log.Warn("limits of lanes could not be noted", "error", err)
			}
		}
	}
}
