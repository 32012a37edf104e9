package worker

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
)

const (
	assessEvery = 30 * time.Second // what depends on time alone, and what a worker that died left undone
	assessMost  = 500
	assessRetry = time.Second
	heldEvery   = 5 * time.Minute
)

// assess decides about the endpoints that were asked for, until the context ends. What a stop leaves undone is found by the chore
// of whichever worker comes next: all that it takes is on record.
func (w *Worker) assess(ctx context.Context) {
	for {
		select {
		case <-w.assessing.wake:
		case <-ctx.Done():
			return
		}
		named := w.assessing.take()
		err := w.assessPage(ctx, named)
		if err == nil {
			continue
		}
		if ctx.Err() == nil && !db.IsUnavailable(err) {
			w.log.Warn("the health of endpoints could not be assessed; it is tried again", "endpoints", len(named), "error", err)
		}
		if !sleep(ctx, assessRetry) {
			return
		}
		w.assessing.ask(named...)
	}
}

// assessAll decides about every endpoint that fails, was warned of or recovers.
func (w *Worker) assessAll(ctx context.Context) error {
	// Claimed apart from what is done: that is safe to do twice, and a worker that dies amid it leaves the rest to the next time.
	claimed, err := w.db.Chore(ctx, "assess health", assessEvery, func(*db.Queries) error { return nil })
	if err != nil || !claimed {
		return err
	}
	return w.assessPage(ctx, nil)
}

// assessPage decides about the named endpoints, or, where none is named, about all, a page at a time.
func (w *Worker) assessPage(ctx context.Context, named []id.UUID) error {
	now, err := w.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	after := id.UUID{}
	for {
		page, err := w.db.Assessable(ctx, named, after, assessMost, now)
		if err != nil {
			return err
		}
		for _, a := range page.Due {
			done, err := w.db.AssessEndpoint(ctx, a.TenantID, a.EndpointID, now)
			if err != nil {
				return err
			}
			w.assessed(a.EndpointID, done)
		}
		if page.Next.IsZero() {
			return nil
		}
		after = page.Next
	}
}

// assessed tells metrics, log and the lane's owner what was decided.
func (w *Worker) assessed(ep id.UUID, done db.Assessment) {
	switch {
	case done.Disabled != "":
		w.metrics.disabled.WithLabelValues(string(done.Disabled)).Inc()
		w.log.Warn("endpoint disabled", "endpoint", endpointID(ep), "reason", done.Disabled)
		w.changed.ask(ep)
	case done.Recovered:
		w.log.Info("endpoint recovered", "endpoint", endpointID(ep))
	}
	for _, warning := range done.Warned {
		w.log.Warn("endpoint will be disabled", "endpoint", endpointID(ep), "reason", warning.Reason, "stage", warning.Stage, "at", warning.DisableAt)
	}
}

// expireHeld ends what was held for too long, and tells owners before.
func (w *Worker) expireHeld(ctx context.Context) error {
	claimed, err := w.db.Chore(ctx, "expire held deliveries", heldEvery, func(*db.Queries) error { return nil })
	if err != nil || !claimed {
		return err
	}
	now, err := w.db.ServerTime(ctx)
	if err != nil {
		return err
	}
	if quiet, err := w.db.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	return w.ExpireHeld(ctx, now)
}

// ExpireHeld does so as seen at now.
func (w *Worker) ExpireHeld(ctx context.Context, now time.Time) error {
	after := id.UUID{}
	for {
		holding, err := w.db.Holding(ctx, after, assessMost)
		if err != nil {
			return err
		}
		for _, h := range holding {
			for more := true; more; {
				if more, err = w.db.ExpireHeld(ctx, h, now, sweepMost); err != nil {
					return err
				}
			}
			after = h.ID
		}
		if len(holding) < assessMost {
			return nil
		}
	}
}
