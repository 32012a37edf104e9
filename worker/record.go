package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"posthorn/worker/loop"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/worker/lanes"
)

// result is a finished job on its way to the recorder.
type result struct {
	job     *lanes.Job
	outcome queue.Outcome
	health  *health.Change
	wait    *lanes.Wait
	assess  bool // the endpoint's health must be assessed after it
}

const (
	maxRecordBatch = 1000
	recordRetry    = 100 * time.Millisecond
)

// recordEvery is the least time between two of the recorder's transactions under load, so that they carry more; an idle
// recorder begins at once.
const recordEvery = 8 * time.Millisecond

// stuckAfter bounds one of the recorder's transactions. After it this worker starts no more requests. What is sent and
// can't be recorded is sent again by the lane's next owner, so a worker that is cut off from its database must notice
// before its beat does, which takes sendWithin.
const stuckAfter = time.Second

// mayStart reports whether requests can start: no other worker can have declared this one dead, and their results can
// be recorded.
func (w *Worker) mayStart() bool {
	since := w.storing.Load()
	return w.member.mayLive() && (since == nil || time.Since(*since) < stuckAfter)
}

// runRecorder writes results until the channel is closed and empty. What arrives during a transaction is the next
// batch.
func (w *Worker) runRecorder(ctx context.Context) {
	var began time.Time
	for first := range w.results {
		if rest := recordEvery - time.Since(began); rest > 0 {
			time.Sleep(rest)
		}
		began = time.Now()
		w.store(ctx, w.gather(first))
	}
}

// gather takes the results that wait, up to the size of one transaction.
func (w *Worker) gather(first *result) []*result {
	batch := append(make([]*result, 0, min(len(w.results)+1, maxRecordBatch)), first)
	for len(batch) < maxRecordBatch {
		select {
		case r, open := <-w.results:
			if !open {
				return batch
			}
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// store writes a batch, however long the database is unavailable: a result is never dropped. A batch that the database
// rejects is halved until the bad result is alone.
func (w *Worker) store(ctx context.Context, batch []*result) {
	began := time.Now()
	w.storing.Store(&began)
	defer func() {
		w.storing.Store(nil)
		if time.Since(began) >= stuckAfter {
			w.dispatch.Kick()
		}
	}()
	epoch := w.id()
	mine, stale := make([]*result, 0, len(batch)), []*result(nil)
	for _, r := range batch {
		if r.job.Epoch == epoch {
			mine = append(mine, r)
		} else {
			stale = append(stale, r)
		}
	}
	w.logLate(ctx, stale)
	w.storeMine(ctx, epoch, mine, false)
}

// storeMine writes what this registration of the worker sent. again: an earlier try can have committed.
func (w *Worker) storeMine(ctx context.Context, epoch id.UUID, batch []*result, again bool) {
	if len(batch) == 0 {
		return
	}
	for {
		matched, err := queue.RecordOutcomes(ctx, w.db, batchOf(epoch, batch, again))
		switch {
		case err == nil:
			w.applied(batch, matched)
			return
		case errors.Is(err, db.ErrWorkerDead):
			w.died(epoch)
			w.logLate(ctx, batch)
			return
		case ctx.Err() != nil:
			return
		case db.IsUnavailable(err):
			level := slog.LevelWarn
			if !db.IsPassing(err) {
				level = slog.LevelError
			}
			w.log.Log(ctx, level, "results wait for the database", "results", len(batch), "error", err)
			again = true
			if !loop.Sleep(ctx, recordRetry) {
				return
			}
		case len(batch) == 1:
			w.storePoison(ctx, epoch, batch[0], err)
			return
		default:
			half := len(batch) / 2
			w.storeMine(ctx, epoch, batch[:half], again)
			batch = batch[half:]
		}
	}
}

// storePoison ends a delivery whose result the database rejects. The delivery shows it; the parts that can be the cause
// are left out.
func (w *Worker) storePoison(ctx context.Context, epoch id.UUID, r *result, cause error) {
	w.log.Error("result rejected by the database", "delivery", id.Delivery.Format(r.job.DeliveryID), "error", cause)
	o := r.outcome
	o.Attempt = nil
	o.Decision = delivery.Decision{Status: delivery.Failed, Reason: delivery.Internal}
	matched, err := queue.RecordOutcomes(ctx, w.db, queue.OutcomeBatch{Worker: epoch, Outcomes: []*queue.Outcome{&o}})
	for db.IsUnavailable(err) && loop.Sleep(ctx, recordRetry) {
		matched, err = queue.RecordOutcomes(ctx, w.db, queue.OutcomeBatch{
			Worker:   epoch,
			Outcomes: []*queue.Outcome{&o},
		})
	}
	if err != nil {
		w.log.Error("delivery could not be ended", "delivery", id.Delivery.Format(r.job.DeliveryID), "error", err)
		return // its row stays known, so it is not sent again by this worker
	}
	w.applied([]*result{r}, matched)
}

func batchOf(epoch id.UUID, batch []*result, again bool) queue.OutcomeBatch {
	rec := queue.OutcomeBatch{Worker: epoch, Outcomes: make([]*queue.Outcome, 0, len(batch)), Again: again}
	changes := map[id.UUID]int{}
	waits := map[id.UUID]lanes.Wait{}
	for _, r := range batch {
		rec.Outcomes = append(rec.Outcomes, &r.outcome)
		// Results can arrive in another order than that in which their requests ended.
		if r.health != nil && r.health.N > r.job.Lane.HealthSaved() {
			i, seen := changes[r.health.EndpointID]
			switch {
			case !seen:
				changes[r.health.EndpointID] = len(rec.Health)
				rec.Health = append(rec.Health, *r.health)
			case r.health.N > rec.Health[i].N:
				older := rec.Health[i]
				rec.Health[i] = *r.health
				rec.Health[i].Merge(older)
			default:
				rec.Health[i].Merge(*r.health)
			}
		}
		if r.wait != nil {
			older, seen := waits[r.wait.Endpoint]
			if waits[r.wait.Endpoint] = *r.wait; seen {
				waits[r.wait.Endpoint] = r.wait.Merge(older)
			}
		}
	}
	for _, w := range waits {
		rec.Delays = append(rec.Delays, queue.LaneDelay{
			EndpointID: w.Endpoint,
			Epoch:      w.Epoch,
			Wait:       w.For,
			LookIn:     w.LookIn,
			Replaces:   w.Replaces,
		})
	}
	return rec
}

// applied passes on what was recorded: to the dispatcher, the metrics, and the log.
func (w *Worker) applied(batch []*result, matched queue.Applied) {
	jobs := make([]*lanes.Job, len(batch))
	var next time.Duration = -1
	for i, r := range batch {
		jobs[i] = r.job
		if r.health != nil {
			r.job.Lane.SetHealthSaved(r.health.N)
		}
		late := !matched[r.job.DeliveryID]
		w.metrics.count(&r.outcome, late)
		w.logAttempt(r, late)
		if !late && r.outcome.Decision.Status == delivery.Retrying && (next < 0 || r.outcome.Decision.RetryIn < next) {
			next = r.outcome.Decision.RetryIn
		}
		if r.health != nil && r.health.Closed {
			next = 0 // its backlog is released
		}
		if r.assess {
			w.maintenance.Assess(r.outcome.EndpointID)
		}
	}
	w.dispatch.Settle(jobs)
	if next >= 0 {
		w.scheduler.soon(next)
	}
}

// logLate records the attempts of an earlier registration of this worker.
func (w *Worker) logLate(ctx context.Context, batch []*result) {
	outcomes := make([]*queue.Outcome, 0, len(batch))
	for _, r := range batch {
		if r.outcome.Attempt != nil {
			outcomes = append(outcomes, &r.outcome)
		}
		w.logAttempt(r, true)
	}
	for len(outcomes) > 0 {
		err := queue.LogLate(ctx, w.db, outcomes)
		if err == nil || ctx.Err() != nil || fault.Is(err, "already_exists") {
			return // exists: the transaction whose outcome was not known has recorded them
		}
		if !db.IsUnavailable(err) {
			w.log.Error("late attempts could not be logged", "attempts", len(outcomes), "error", err)
			return
		}
		if !loop.Sleep(ctx, recordRetry) {
			return
		}
	}
}

// logAttempt writes the one wide line of an attempt.
func (w *Worker) logAttempt(r *result, late bool) {
	a, log := r.outcome.Attempt, w.log
	if s := r.job.Lane.Settings(); s != nil {
		log = s.Log
	}
	level := slog.LevelInfo
	if !log.Enabled(context.Background(), level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs,
		slog.String("delivery", r.job.DeliveryText()), slog.String("type", r.outcome.EventType),
		slog.Int("attempt", int(r.outcome.Attempts)), slog.String("decision", r.outcome.Decision.Status.String()),
	)
	if r.job.Event != nil {
		attrs = append(attrs, slog.String("event", r.job.EventText()))
	}
	if r.outcome.Decision.Reason != delivery.None {
		attrs = append(attrs, slog.String("reason", r.outcome.Decision.Reason.String()))
	}
	if r.outcome.Decision.RetryIn > 0 {
		attrs = append(attrs, slog.Float64("retry_in_s", r.outcome.Decision.RetryIn.Seconds()))
	}
	if a != nil {
		attrs = append(attrs, slog.Int("status", r.outcome.Result.Status), slog.Int("total_us", int(a.Total)), slog.Int("wait_us", int(a.Wait)))
		if r.outcome.Result.Failure != delivery.FailNone {
			attrs = append(attrs, slog.String("failure", r.outcome.Result.Failure.String()), slog.String("error", a.Error))
		}
	}
	if r.job.IsProbe {
		attrs = append(attrs, slog.Bool("probe", true))
	}
	if late {
		attrs = append(attrs, slog.Bool("late", true))
	}
	log.LogAttrs(context.Background(), level, "attempt", attrs...)
}

func endpointID(endpointID id.UUID) string { return id.Endpoint.Format(endpointID) }
