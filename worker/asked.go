package worker

import (
	"sync"

	"posthorn/domain/id"
)

// asked gathers endpoints that a loop is to look at, and wakes it.
type asked struct {
	mu   sync.Mutex
	ids  map[id.UUID]struct{}
	wake chan struct{}
}

func newAsked() *asked { return &asked{ids: map[id.UUID]struct{}{}, wake: make(chan struct{}, 1)} }

func (a *asked) ask(endpoints ...id.UUID) {
	a.mu.Lock()
	for _, ep := range endpoints {
		a.ids[ep] = struct{}{}
	}
	a.mu.Unlock()
	wake(a.wake)
}

// take returns the endpoints and forgets them.
func (a *asked) take() []id.UUID {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]id.UUID, 0, len(a.ids))
	for ep := range a.ids {
		list = append(list, ep)
	}
	clear(a.ids)
	return list
}

// wake wakes a loop; several wakes before it looks are one.
func wake(loop chan struct{}) {
	select {
	case loop <- struct{}{}:
	default:
	}
}
