package worker

import (
	"context"
	"time"

	"posthorn/worker/loop"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

const (
	rescanEvery    = time.Second
	rescanSteps    = 500
	rebalanceEvery = 5 * time.Second
)

// rescan is the safety net: it finds lanes with rows that were not announced, and gives back lanes that this worker
// should not keep, until the context ends.
func (w *Worker) rescan(ctx context.Context) {
	var ready, blocked id.UUID // where the scans stopped
	balanced := time.Now()
	for loop.Sleep(ctx, rescanEvery) {
		var err error
		if ready, err = w.step(ctx, queue.Ready, ready); err == nil {
			blocked, err = w.step(ctx, queue.Blocked, blocked)
		}
		if err == nil && time.Since(balanced) > rebalanceEvery {
			balanced = time.Now()
			err = w.rebalance(ctx)
		}
		if err != nil && ctx.Err() == nil && !db.IsPassing(err) {
			w.log.Warn("the scan of lanes failed", "error", err)
		}
	}
}

// step continues a scan and returns where the next step begins.
func (w *Worker) step(ctx context.Context, state int16, after id.UUID) (id.UUID, error) {
	rows, err := queue.ScanLanes(ctx, w.db, state, after, rescanSteps)
	if err != nil {
		return after, err
	}
	me := w.id()
	var lost []id.UUID
	now := time.Now()
	for _, r := range rows {
		if r.Orphaned {
			if err := w.maintenance.FailQueued(ctx, r.EndpointID); err != nil {
				return after, err
			}
		}
		if !r.Open {
			continue
		}
		switch {
		case r.Owner == nil:
			w.dispatch.Want([]id.UUID{r.EndpointID})
		case *r.Owner == me && !w.dispatch.Rescan(r.EndpointID, state == queue.Blocked, now) &&
			w.dispatch.IsOrphaned(r.EndpointID, now):
			lost = append(lost, r.EndpointID)
		}
	}
	if w.dispatch.HasWanted() {
		w.signal()
	}
	if len(lost) > 0 {
		// Ours in the database and not in memory: the response to a lease was lost. Give them back, and lease them
		// again.
		p := sql.ReleaseLanesParams{Endpoints: lost, Tokens: make([]float64, len(lost)), Worker: me}
		if err := w.db.Worker(ctx, func(q *sql.Queries) error { return q.ReleaseLanes(ctx, p) }); err != nil {
			return after, err
		}
	}
	if len(rows) < rescanSteps {
		return id.UUID{}, nil
	}
	return rows[len(rows)-1].EndpointID, nil
}

// rebalance gives back idle lanes: those that have been idle for a long time, those above the limit, and those above
// this worker's share of all lanes.
func (w *Worker) rebalance(ctx context.Context) error {
	var counts []sql.LaneCountsRow
	if err := w.db.Worker(ctx, func(q *sql.Queries) (err error) {
		counts, err = q.LaneCounts(ctx)
		return err
	}); err != nil {
		return err
	}
	var total, mine int64
	for _, c := range counts {
		total += c.Lanes
		if c.ID == w.id() {
			mine = c.Lanes
		}
	}
	surplus := 0
	if len(counts) > 1 {
		// A tenth above the share is not worth a move.
		fair := (total + int64(len(counts)) - 1) / int64(len(counts))
		if mine > fair+fair/10+1 {
			surplus = int(mine - fair)
		}
	}
	idle := w.dispatch.ReleaseIdle(surplus, time.Now())
	if err := w.giveBack(ctx, idle); err != nil {
		return err
	}
	w.dispatch.DrainBusy(surplus - len(idle))
	return nil
}
