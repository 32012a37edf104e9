package worker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
)

const (
	walkEvery = time.Second
	walkSteps = 500
	// An idle lane of ours that the walk finds rows in is read from its head, but not more often than this: under load the
	// walk sees rows that are on their way.
	walkAgain  = 5 * time.Second
	idleRelive = 10 * time.Minute // an idle lane stays warm for so long
	shareEvery = 5 * time.Second
)

// walk is the safety net: it finds lanes with rows that nobody announced, and gives back what this worker should not keep,
// until the context ends.
func (w *Worker) walk(ctx context.Context) {
	var ready, blocked id.UUID // where the walks stopped
	shared := time.Now()
	for sleep(ctx, walkEvery) {
		var err error
		if ready, err = w.step(ctx, db.QueueReady, ready); err == nil {
			blocked, err = w.step(ctx, db.QueueBlocked, blocked)
		}
		if err == nil && time.Since(shared) > shareEvery {
			shared = time.Now()
			err = w.share(ctx)
		}
		if err != nil && ctx.Err() == nil && !db.IsUnavailable(err) {
			w.log.Warn("the walk over lanes failed", "error", err)
		}
	}
}

// step goes on with a walk and returns where the next begins.
func (w *Worker) step(ctx context.Context, state int16, after id.UUID) (id.UUID, error) {
	rows, err := w.db.RingWalk(ctx, state, after, walkSteps)
	if err != nil {
		return after, err
	}
	me := w.id()
	var lost []id.UUID
	now := time.Now()
	for _, r := range rows {
		if r.Orphaned {
			if err := w.failQueued(ctx, r.EndpointID); err != nil {
				return after, err
			}
		}
		if !r.Open {
			continue
		}
		switch {
		case r.Owner == nil:
			w.dispatch.want([]id.UUID{r.EndpointID})
		case *r.Owner == me && !w.dispatch.remind(r.EndpointID, state == db.QueueBlocked, now) && w.dispatch.stray(r.EndpointID, now):
			lost = append(lost, r.EndpointID)
		}
	}
	if w.dispatch.hasWanted() {
		w.signal()
	}
	if len(lost) > 0 {
		// Ours in the database and not in memory: the answer to a lease was lost. Give them back and lease them anew.
		p := db.ReleaseLanesParams{Endpoints: lost, Tokens: make([]float64, len(lost)), Worker: me}
		if err := w.db.Worker(ctx, func(q *db.Queries) error { return q.ReleaseLanes(ctx, p) }); err != nil {
			return after, err
		}
	}
	if len(rows) < walkSteps {
		return id.UUID{}, nil
	}
	return rows[len(rows)-1].EndpointID, nil
}

// remind has an idle lane of ours read from its head. blocked: it has rows that wait behind their keys. False: the lane is
// not in memory.
func (d *dispatcher) remind(ep id.UUID, blocked bool, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[ep]
	if l == nil {
		return false
	}
	if blocked && l.order == nil && !l.closed {
		l.order = newOrdering() // they were queued while the endpoint asked for an order
		d.mark(l)
		d.signal()
	}
	if l.idle() && now.Sub(l.walkedAt) > walkAgain {
		l.walkedAt = now
		d.lower(l, 1)
		if l.order != nil {
			l.order = newOrdering()
		}
		d.signal()
	}
	return true
}

// strayAfter is how long a lane that is ours in the database may be missing in memory: a lease that is on its way takes a
// moment, an answer that was lost takes for ever.
const strayAfter = 3 * time.Second

// stray reports whether a lane has been missing for so long.
func (d *dispatcher) stray(ep id.UUID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, missed := d.strays[ep]
	if !missed || now.Sub(since) > time.Minute {
		d.strays[ep] = now
		return false
	}
	if now.Sub(since) < strayAfter {
		return false
	}
	delete(d.strays, ep)
	return true
}

// share gives back idle lanes: those that have been idle for long, those beyond the bound, and, where this worker holds
// more than its share of all lanes, those that others should have.
func (w *Worker) share(ctx context.Context) error {
	var counts []db.LaneCountsRow
	if err := w.db.Worker(ctx, func(q *db.Queries) (err error) {
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
	idle := w.dispatch.spare(surplus, time.Now())
	if err := w.giveBack(ctx, idle); err != nil {
		return err
	}
	w.dispatch.retireBusy(surplus - len(idle))
	return nil
}

// spare lists idle lanes to give back, the longest unused first.
func (d *dispatcher) spare(surplus int, now time.Time) (lanes []*lane) {
	d.mu.Lock()
	defer d.mu.Unlock()
	idle := make([]*lane, 0, len(d.lanes))
	for _, l := range d.lanes {
		if l.idle() && l.timer == nil {
			idle = append(idle, l)
		}
	}
	slices.SortFunc(idle, func(a, b *lane) int { return cmp.Compare(a.used.UnixNano(), b.used.UnixNano()) })
	surplus = max(surplus, len(d.lanes)-maxWarmLanes)
	for i, l := range idle {
		if i >= surplus && now.Sub(l.used) < idleRelive {
			break
		}
		l.closed = true // nothing starts between here and the release
		lanes = append(lanes, l)
	}
	return lanes
}

// retireBusy closes busy lanes that others should have; they are given back once what is under way has ended.
func (d *dispatcher) retireBusy(surplus int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		if surplus <= 0 {
			return
		}
		if !l.closed {
			d.shut(l)
			surplus--
		}
	}
}

// inventory lists the lanes in memory with their tokens, for the release at the end.
func (d *dispatcher) inventory(now time.Time) (endpoints []id.UUID, tokens []float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	endpoints, tokens = []id.UUID{}, []float64{}
	for ep, l := range d.lanes {
		endpoints, tokens = append(endpoints, ep), append(tokens, l.tokens(now))
	}
	return endpoints, tokens
}
