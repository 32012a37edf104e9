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

// producers keeps the clients of endpoints open from one delivery to the next. A client in use is never closed, and
// there are at most as many as deliveries in flight.
type producers struct {
	open func(name string, to *endpoint.KafkaConnection) (*producer, error)

	mu    sync.Mutex
	by    map[string]*producer // by endpoint
	sweep *time.Timer          // set while there are some
}

// borrow returns the producer of an endpoint's present connection. A producer of an earlier connection is closed when
// it is no longer used.
func (ps *producers) borrow(name string, to *endpoint.KafkaConnection) (*producer, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.by[name]
	if p != nil && p.as != to && !reflect.DeepEqual(p.as, to) {
		ps.discard(p)
		p = nil
	}
	if p == nil {
		var err error
		if p, err = ps.open(name, to); err != nil {
			return nil, err
		}
		if ps.by == nil {
			ps.by = map[string]*producer{}
		}
		ps.by[name] = p
		if ps.sweep == nil {
			ps.sweep = time.AfterFunc(producerIdle/2, ps.closeIdle)
		}
	}
	p.as = to // the same connection, possibly read again
	p.users++
	return p, nil
}

func (ps *producers) giveBack(p *producer) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.users--
	p.lastUsed = time.Now()
	if p.discarded {
		if p.users == 0 {
			go p.close()
		}
		return
	}
	if len(ps.by) > maxIdleProducers {
		if oldest := ps.oldestIdle(); oldest != nil {
			ps.discard(oldest)
		}
	}
}

func (ps *producers) oldestIdle() (oldest *producer) {
	for _, p := range ps.by {
		if p.users == 0 && (oldest == nil || p.lastUsed.Before(oldest.lastUsed)) {
			oldest = p
		}
	}
	return oldest
}

// replace makes the next borrower start with a new producer.
func (ps *producers) replace(p *producer) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.discard(p)
}

// discard removes a producer, and closes it once no request uses it. The caller holds the mutex.
func (ps *producers) discard(p *producer) {
	if ps.by[p.endpoint] == p {
		delete(ps.by, p.endpoint)
	}
	p.discarded = true
	if p.users == 0 {
		go p.close() // close waits for the producer's own goroutines
	}
}

func (ps *producers) closeIdle() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.by {
		if p.users == 0 && time.Since(p.lastUsed) >= producerIdle {
			ps.discard(p)
		}
	}
	ps.sweep = nil
	if len(ps.by) > 0 {
		ps.sweep = time.AfterFunc(producerIdle/2, ps.closeIdle)
	}
}

// closeAll closes the unused producers, and the others when they are returned.
func (ps *producers) closeAll() {
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
