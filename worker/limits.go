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

// noteLimits records which lanes their endpoints' own limits hold back, for those who ask why a delivery waits, until the context
// ends. Nothing is written where nothing changed.
func (w *Worker) noteLimits(ctx context.Context) {
	for loop.Sleep(ctx, limitsEvery) {
		in := sql.NoteLimitsParams{Worker: w.id()}
		if in.Endpoints, in.Limits = w.dispatch.Limits(time.Now()); len(in.Endpoints) == 0 {
			continue
		}
		if err := w.db.Worker(ctx, func(q *sql.Queries) error { return q.NoteLimits(ctx, in) }); err != nil {
			w.dispatch.LimitsUnnoted(in.Endpoints)
			if ctx.Err() == nil && !db.IsUnavailable(err) {
				w.log.Warn("limits of lanes could not be noted", "error", err)
			}
		}
	}
}
