package send

import (
	"reflect"
	"sync"
	"time"

	"posthorn/domain/endpoint"
)

// The bounds of the open producers.
const (
	// beyond this number the least recently used one is closed; each holds some connections and about 100 KB
	maxIdleProducers = 128
	producerIdle     = time.Minute
)

// lease is what the pool knows about a client. The mutex of producers guards it.
type lease struct {
	endpoint  string
	as        endpoint.Connection // by which it was last borrowed
	users     int
	discarded bool
	lastUsed  time.Time
}

func (l *lease) leased() *lease { return l }

// leased is a client of a broker.
type leased interface {
	leased() *lease
	close()
}

// producers keeps the clients of endpoints open from one delivery to the next. A client in use is never closed, and
// there are at most as many as deliveries in flight.
type producers[P leased] struct {
	open func(name string, to endpoint.Connection) (P, error)

	mu    sync.Mutex
	by    map[string]P // by endpoint
	sweep *time.Timer  // set while there are some
}

// borrow returns the producer of an endpoint's present connection. A producer of an earlier connection is closed when
// it is no longer used.
func (ps *producers[P]) borrow(name string, to endpoint.Connection) (P, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p, found := ps.by[name]
	if found && p.leased().as != to && !reflect.DeepEqual(p.leased().as, to) {
		ps.discard(p)
		found = false
	}
	if !found {
		var err error
		if p, err = ps.open(name, to); err != nil {
			return p, err
		}
		p.leased().endpoint = name
		if ps.by == nil {
			ps.by = map[string]P{}
		}
		ps.by[name] = p
		if ps.sweep == nil {
			ps.sweep = time.AfterFunc(producerIdle/2, ps.closeIdle)
		}
	}
	l := p.leased()
	l.as = to // the same connection, possibly read again
	l.users++
	return p, nil
}

func (ps *producers[P]) giveBack(p P) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	l := p.leased()
	l.users--
	l.lastUsed = time.Now()
	if l.discarded {
		if l.users == 0 {
			go p.close()
		}
		return
	}
	if len(ps.by) > maxIdleProducers {
		if oldest := ps.oldestIdle(); oldest != nil {
			ps.discard(ps.by[oldest.endpoint])
		}
	}
}

func (ps *producers[P]) oldestIdle() (oldest *lease) {
	for _, p := range ps.by {
		if l := p.leased(); l.users == 0 && (oldest == nil || l.lastUsed.Before(oldest.lastUsed)) {
			oldest = l
		}
	}
	return oldest
}

// replace makes the next borrower start with a new producer.
func (ps *producers[P]) replace(p P) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.discard(p)
}

// discard removes a producer, and closes it once no request uses it. The caller holds the mutex.
func (ps *producers[P]) discard(p P) {
	l := p.leased()
	if now, found := ps.by[l.endpoint]; found && now.leased() == l {
		delete(ps.by, l.endpoint)
	}
	l.discarded = true
	if l.users == 0 {
		go p.close() // close waits for the producer's own goroutines
	}
}

func (ps *producers[P]) closeIdle() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.by {
		if l := p.leased(); l.users == 0 && time.Since(l.lastUsed) >= producerIdle {
			ps.discard(p)
		}
	}
	ps.sweep = nil
	if len(ps.by) > 0 {
		ps.sweep = time.AfterFunc(producerIdle/2, ps.closeIdle)
	}
}

// closeAll closes the unused producers, and the others when they are returned.
func (ps *producers[P]) closeAll() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.sweep != nil {
		ps.sweep.Stop()
		ps.sweep = nil
	}
	for _, p := range ps.by {
		ps.discard(p)
	}
}
