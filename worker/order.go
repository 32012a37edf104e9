package worker

import (
	"context"

	"posthorn/db"
)

const sweepChunk = 500

// promoteOrdered makes the oldest row of each key ready. Only the lane's owner does this, and only here, one step after
// the other:
//   - a key whose head has gone (recorded, so committed) is looked up again;
//   - a new owner steps once through all keys;
//   - new rows are looked at in their order: ready if nothing of their key is before them, else left to the first rule.
//
// A row that commits after its key was looked up is found by the third rule, since that only passes settled numbers; one
// that was looked at while its predecessor was still there is found by the first, since that runs after the commit.
func (w *Worker) promoteOrdered(ctx context.Context) error {
	recheck, sweeps, arrivals := w.dispatch.orderWork()
	if len(recheck.Keys) > 0 {
		if err := w.recheckKeys(ctx, recheck); err != nil {
			return err
		}
	}
	for _, l := range sweeps {
		if err := w.sweepKeys(ctx, l); err != nil {
			return err
		}
	}
	for _, l := range arrivals {
		if err := w.lookAtArrivals(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// orderWork lists what is to be done for ordered lanes.
func (d *dispatcher) orderWork() (recheck db.PromoteKeysParams, sweeps, arrivals []*lane) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.marked {
		if l.order == nil || l.closed || d.lanes[l.id] != l {
			continue
		}
		for key := range l.order.recheck {
			recheck.Endpoints, recheck.Keys = append(recheck.Endpoints, l.id), append(recheck.Keys, key)
		}
		clear(l.order.recheck) // what is noted from here on is for the next pass
		if l.order.sweeping || !l.order.begun {
			sweeps = append(sweeps, l)
		}
		if l.order.arrived && l.order.begun {
			arrivals = append(arrivals, l)
		}
	}
	return recheck, sweeps, arrivals
}

func (w *Worker) recheckKeys(ctx context.Context, p db.PromoteKeysParams) error {
	var rows []db.PromoteKeysRow
	err := w.db.Worker(ctx, func(q *db.Queries) (err error) {
		rows, err = q.PromoteKeys(ctx, p)
		return err
	})
	w.dispatch.mu.Lock()
	defer w.dispatch.mu.Unlock()
	if err != nil {
		for i, ep := range p.Endpoints {
			if l := w.dispatch.lanes[ep]; l != nil && l.order != nil {
				l.order.recheck[p.Keys[i]] = struct{}{}
				w.dispatch.mark(l)
			}
		}
		return err
	}
	for _, r := range rows {
		if l := w.dispatch.lanes[r.EndpointID]; l != nil {
			w.dispatch.lower(l, r.Seq)
		}
	}
	return nil
}

// sweepKeys goes on with a new owner's walk from key to key.
func (w *Worker) sweepKeys(ctx context.Context, l *lane) error {
	w.dispatch.mu.Lock()
	o := l.order
	if !o.begun {
		// Whatever was committed up to here the walk will see; what comes later is the arrivals'.
		o.begun, o.sweeping, o.after, o.arrivals = true, true, "", w.horizon.settled
	}
	after := o.after
	w.dispatch.mu.Unlock()
	var rows []db.SweepKeysRow
	err := w.db.Worker(ctx, func(q *db.Queries) (err error) {
		rows, err = q.SweepKeys(ctx, db.SweepKeysParams{Endpoint: l.id, After: after, Most: sweepChunk})
		return err
	})
	if err != nil {
		return err
	}
	w.dispatch.mu.Lock()
	defer w.dispatch.mu.Unlock()
	if o.sweeping = len(rows) == sweepChunk; o.sweeping {
		o.after = rows[len(rows)-1].OrderKey
		w.signal()
	}
	w.dispatch.lower(l, 1)
	if after == "" && len(rows) == 0 && l.order == o && !l.target.Load().ordered {
		l.order = nil // the endpoint's order was given up, and what was queued under it is sent
	}
	return nil
}

// lookAtArrivals looks at blocked rows that have not been looked at.
func (w *Worker) lookAtArrivals(ctx context.Context, l *lane) error {
	w.dispatch.mu.Lock()
	o := l.order
	if o == nil {
		w.dispatch.mu.Unlock()
		return nil
	}
	o.arrived = false
	p := db.PromoteArrivalsParams{Endpoint: l.id, Floor: o.arrivals, Most: o.most}
	w.dispatch.mu.Unlock()
	settled := w.horizon.settled // before the statement begins
	var rows []db.PromoteArrivalsRow
	err := w.db.Worker(ctx, func(q *db.Queries) (err error) {
		rows, err = q.PromoteArrivals(ctx, p)
		return err
	})
	w.dispatch.mu.Lock()
	defer w.dispatch.mu.Unlock()
	if err != nil {
		o.arrived = true
		return err
	}
	for _, r := range rows {
		if r.Promoted {
			w.dispatch.lower(l, r.Seq)
		}
	}
	if len(rows) == int(p.Most) {
		settled = min(settled, rows[len(rows)-1].Seq)
		if settled <= o.arrivals {
			o.most = min(o.most*2, 1<<20) // unsettled all: look further, or the rest would starve
		}
		o.arrived = true
		w.dispatch.mark(l)
		w.signal()
	} else {
		o.most = arrivalsChunk
	}
	o.arrivals = max(o.arrivals, settled)
	return nil
}
