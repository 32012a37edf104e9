package lanes

import "posthorn/domain/id"

// ordering is what the owner of an ordered lane knows about its blocked rows. The worker reads the database and makes
// rows ready; the dispatcher selects what to check:
//   - a key whose head has ended (recorded, so committed) is checked again;
//   - a new owner sweeps once through all keys;
//   - new rows are checked in their order: ready if no row of their key is before them, else left to the first rule.
//
// A row that commits after its key was checked is found by the third rule, since that rule only passes settled numbers.
// A row that was checked while its predecessor was still there is found by the first rule, since that rule runs after
// the commit.
type ordering struct {
	sweep    sweepState
	after    string              // last key of the sweep
	arrived  bool                // rows were announced since the last check
	arrivals int64               // blocked rows up to here have been checked
	limit    int32               // how many to check together
	recheck  map[string]struct{} // keys whose head has ended
}

type sweepState uint8

const (
	notSwept sweepState = iota
	sweeping
	swept
)

// The bounds of one check of blocked rows.
const (
	SweepChunk    = 500 // keys of a sweep
	arrivalsChunk = 500
	maxArrivals   = 1 << 20
)

func newOrdering() *ordering { return &ordering{limit: arrivalsChunk, recheck: map[string]struct{}{}} }

func (o *ordering) pending() bool { return o.sweep != swept || o.arrived || len(o.recheck) > 0 }

// Key is an ordering key of an endpoint.
type Key struct {
	Endpoint id.UUID
	Key      string
}

// KeyWork is the work for ordered lanes.
type KeyWork struct {
	Recheck  []Key
	Sweeps   []*Lane
	Arrivals []*Lane
}

// KeyWork lists the work. What is added later is for the next pass.
func (d *Dispatcher) KeyWork() (w KeyWork) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.marked {
		if l.order == nil || l.phase != serving || d.lanes[l.id] != l {
			continue
		}
		for key := range l.order.recheck {
			w.Recheck = append(w.Recheck, Key{l.id, key})
		}
		clear(l.order.recheck)
		if l.order.sweep != swept {
			w.Sweeps = append(w.Sweeps, l)
		}
		if l.order.arrived && l.order.sweep != notSwept {
			w.Arrivals = append(w.Arrivals, l)
		}
	}
	return w
}

// RecheckLater returns keys that could not be checked.
func (d *Dispatcher) RecheckLater(keys []Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range keys {
		if l := d.lanes[k.Endpoint]; l != nil && l.order != nil {
			l.order.recheck[k.Key] = struct{}{}
			d.mark(l)
		}
	}
}

// Rechecked records that a row was made ready.
func (d *Dispatcher) Rechecked(endpoint id.UUID, seq int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.lanes[endpoint]; l != nil {
		d.lower(l, seq)
	}
}

// Sweep is one step of a new owner's scan of all keys.
type Sweep struct {
	After string // the key after which the step continues
	lane  *Lane
	order *ordering
}

// BeginSweep starts the next step. The first one sees everything that was committed up to the watermark; later rows are
// found as arrivals.
func (d *Dispatcher) BeginSweep(l *Lane, settled int64) (s Sweep, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := l.order
	if o == nil {
		return Sweep{}, false
	}
	if o.sweep == notSwept {
		o.sweep, o.after, o.arrivals = sweeping, "", settled
	}
	return Sweep{After: o.after, lane: l, order: o}, true
}

// EndSweep records how many keys a step found, and the last of them.
func (d *Dispatcher) EndSweep(s Sweep, found int, last string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found == SweepChunk {
		s.order.after = last
		d.signal()
	} else {
		s.order.sweep = swept
	}
	d.lower(s.lane, 1)
	if s.After == "" && found == 0 && s.lane.order == s.order && !s.lane.settings.Load().Ordered {
		s.lane.order = nil // the endpoint has no ordering any more, and all ordered rows are sent
	}
}

// Arrivals is one check of new blocked rows.
type Arrivals struct {
	Floor int64 // above this number
	Limit int32
	lane  *Lane
	order *ordering
}

// BeginArrivals starts a check.
func (d *Dispatcher) BeginArrivals(l *Lane) (a Arrivals, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := l.order
	if o == nil {
		return Arrivals{}, false
	}
	o.arrived = false
	return Arrivals{Floor: o.arrivals, Limit: o.limit, lane: l, order: o}, true
}

// AbandonArrivals takes back a failed check.
func (d *Dispatcher) AbandonArrivals(a Arrivals) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a.order.arrived = true
}

// EndArrivals records what a check found: how many rows, the last of them, and those that were made ready. settled is
// the watermark from before the check.
func (d *Dispatcher) EndArrivals(a Arrivals, found int, last int64, ready []int64, settled int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := a.order
	for _, seq := range ready {
		d.lower(a.lane, seq)
	}
	if found == int(a.Limit) {
		settled = min(settled, last)
		if settled <= o.arrivals {
			o.limit = min(o.limit*2, maxArrivals) // none of them is settled: check more rows, or the rest would starve
		}
		o.arrived = true
		d.mark(a.lane)
		d.signal()
	} else {
		o.limit = arrivalsChunk
	}
	o.arrivals = max(o.arrivals, settled)
}
