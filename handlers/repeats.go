package handlers

import (
	"sync"
	"time"
)

// repeats writes a fault that many requests share once a second, with their number: an outage of the database at 5,000
// requests a second would write megabytes. The zero value is ready for use.
type repeats struct {
	mu    sync.Mutex
	kinds map[string]*repeated
}

type repeated struct {
	n     int         // requests since the last line
	write func(n int) // writes the last of them
}

const repeatEvery = time.Second

// count writes the first request of a kind at once, with the number 1. Those that follow within a second are one line,
// which shows the last of them.
func (r *repeats) count(kind string, write func(n int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.kinds[kind]; now != nil {
		now.n++
		now.write = write
		return
	}
	if r.kinds == nil {
		r.kinds = map[string]*repeated{}
	}
	r.kinds[kind] = &repeated{}
	write(1)
	time.AfterFunc(repeatEvery, func() { r.flush(kind) })
}

func (r *repeats) flush(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.kinds[kind]
	if now.n == 0 {
		delete(r.kinds, kind)
		return
	}
	now.write(now.n)
	now.n = 0
	time.AfterFunc(repeatEvery, func() { r.flush(kind) })
}
