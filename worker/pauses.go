package worker

import (
	"context"
	"time"

	"posthorn/worker/loop"

	"posthorn/db"
	"posthorn/db/accounts"
)

// pausesEvery is how often pauses are read without a notification.
const pausesEvery = time.Second

// tellPauses reports that operators paused or resumed something.
func (w *Worker) tellPauses() {
	loop.Wake(w.pauses)
}

// learnPauses reads what is paused, before anything is sent. It tries until it succeeds; an error means that the
// context ended.
func (w *Worker) learnPauses(ctx context.Context) error {
	for {
		err := w.readPauses(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		w.log.Warn("what operators have paused could not be read; nothing is sent before it is known", "error", err)
		if !loop.Sleep(ctx, pausesEvery) {
			return ctx.Err()
		}
	}
}

// followPauses applies the operators' pauses, until the context ends. If they can't be read, the last ones stay.
func (w *Worker) followPauses(ctx context.Context) {
	tick := time.NewTicker(pausesEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.pauses:
		case <-ctx.Done():
			return
		}
		if err := w.readPauses(ctx); err != nil && ctx.Err() == nil && !db.IsPassing(err) {
			w.log.Warn("what operators have paused could not be read", "error", err)
		}
	}
}

func (w *Worker) readPauses(ctx context.Context) error {
	pauses, n, err := accounts.ReadPauses(ctx, w.db)
	if err != nil {
		return err
	}
	w.metrics.pauses.Set(float64(n))
	w.dispatch.Pause(pauses, time.Now())
	return nil
}
