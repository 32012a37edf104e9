package worker

import (
	"context"
	"sync"
	"time"

	"posthorn/worker/loop"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

const (
	// when nothing is known to be due sooner: retries of other workers, new deferrals
	scheduleEvery = 500 * time.Millisecond
	scheduleChunk = 1000
	// Due times are in the future when they are written, so a scan can start where the last one ended, minus the
	// longest time that a transaction needs to commit. A scan from the beginning follows at intervals nevertheless.
	scheduleOverlap  = 2 * time.Minute
	scheduleAllEvery = time.Minute
)

// scheduler knows when to look for retries that are due.
type scheduler struct {
	mu   sync.Mutex
	next time.Time
	wake chan struct{}
}

// the first look comes at once
func newScheduler() *scheduler { return &scheduler{next: time.Now(), wake: make(chan struct{}, 1)} }

// soon reports that something is due after d.
func (s *scheduler) soon(d time.Duration) {
	at := time.Now().Add(d)
	s.mu.Lock()
	earlier := s.next.IsZero() || at.Before(s.next)
	if earlier {
		s.next = at
	}
	s.mu.Unlock()
	if earlier {
		loop.Wake(s.wake)
	}
}

// sleepFor returns how long the scheduler can sleep.
func (s *scheduler) sleepFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next.IsZero() {
		return scheduleEvery
	}
	return min(max(time.Until(s.next), 5*time.Millisecond), scheduleEvery)
}

func (s *scheduler) clear() {
	s.mu.Lock()
	s.next = time.Time{}
	s.mu.Unlock()
}

// schedule makes due rows ready and wakes their lanes, until the context ends.
func (w *Worker) schedule(ctx context.Context) {
	var since, allSince time.Time
	for ctx.Err() == nil {
		select {
		case <-time.After(w.scheduler.sleepFor()):
		case <-w.scheduler.wake:
			continue // a new earliest time: sleep until then
		case <-ctx.Done():
			return
		}
		w.scheduler.clear()
		if time.Since(allSince) > scheduleAllEvery {
			since, allSince = time.Time{}, time.Now()
		}
		for {
			n, now, err := w.scheduleDue(ctx, since)
			if err != nil {
				if ctx.Err() == nil && !db.IsPassing(err) {
					w.log.Warn("due deliveries could not be promoted", "error", err)
				}
				break
			}
			if now.IsZero() {
				since = time.Time{} // the clock was set: due rows can be anywhere
				break
			}
			if n < scheduleChunk {
				since = now.Add(-scheduleOverlap)
				break
			}
		}
	}
}

// scheduleDue makes due rows ready, and returns the database's time; zero if the clock has stepped and the waiting rows
// were moved.
func (w *Worker) scheduleDue(ctx context.Context, since time.Time) (n int, now time.Time, err error) {
	began := w.clock.bootTime()
	due, err := queue.MakeDueReady(ctx, w.db, since, scheduleChunk, w.clock.bounds(began))
	if err != nil {
		return 0, time.Time{}, err
	}
	if step := w.clock.observe(due.Now, due.Shifted, began, w.clock.bootTime()); step != 0 {
		return 0, time.Time{}, w.stepped(ctx, step)
	}
	if due.Next != nil {
		w.scheduler.soon(time.Duration(*due.Next * float64(time.Second)))
	}
	first, err := w.releaseBacklogs(ctx, due.Release)
	if err != nil {
		return 0, time.Time{}, err
	}
	for _, ep := range due.Edited {
		released, more, err := queue.ReleaseEdited(ctx, w.db, ep)
		if err != nil {
			return 0, time.Time{}, err
		}
		if released || more {
			w.scheduler.soon(0) // they are due now
		}
	}
	for _, r := range due.Rows {
		if seq, seen := first[r.EndpointID]; !seen || r.Seq < seq {
			first[r.EndpointID] = r.Seq
		}
	}
	if len(first) > 0 {
		w.announce(ctx, w.dispatch.WakeFrom(first))
	}
	return len(due.Rows), due.Now, nil
}

// releaseBacklogs makes a chunk ready of each lane whose breaker closed, and returns the first row of each.
func (w *Worker) releaseBacklogs(ctx context.Context, endpoints []id.UUID) (map[id.UUID]int64, error) {
	first := map[id.UUID]int64{}
	for _, ep := range endpoints {
		seq, more, err := queue.ReleaseBacklog(ctx, w.db, ep)
		if err != nil {
			return nil, err
		}
		if seq > 0 {
			first[ep] = seq
		}
		if more {
			w.scheduler.soon(0)
		}
	}
	return first, nil
}

// announce tells other workers about lanes that have rows again.
func (w *Worker) announce(ctx context.Context, endpoints []id.UUID) {
	if len(endpoints) == 0 || w.member.isAlone() {
		return
	}
	payload := db.WakePayload(endpoints, true)
	if err := w.db.Worker(ctx, func(q *sql.Queries) error { return q.NotifyWake(ctx, payload) }); err != nil &&
		ctx.Err() == nil {
		w.log.Warn("other workers were not told of due deliveries; they will find them", "error", err)
	}
}
