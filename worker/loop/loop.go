// Package loop has the parts of the worker's loops.
package loop

import (
	"context"
	"sync"
	"time"

	"posthorn/domain/id"
)

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
