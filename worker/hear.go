package worker

import (
	"context"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/domain/pause"
)

// hear takes in what other processes announce, until the context ends.
func (w *Worker) hear(ctx context.Context) {
	db.Listen(ctx, w.listen, []string{db.ChannelWake, db.ChannelOutbox, db.ChannelPauses},
		func() {
			w.tellRelay()
			w.tellPauses()
			w.dispatch.wakeAll()
			w.dispatch.fromHead(nil, true)
		},
		func(channel, payload string) {
			switch channel {
			case db.ChannelOutbox:
				w.tellRelay()
				return
			case db.ChannelPauses:
				w.tellPauses()
				return
			}
			endpoints, all, again := db.ParseWake(payload)
			if all {
				w.dispatch.wakeAll()
			} else {
				w.dispatch.wake(endpoints)
			}
			if again {
				w.dispatch.fromHead(endpoints, all)
				w.revisions.ask(endpoints...)
			}
		})
}

// fromHead makes the next read of lanes begin at their heads.
func (d *dispatcher) fromHead(endpoints []id.UUID, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all {
		for _, l := range d.lanes {
			l.announced()
			d.lower(l, 1)
		}
		return
	}
	for _, ep := range endpoints {
		if l := d.lanes[ep]; l != nil {
			l.announced()
			d.lower(l, 1)
		}
	}
}

// revisionsEvery is how soon a change of an endpoint is noticed when nobody said anything.
const revisionsEvery = time.Second

// revisions gathers endpoints that are said to have changed.
type revisions struct {
	mu   sync.Mutex
	ids  map[id.UUID]struct{}
	wake chan struct{}
}

func newRevisions() *revisions {
	return &revisions{ids: map[id.UUID]struct{}{}, wake: make(chan struct{}, 1)}
}

func (r *revisions) ask(endpoints ...id.UUID) {
	r.mu.Lock()
	for _, ep := range endpoints {
		r.ids[ep] = struct{}{}
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *revisions) take() []id.UUID {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]id.UUID, 0, len(r.ids))
	for ep := range r.ids {
		list = append(list, ep)
	}
	clear(r.ids)
	return list
}

// watch compares the revisions of our lanes with the database's, at once where a change was announced and of all lanes
// once a second, until the context ends.
func (w *Worker) watch(ctx context.Context) {
	tick := time.NewTicker(revisionsEvery)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-tick.C:
			var all []db.LaneRevsRow
			err = w.db.Worker(ctx, func(q *db.Queries) (err error) {
				all, err = q.LaneRevs(ctx, w.id())
				return err
			})
			if err == nil {
				err = w.applyRevisions(ctx, all, nil)
			}
		case <-w.revisions.wake:
			named := w.revisions.take()
			var some []db.LaneRevsOfRow
			err = w.db.Worker(ctx, func(q *db.Queries) (err error) {
				some, err = q.LaneRevsOf(ctx, db.LaneRevsOfParams{Worker: w.id(), Endpoints: named})
				return err
			})
			if err == nil {
				rows := make([]db.LaneRevsRow, len(some))
				for i, r := range some {
					rows[i] = db.LaneRevsRow(r)
				}
				err = w.applyRevisions(ctx, rows, named)
			}
		case <-ctx.Done():
			return
		}
		if err != nil && ctx.Err() == nil && !db.IsUnavailable(err) {
			w.log.Warn("changes of endpoints could not be read", "error", err)
		}
	}
}

// applyRevisions takes over what changed: lanes that are held or deleted close, others get their new configuration. named
// are the endpoints that were asked for; nil means all lanes, and those that are missing are ours no more.
func (w *Worker) applyRevisions(ctx context.Context, rows []db.LaneRevsRow, named []id.UUID) error {
	changed, revs := w.dispatch.compare(rows, named == nil)
	if len(changed) > 0 {
		details, err := w.db.LaneDetails(ctx, changed)
		if err != nil {
			return err
		}
		now := time.Now()
		for _, ep := range changed {
			if d, ok := details[ep]; ok {
				w.dispatch.retarget(d, revs[ep], w.targetOf(d), now)
			}
		}
	}
	w.dispatch.kick()
	return w.giveBack(ctx, w.dispatch.closedAndIdle())
}

// compare closes lanes that are held or deleted, drops those that are no longer ours, and returns those that changed.
func (d *dispatcher) compare(rows []db.LaneRevsRow, all bool) (changed []id.UUID, revs map[id.UUID]int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	revs = make(map[id.UUID]int64, len(rows))
	for _, r := range rows {
		revs[r.EndpointID] = r.Rev
		l := d.lanes[r.EndpointID]
		if l == nil {
			continue
		}
		if r.Held || r.Deleted {
			l.leaving = true
			d.shut(l)
			continue
		}
		if l.rev != r.Rev {
			changed = append(changed, l.id)
		}
		if r.DropBelow > l.dropBelow {
			d.unread(l)
		}
		l.dropBelow = r.DropBelow
	}
	if !all {
		return changed, revs
	}
	for ep, l := range d.lanes {
		// A lane that was leased after the rows were read is missing too: look twice before it is dropped.
		if _, ours := revs[ep]; !ours {
			if l.missing = l.missing + 1; l.missing > 2 {
				d.drop(l)
			}
		} else {
			l.missing = 0
		}
	}
	return changed, revs
}

// shut starts nothing more on a lane and forgets what was read ahead. The caller holds the mutex.
func (d *dispatcher) shut(l *lane) {
	l.closed = true
	d.unread(l)
}

// unread forgets what was read ahead of a lane. The caller holds the mutex.
func (d *dispatcher) unread(l *lane) {
	for _, j := range l.ready {
		d.rows--
		d.bytes -= j.size()
	}
	l.flush()
	d.mark(l)
}

// retarget takes over a new configuration; rows are read anew.
func (d *dispatcher) retarget(to db.Leased, rev int64, t *target, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[to.Endpoint.ID]
	if l == nil {
		return
	}
	l.rev = rev
	d.unread(l)
	if l.record.epoch != to.Health.Epoch {
		l.readHealth(to.Health) // all was cleared
	}
	d.heed(l, to.Asked, now)
	l.leaving = false
	if l.closed = t == nil; l.closed {
		return
	}
	l.target.Store(t)
	l.setRate(t, now)
	l.host = pause.HostOf(to.Endpoint.URL)
	d.heedPause(l, now)
	if l.timer != nil && l.timer.Stop() {
		l.timer = nil
	}
	if t.ordered || l.order != nil {
		l.order = newOrdering() // of what is queued by key it lets go when the sweep finds nothing
	}
	d.signal()
}

// closedAndIdle lists lanes that can be given back because they are closed and nothing of theirs is under way.
func (d *dispatcher) closedAndIdle() (lanes []*lane) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		if l.closed && (l.leaving || l.target.Load() != nil) && l.inFlight == 0 && len(l.rows) == len(l.done) && !l.reading {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// giveBack releases lanes with their tokens and forgets them.
func (w *Worker) giveBack(ctx context.Context, lanes []*lane) error {
	if len(lanes) == 0 {
		return nil
	}
	now := time.Now()
	p := db.ReleaseLanesParams{Worker: w.id()}
	w.dispatch.mu.Lock()
	for _, l := range lanes {
		p.Endpoints, p.Tokens = append(p.Endpoints, l.id), append(p.Tokens, l.tokens(now))
		w.dispatch.drop(l)
	}
	w.dispatch.mu.Unlock()
	return w.db.Worker(ctx, func(q *db.Queries) error { return q.ReleaseLanes(ctx, p) })
}
