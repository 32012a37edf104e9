package worker

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/domain/id"
	"posthorn/worker/lanes"
	"posthorn/worker/loop"
)

// releaseTransformed makes the deliveries of a lane due that wait for an edit of its transformation: its settings were
// read, and one of their versions possibly works for them. It is repeated whenever a worker takes the lane, so a kill in
// between leaves nothing behind.
func (w *Worker) releaseTransformed(ctx context.Context, ep id.UUID, s *lanes.Settings) {
	if s == nil || !s.Destination.Transforms() {
		return
	}
	w.background.Go(func() {
		for after := int64(0); ; {
			last, err := queue.ReleaseTransformed(ctx, w.db, ep, after)
			switch {
			case err == nil && last == 0:
				if after > 0 {
					w.scheduler.soon(0)
				}
				return
			case err == nil:
				after = last
			case !db.IsUnavailable(err):
				w.log.Error("deliveries that wait for an edit of the transformation could not be released", "endpoint", endpointID(ep), "error", err)
				return
			case !loop.Sleep(ctx, time.Second):
				return
			}
		}
	})
}
