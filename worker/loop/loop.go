// Package loop has the parts of the worker's loops.
package loop

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
)

// Job is periodic work.
type Job struct {
	Name  string
	Every time.Duration // from its end to its next start
	Do    func(context.Context) error
	Woken <-chan struct{} // starts it before; nil: nothing does
}

// Every runs jobs until the context ends, each in a loop of its own, so that a slow one delays no other.
func Every(ctx context.Context, log *slog.Logger, jobs ...Job) {
	var group sync.WaitGroup
	defer group.Wait()
	for _, j := range jobs {
		group.Go(func() {
			for {
				if err := j.Do(ctx); err != nil && ctx.Err() == nil && !db.IsPassing(err) {
					log.Warn("a periodic job failed", "job", j.Name, "error", err)
				}
				timer := time.NewTimer(j.Every)
				select {
				case <-timer.C:
				case <-j.Woken:
				case <-ctx.Done():
				}
				timer.Stop()
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
}

// Sleep waits, and returns false if the context ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Wake wakes a loop that waits for a channel with room for one; several wakes before the loop continues count as one.
func Wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Asked gathers endpoints for a loop, and wakes it. Create it with NewAsked.
type Asked struct {
	Woken chan struct{}

	mu  sync.Mutex
	ids map[id.UUID]struct{}
}

// NewAsked returns a set without endpoints.
func NewAsked() *Asked { return &Asked{ids: map[id.UUID]struct{}{}, Woken: make(chan struct{}, 1)} }

// Ask adds endpoints and wakes the loop.
func (a *Asked) Ask(endpoints ...id.UUID) {
	a.mu.Lock()
	for _, ep := range endpoints {
		a.ids[ep] = struct{}{}
	}
	a.mu.Unlock()
	Wake(a.Woken)
}

// Take removes and returns the endpoints.
func (a *Asked) Take() []id.UUID {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]id.UUID, 0, len(a.ids))
	for ep := range a.ids {
		list = append(list, ep)
	}
	clear(a.ids)
	return list
}
