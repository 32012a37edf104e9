package worker

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/worker/lanes"
)

// refreshEvery is how often changes of endpoints are read without a notification.
const refreshEvery = time.Second

// refresh compares the revisions of this worker's lanes with those in the database, until the context ends: immediately
// after an announced change, or when a lane got an event that can be newer than its settings, and for all lanes once a
// second.
func (w *Worker) refresh(ctx context.Context) {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-tick.C:
			err = w.refreshAll(ctx)
		case <-w.changed.Woken:
			err = w.refreshNamed(ctx, w.changed.Take())
		case <-ctx.Done():
			return
		}
		if err != nil && ctx.Err() == nil && !db.IsPassing(err) {
			w.log.Warn("changes of endpoints could not be read", "error", err)
		}
	}
}

func (w *Worker) refreshAll(ctx context.Context) error {
	behind := w.dispatch.Behind()
	var rows []sql.LaneRevsRow
	if err := w.db.Worker(ctx, func(q *sql.Queries) (err error) {
		rows, err = q.LaneRevs(ctx, w.id())
		return err
	}); err != nil {
		return err
	}
	revs := make([]lanes.Revision, len(rows))
	for i, r := range rows {
		revs[i] = lanes.Revision(r)
	}
	return w.applyRevisions(ctx, revs, behind, true)
}

func (w *Worker) refreshNamed(ctx context.Context, endpoints []id.UUID) error {
	behind := w.dispatch.Behind()
	var rows []sql.LaneRevsOfRow
	if err := w.db.Worker(ctx, func(q *sql.Queries) (err error) {
		rows, err = q.LaneRevsOf(ctx, w.id(), endpoints)
		return err
	}); err != nil {
		return err
	}
	revs := make([]lanes.Revision, len(rows))
	for i, r := range rows {
		revs[i] = lanes.Revision(r)
	}
	return w.applyRevisions(ctx, revs, behind, false)
}

// applyRevisions applies changes: lanes that are held or deleted drain, others get their new configuration. all: revs
// contains every lane of this worker. behind are the lanes that waited for it before revs were read.
func (w *Worker) applyRevisions(ctx context.Context, revs []lanes.Revision, behind map[id.UUID]int64, all bool) error {
	changed := w.dispatch.Compare(revs, behind, all)
	if len(changed) > 0 {
		details, err := queue.LaneDetails(ctx, w.db, changed)
		if err != nil {
			return err
		}
		numbers := make(map[id.UUID]int64, len(revs))
		for _, r := range revs {
			numbers[r.EndpointID] = r.Rev
		}
		now := time.Now()
		for _, ep := range changed {
			if d, ok := details[ep]; ok {
				lease := leaseOf(d)
				lease.Rev, lease.Version = numbers[ep], behind[ep]
				w.dispatch.Configure(lease, w.settingsOf(d), now)
			}
		}
	}
	w.dispatch.Kick()
	return w.giveBack(ctx, w.dispatch.ReleaseDrained(time.Now()))
}

// giveBack releases lanes in the database.
func (w *Worker) giveBack(ctx context.Context, released []lanes.Released) error {
	if len(released) == 0 {
		return nil
	}
	p := releaseParams(released, w.id())
	return w.db.Worker(ctx, func(q *sql.Queries) error { return q.ReleaseLanes(ctx, p) })
}

func releaseParams(released []lanes.Released, worker id.UUID) sql.ReleaseLanesParams {
	p := sql.ReleaseLanesParams{
		Worker:    worker,
		Endpoints: make([]id.UUID, len(released)),
		Tokens:    make([]float64, len(released)),
	}
	for i, r := range released {
		p.Endpoints[i], p.Tokens[i] = r.Endpoint, r.Tokens
	}
	return p
}
