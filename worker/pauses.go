package worker

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/domain/pause"
)

// pausesEvery is how soon a pause is noticed when nobody said anything.
const pausesEvery = time.Second

// tellPauses says that operators paused something, or let it go on.
func (w *Worker) tellPauses() {
	select {
	case w.pauses <- struct{}{}:
	default:
	}
}

// learnPauses reads what is paused before anything is sent, however long that takes; an error says that the context ended.
func (w *Worker) learnPauses(ctx context.Context) error {
	for {
		err := w.readPauses(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		w.log.Warn("what operators have paused could not be read; nothing is sent before it is known", "error", err)
		if !sleep(ctx, pausesEvery) {
			return ctx.Err()
		}
	}
}

// followPauses keeps to what operators pause, until the context ends. What can't be read stays as it was.
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
		if err := w.readPauses(ctx); err != nil && ctx.Err() == nil && !db.IsUnavailable(err) {
			w.log.Warn("what operators have paused could not be read", "error", err)
		}
	}
}

func (w *Worker) readPauses(ctx context.Context) error {
	pauses, n, err := w.db.ReadPauses(ctx)
	if err != nil {
		return err
	}
	w.metrics.pauses.Set(float64(n))
	w.dispatch.pause(pauses, time.Now())
	return nil
}

// pause takes over what is paused. Requests under way end as they will.
func (d *dispatcher) pause(pauses *pause.Set, now time.Time) {
	d.mu.Lock()
	d.pauses = pauses
	for _, l := range d.lanes {
		d.heedPause(l, now)
	}
	d.mu.Unlock()
}

// heedPause stops a lane that is paused and lets one go on that is not any more. What was read ahead is let go of, so that any
// number of lanes may stand still. Who goes on begins without the tokens that have gathered meanwhile: endpoints get what waited at
// their rate, not in a burst. The caller holds the mutex.
func (d *dispatcher) heedPause(l *lane, now time.Time) {
	paused := d.pauses.Covers(l.tenant, l.id, l.host)
	if paused == l.paused {
		return
	}
	if l.paused = paused; paused {
		d.unread(l)
		return
	}
	if l.limiter != nil {
		l.limiter.AllowN(now, int(l.limiter.TokensAt(now)))
	}
	l.dirty = true
	d.mark(l)
	d.signal()
}
