package worker

import (
	"context"

	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/worker/lanes"
)

// readyOrdered makes the oldest row of each ordering key ready. Only the lane's owner does this, only here, and one
// step at a time. The dispatcher decides the rules (worker/lanes/ordering.go).
func (w *Worker) readyOrdered(ctx context.Context) error {
	work := w.dispatch.KeyWork()
	if len(work.Recheck) > 0 {
		if err := w.recheckKeys(ctx, work.Recheck); err != nil {
			return err
		}
	}
	for _, l := range work.Sweeps {
		if err := w.sweepKeys(ctx, l); err != nil {
			return err
		}
	}
	for _, l := range work.Arrivals {
		if err := w.checkArrivals(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// recheckKeys makes the oldest row of a key ready after the key's head has ended.
func (w *Worker) recheckKeys(ctx context.Context, keys []lanes.Key) error {
	var endpoints []id.UUID
	var orderKeys []string
	for _, k := range keys {
		endpoints = append(endpoints, k.Endpoint)
		orderKeys = append(orderKeys, k.Key)
	}
	var rows []sql.MakeKeysReadyRow
	if err := w.db.Worker(ctx, func(q *sql.Queries) (err error) {
		rows, err = q.MakeKeysReady(ctx, endpoints, orderKeys)
		return err
	}); err != nil {
		w.dispatch.RecheckLater(keys)
		return err
	}
	for _, r := range rows {
		w.dispatch.Rechecked(r.EndpointID, r.Seq)
	}
	return nil
}

// sweepKeys does one step of the walk over all keys that a new owner of a lane makes.
func (w *Worker) sweepKeys(ctx context.Context, l *lanes.Lane) error {
	sweep, ok := w.dispatch.BeginSweep(l, w.watermark.Settled())
	if !ok {
		return nil
	}
	var rows []sql.SweepKeysRow
	if err := w.db.Worker(ctx, func(q *sql.Queries) (err error) {
		rows, err = q.SweepKeys(ctx, sql.SweepKeysParams{Endpoint: l.ID(), After: sweep.After, Limit: lanes.SweepChunk})
		return err
	}); err != nil {
		return err
	}
	last := ""
	if len(rows) > 0 {
		last = rows[len(rows)-1].OrderKey
	}
	w.dispatch.EndSweep(sweep, len(rows), last)
	return nil
}

// checkArrivals checks blocked rows that have not been checked.
func (w *Worker) checkArrivals(ctx context.Context, l *lanes.Lane) error {
	arrivals, ok := w.dispatch.BeginArrivals(l)
	if !ok {
		return nil
	}
	settled := w.watermark.Settled() // before the statement begins
	var rows []sql.MakeArrivalsReadyRow
	if err := w.db.Worker(ctx, func(q *sql.Queries) (err error) {
		rows, err = q.MakeArrivalsReady(ctx, sql.MakeArrivalsReadyParams{
			Endpoint: l.ID(),
			Floor:    arrivals.Floor,
			Limit:    arrivals.Limit,
		})
		return err
	}); err != nil {
		w.dispatch.AbandonArrivals(arrivals)
		return err
	}
	var last int64
	var ready []int64
	for _, r := range rows {
		last = r.Seq
		if r.Readied {
			ready = append(ready, r.Seq)
		}
	}
	w.dispatch.EndArrivals(arrivals, len(rows), last, ready, settled)
	return nil
}
