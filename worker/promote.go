package worker

import (
	"context"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
)

const (
	promoteEvery = 500 * time.Millisecond // when nothing is known to be due sooner: somebody else's retries, new deferrals
	promoteChunk = 1000
	// Due times lie in the future when they are written, so that a scan may begin where the last one ended, less the time
	// that a transaction may take to commit. A scan from the beginning comes every so often all the same.
	promoteOverlap = 2 * time.Minute
	promoteAnew    = time.Minute
)

// promoter knows when to look for retries that are due.
type promoter struct {
	mu   sync.Mutex
	next time.Time
	wake chan struct{}
}

func newPromoter() *promoter { return &promoter{next: time.Now(), wake: make(chan struct{}, 1)} } // the first look comes at once

// soon says that something will be due after d.
func (p *promoter) soon(d time.Duration) {
	at := time.Now().Add(d)
	p.mu.Lock()
	earlier := p.next.IsZero() || at.Before(p.next)
	if earlier {
		p.next = at
	}
	p.mu.Unlock()
	if earlier {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// rest is how long the promoter may sleep.
func (p *promoter) rest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.IsZero() {
		return promoteEvery
	}
	return min(max(time.Until(p.next), 5*time.Millisecond), promoteEvery)
}

func (p *promoter) clear() {
	p.mu.Lock()
	p.next = time.Time{}
	p.mu.Unlock()
}

// promote makes due rows ready and wakes their lanes, until the context ends.
func (w *Worker) promote(ctx context.Context) {
	var since, anew time.Time
	for ctx.Err() == nil {
		select {
		case <-time.After(w.promoter.rest()):
		case <-w.promoter.wake:
			continue // a new earliest time: sleep until then
		case <-ctx.Done():
			return
		}
		w.promoter.clear()
		if time.Since(anew) > promoteAnew {
			since, anew = time.Time{}, time.Now()
		}
		for {
			n, now, err := w.promoteDue(ctx, since)
			if err != nil {
				if ctx.Err() == nil && !db.IsUnavailable(err) {
					w.log.Warn("due deliveries could not be promoted", "error", err)
				}
				break
			}
			if now.IsZero() {
				since = time.Time{} // the clock was set: what is due may lie anywhere
				break
			}
			if n < promoteChunk {
				since = now.Add(-promoteOverlap)
				break
			}
		}
	}
}

// promoteDue makes ready what is due, and returns the database's clock; zero when that has stepped, and what waits with it.
func (w *Worker) promoteDue(ctx context.Context, since time.Time) (n int, now time.Time, err error) {
	began := w.clock.passed()
	due, err := w.db.PromoteDue(ctx, since, promoteChunk, w.clock.bounds(began))
	if err != nil {
		return 0, time.Time{}, err
	}
	if step := w.clock.observe(due.Now, due.Shifted, began, w.clock.passed()); step != 0 {
		return 0, time.Time{}, w.stepped(ctx, step)
	}
	if due.Next != nil {
		w.promoter.soon(time.Duration(*due.Next * float64(time.Second)))
	}
	if len(due.Rows) == 0 {
		return 0, due.Now, nil
	}
	first := make(map[id.UUID]int64, len(due.Rows))
	for _, r := range due.Rows {
		if seq, seen := first[r.EndpointID]; !seen || r.Seq < seq {
			first[r.EndpointID] = r.Seq
		}
	}
	w.announce(ctx, w.dispatch.promoted(first))
	return len(due.Rows), due.Now, nil
}

// promoted lowers the floors of our lanes to what is ready again and returns the endpoints of others.
func (d *dispatcher) promoted(first map[id.UUID]int64) (foreign []id.UUID) {
	d.mu.Lock()
	for ep, seq := range first {
		if l := d.lanes[ep]; l != nil {
			l.announced()
			d.lower(l, seq)
			continue
		}
		d.wanted[ep] = struct{}{}
		foreign = append(foreign, ep)
	}
	d.mu.Unlock()
	d.signal()
	return foreign
}

// announce tells other workers of lanes that have rows again.
func (w *Worker) announce(ctx context.Context, endpoints []id.UUID) {
	if len(endpoints) == 0 || w.member.isAlone() {
		return
	}
	payload := db.WakePayload(endpoints, true)
	if err := w.db.Worker(ctx, func(q *db.Queries) error { return q.NotifyWake(ctx, payload) }); err != nil && ctx.Err() == nil {
		w.log.Warn("other workers were not told of due deliveries; they will find them", "error", err)
	}
}
