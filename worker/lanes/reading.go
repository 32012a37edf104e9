package lanes

import (
	"time"

	"posthorn/domain/id"
	"posthorn/worker/send"
)

// Wake marks lanes that have new rows and returns the endpoints that are not ours.
func (d *Dispatcher) Wake(endpoints []id.UUID) (foreign []id.UUID) {
	d.mu.Lock()
	for _, ep := range endpoints {
		if l := d.lanes[ep]; l != nil {
			l.announced()
			d.mark(l)
			continue
		}
		d.wanted[ep] = struct{}{}
		foreign = append(foreign, ep)
	}
	d.mu.Unlock()
	d.signal()
	return foreign
}

// WakeAll marks every lane: an announcement named more endpoints than fit.
func (d *Dispatcher) WakeAll() {
	d.mu.Lock()
	for _, l := range d.lanes {
		l.announced()
		d.mark(l)
	}
	d.mu.Unlock()
	d.signal()
}

// WakeFrom marks lanes that have rows again and makes their next reads start at these rows or before. It returns the
// endpoints that are not ours.
func (d *Dispatcher) WakeFrom(first map[id.UUID]int64) (foreign []id.UUID) {
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

// Restart makes the next reads of lanes start at their heads; all: of every lane.
func (d *Dispatcher) Restart(endpoints []id.UUID, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all {
		for _, l := range d.lanes {
			l.announced()
			d.lower(l, 1)
		}
		return
	}
	for _, ep := range endpoints {
		if l := d.lanes[ep]; l != nil {
			l.announced()
			d.lower(l, 1)
		}
	}
}

// mark makes the next pass check a lane: it has rows to read, or keys to check. The caller holds the mutex.
func (d *Dispatcher) mark(l *Lane) {
	if !l.marked {
		l.marked = true
		d.marked = append(d.marked, l)
	}
}

// lower makes the next read of a lane start at seq or before. The caller holds the mutex.
func (d *Dispatcher) lower(l *Lane, seq int64) {
	l.window.lower(seq)
	d.mark(l)
}

// forgetReady drops what was read ahead of a lane. The caller holds the mutex.
func (d *Dispatcher) forgetReady(l *Lane) {
	for _, j := range l.ready {
		d.unread(j)
	}
	l.forgetReady()
	l.stopGathering(time.Now())
	d.mark(l)
}

// Plan says which lanes to read, from where, and how much. The slices of Endpoints, Floors and Limits are parallel.
type Plan struct {
	Endpoints []id.UUID
	Floors    []int64 // read above this number
	Limits    []int32
	Known     []int64         // rows above the floors that are already in memory
	Follow    map[id.UUID]int // how many events a request has at most, of ordered lanes whose deliveries share requests
	lanes     []*Lane
}

// Empty reports whether there is nothing to read.
func (p *Plan) Empty() bool { return len(p.lanes) == 0 }

// Plan selects the lanes to read now. The caller ends it with Take or Abandon.
func (d *Dispatcher) Plan() (p Plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return p
	}
	room := maxReadAhead - d.rows
	tight := room <= 0 || d.bytes >= maxReadBytes
	marked := d.marked
	d.marked = nil
	for _, l := range marked {
		l.marked = false
		if d.lanes[l.id] != l {
			continue
		}
		if l.order != nil && l.order.pending() {
			d.mark(l) // its keys require another pass
		}
		if !l.wantsRead() {
			continue // its ready rows come first; their end marks the lane again
		}
		if tight && len(l.ready) > 0 {
			// with thousands of such lanes a pass must not check each: the next start of this one marks it again
			continue
		}
		limit := l.readAhead() - len(l.ready)
		if tight {
			limit = min(limit, 4) // enough for every lane to continue
		}
		p.Known = l.window.begin(p.Known)
		l.handed = 0
		floor := l.window.floor
		if l.health.wanted != 0 {
			floor = l.window.beginAt(l.health.wanted) // the requested probe, wherever it is in the lane
			l.health.wanted = 0
		}
		p.Endpoints = append(p.Endpoints, l.id)
		p.Floors = append(p.Floors, max(floor, l.window.dropBelow))
		p.Limits = append(p.Limits, int32(limit))
		p.lanes = append(p.lanes, l)
		if b := l.settings.Load().Batch; b != nil && l.order != nil {
			if p.Follow == nil {
				p.Follow = map[id.UUID]int{}
			}
			p.Follow[l.id] = b.Events
		}
		if room -= limit; room <= 0 {
			tight = true
		}
	}
	return p
}

// Abandon takes back a plan whose read failed.
func (d *Dispatcher) Abandon(p Plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range p.lanes {
		l.window.abandon()
		d.mark(l)
	}
}

// Found is the result of a read.
type Found struct {
	Rows    []Row // of each lane in the order of their numbers
	Events  map[id.UUID]*send.Payload
	Gone    map[id.UUID]bool // events that no longer exist; an event in neither map is left for the next read
	Settled int64            // the watermark of the read
	Epoch   id.UUID          // the worker's id
	After   map[int64][]Row  // the next of the keys of rows, by the number of the row, where they can travel with it
}

// progress is how far a read got in one lane.
type progress struct {
	rows int32
	last int64
	cut  bool // an event was left for the next read, and so is everything after it
}

// Take puts the result of a read into memory, and returns the rows whose event was dropped.
func (d *Dispatcher) Take(p Plan, found Found) (lost []*Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := make(map[id.UUID]*progress, len(p.lanes))
	for i := range found.Rows {
		row := &found.Rows[i]
		at := seen[row.EndpointID]
		if at == nil {
			at = &progress{}
			seen[row.EndpointID] = at
		}
		event := found.Events[row.EventID]
		at.cut = at.cut || event == nil && !found.Gone[row.EventID]
		l := d.lanes[row.EndpointID]
		if at.cut || l == nil {
			continue
		}
		at.rows++
		at.last = row.Seq
		j := d.remember(l, row, event, found.Epoch)
		switch {
		case j == nil:
		case event == nil:
			lost = append(lost, j)
		default:
			l.ready = append(l.ready, j)
			d.follow(l, j, &found)
		}
	}
	d.endReads(p, seen, found.Settled)
	return lost
}

// remember keeps a row in memory. It returns nil if the row is there already, or if the lane takes no rows now. The
// caller holds the mutex.
func (d *Dispatcher) remember(l *Lane, row *Row, event *send.Payload, epoch id.UUID) *Job {
	if l.window.rows[row.Seq] != nil || l.phase != serving || l.window.read == readStale {
		return nil
	}
	if event != nil && event.RoutingVersion > l.version {
		d.require(l, event.RoutingVersion)
	}
	if row.RoutingVersion != nil && *row.RoutingVersion > l.version {
		d.require(l, *row.RoutingVersion)
	}
	j := &Job{Row: *row, Event: event, Lane: l, Epoch: epoch}
	l.window.rows[row.Seq] = j
	d.rows++
	d.bytes += j.size()
	return j
}

// endReads moves the floors of the lanes that were read. The caller holds the mutex.
func (d *Dispatcher) endReads(p Plan, seen map[id.UUID]*progress, settled int64) {
	again := false
	d.looks++
	for i, l := range p.lanes {
		l.looked = d.looks
		at := seen[l.id]
		if at == nil {
			at = &progress{}
		}
		l.window.end(at.last, !at.cut && at.rows < p.Limits[i], settled)
		d.runnable(l)
		if l.wantsRead() {
			d.mark(l)
			again = true
		}
	}
	if again {
		d.signal()
	}
}

// TakeWanted removes and returns the lanes to lease.
func (d *Dispatcher) TakeWanted(most int) []id.UUID {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return nil
	}
	list := make([]id.UUID, 0, min(len(d.wanted), most))
	for ep := range d.wanted {
		if len(list) == most {
			break
		}
		delete(d.wanted, ep)
		if d.lanes[ep] == nil {
			list = append(list, ep)
		}
	}
	return list
}

// Want requests leases of lanes.
func (d *Dispatcher) Want(endpoints []id.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ep := range endpoints {
		d.wanted[ep] = struct{}{}
	}
}

// HasWanted reports whether there are lanes to lease.
func (d *Dispatcher) HasWanted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.wanted) > 0
}
