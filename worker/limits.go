package worker

import (
	"context"
	"encoding/json"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/worker/loop"
)

// limitsEvery is how often noteLimits runs.
const limitsEvery = 2 * time.Second

// noteLimits records which lanes are held back by their endpoints' own limits, and what is in flight, until the context
// ends. The account of why a delivery waits reads it. Only changes are written.
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
			flights := make(map[string]time.Time, len(n.InFlight))
			for of, since := range n.InFlight {
				flights[of.String()] = since
			}
			inFlight, err := json.Marshal(flights)
			if err != nil {
				w.log.Error("requests in flight could not be written as JSON", "error", err)
				continue
			}
			in.Endpoints = append(in.Endpoints, n.Endpoint)
			in.Limits = append(in.Limits, int16(n.Limit))
			in.AgoUs = append(in.AgoUs, ago)
			in.InFlight = append(in.InFlight, string(inFlight))
		}
		if err := w.db.Worker(ctx, func(q *sql.Queries) error { return q.NoteLimits(ctx, in) }); err != nil {
			w.dispatch.LimitsUnnoted(notes)
			if ctx.Err() == nil && !db.IsPassing(err) {
				w.log.Warn("limits of lanes could not be noted", "error", err)
			}
		}
	}
}
