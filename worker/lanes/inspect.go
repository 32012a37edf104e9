package lanes

import (
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
)

// View is the state of a lane at one moment.
type View struct {
	Rev         int64
	Serving     bool
	Ready       int // read ahead, to be started
	InFlight    int
	Held        int // rows in memory
	NotBefore   time.Time
	AwaitsProbe bool // the breaker is not closed and no probe is due
	Counters    delivery.Counters
	Breaker     health.Breaker
}

// View returns the state of a lane; false if it is not in memory.
func (d *Dispatcher) View(ep id.UUID) (View, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[ep]
	if l == nil {
		return View{}, false
	}
	return View{
		Rev:         l.rev,
		Serving:     l.phase == serving,
		Ready:       len(l.ready),
		InFlight:    l.inFlight,
		Held:        l.window.held(),
		NotBefore:   l.asked.Until,
		AwaitsProbe: l.health.awaitsProbe,
		Counters:    l.health.counters,
		Breaker:     l.health.breaker,
	}, true
}

// Totals are a dispatcher's counts over all its lanes.
type Totals struct {
	Rows     int   // in memory
	Bytes    int64 // of payloads in memory
	InFlight int
}

// Totals returns the present counts.
func (d *Dispatcher) Totals() Totals {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Totals{d.rows, d.bytes, d.inFlight}
}

// IsPaused reports whether an operator's pause covers an endpoint.
func (d *Dispatcher) IsPaused(tenant, ep id.UUID, host string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pauses.Covers(tenant, ep, host)
}
