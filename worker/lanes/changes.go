package lanes

import (
	"cmp"
	"slices"
	"time"

	"posthorn/domain/id"
	"posthorn/domain/pause"
)

const (
	// How often an idle lane of ours is read from its head because the rescan finds rows in it. Under load the rescan
	// also sees rows that are about to be sent.
	rescanAgain = 5 * time.Second
	keepIdle    = 10 * time.Minute // how long an idle lane stays leased
	// orphanedAfter is how long a lane that is ours in the database can be missing in memory: a lease in progress takes
	// a moment, and a lost response never arrives.
	orphanedAfter = 3 * time.Second
	forgetOrphan  = time.Minute
)

// Revision is the state of a lane in the database, as its owner polls it.
type Revision struct {
	EndpointID id.UUID
	Rev        int64
	Held       bool
	Deleted    bool
	DropBelow  int64
	WaitEpoch  int32
}

// Compare drains lanes that are held or deleted and returns those whose configuration changed. The others of those that
// were behind before the revisions were read start again. all: revs are of all our lanes, and lanes that are missing in
// them are no longer ours.
func (d *Dispatcher) Compare(revs []Revision, behind map[id.UUID]int64, all bool) (changed []id.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ours := make(map[id.UUID]struct{}, len(revs))
	for _, r := range revs {
		ours[r.EndpointID] = struct{}{}
		l := d.lanes[r.EndpointID]
		if l == nil {
			continue
		}
		if r.Held || r.Deleted {
			d.drain(l)
			continue
		}
		if r.WaitEpoch != l.waitEpoch {
			l.waitEpoch = r.WaitEpoch
			d.endWait(l)
		}
		if l.rev != r.Rev {
			changed = append(changed, l.id)
		} else if version := behind[l.id]; version > l.version {
			d.caughtUp(l, version)
		}
		if r.DropBelow > l.window.dropBelow {
			d.forgetReady(l)
		}
		l.window.dropBelow = r.DropBelow
	}
	if !all {
		return changed
	}
	for ep, l := range d.lanes {
		// A lane that was leased after the rows were read is missing too, so a lane is dropped only at the third miss.
		if _, is := ours[ep]; is {
			l.missing = 0
		} else if l.missing++; l.missing > 2 {
			d.drop(l)
		}
	}
	return changed
}

// drain starts nothing more on a lane and drops what was read ahead. The caller holds the mutex.
func (d *Dispatcher) drain(l *Lane) {
	l.phase = draining
	d.forgetReady(l)
}

// Configure replaces a lane's configuration; its rows are read again. Settings are nil if the endpoint cannot be
// served.
func (d *Dispatcher) Configure(to Lease, s *Settings, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[to.EndpointID]
	if l == nil {
		return
	}
	l.rev = to.Rev
	d.forgetReady(l)
	d.caughtUp(l, to.Version)
	if l.health.epoch != to.Health.Epoch {
		l.readHealth(to.Health) // the counters were cleared
	}
	d.requestProbe(l, to.ProbeRequest, now)
	if s == nil {
		// A lane that was served before is released; a parked one is leased again.
		if l.phase = parked; l.settings.Load() != nil {
			l.phase = draining
		}
		return
	}
	l.phase = serving
	l.settings.Store(s)
	l.setRate(s, now)
	l.host = to.Host
	d.followPause(l, now)
	l.stopTimer()
	if s.Ordered || l.order != nil {
		l.order = newOrdering() // the lane stays ordered until a sweep finds no blocked row
	}
	d.signal()
}

// Pause replaces the set of operators' pauses. Requests in flight continue.
func (d *Dispatcher) Pause(pauses *pause.Set, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pauses = pauses
	for _, l := range d.lanes {
		d.followPause(l, now)
	}
}

// followPause stops a paused lane and resumes one whose pause ended. What was read ahead is dropped, so that any number
// of lanes can be paused. A resumed lane starts without the tokens that accrued during the pause: its endpoint gets the
// waiting deliveries at its rate, not in a burst. The caller holds the mutex.
func (d *Dispatcher) followPause(l *Lane, now time.Time) {
	paused := d.pauses.Covers(l.tenant, l.id, l.host)
	if paused == l.paused {
		return
	}
	if l.paused = paused; paused {
		d.forgetReady(l)
		return
	}
	l.resumedAt = now
	if l.limiter != nil {
		l.limiter.AllowN(now, int(l.limiter.TokensAt(now)))
	}
	l.window.wanted = true
	d.mark(l)
	d.signal()
}

// Released is a lane to give back, with the tokens for its next owner.
type Released struct {
	Endpoint id.UUID
	Tokens   float64
}

// ReleaseDrained removes and returns the drained lanes with nothing in flight.
func (d *Dispatcher) ReleaseDrained(now time.Time) (released []Released) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		if l.phase == draining && l.inFlight == 0 && l.window.held() == 0 && !l.window.isReading() {
			released = append(released, d.releaseLane(l, now))
		}
	}
	return released
}

// ReleaseIdle removes and returns idle lanes, the longest unused first: as many as are surplus, those beyond the bound
// of warm lanes, and those that have been idle for long.
func (d *Dispatcher) ReleaseIdle(surplus int, now time.Time) (released []Released) {
	d.mu.Lock()
	defer d.mu.Unlock()
	idle := make([]*Lane, 0, len(d.lanes))
	for _, l := range d.lanes {
		if l.idle() && l.timer == nil {
			idle = append(idle, l)
		}
	}
	slices.SortFunc(idle, func(a, b *Lane) int {
		return cmp.Compare(a.lastStarted.UnixNano(), b.lastStarted.UnixNano())
	})
	surplus = max(surplus, len(d.lanes)-maxWarmLanes)
	for i, l := range idle {
		if i >= surplus && now.Sub(l.lastStarted) < keepIdle {
			break
		}
		released = append(released, d.releaseLane(l, now))
	}
	return released
}

func (d *Dispatcher) releaseLane(l *Lane, now time.Time) Released {
	d.drop(l)
	return Released{l.id, l.tokens(now)}
}

// DrainBusy drains this many lanes, for other workers.
func (d *Dispatcher) DrainBusy(surplus int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		if surplus <= 0 {
			return
		}
		if l.phase == serving {
			d.drain(l)
			surplus--
		}
	}
}

// Inventory lists the lanes in memory with their tokens, to be given back when the worker ends.
func (d *Dispatcher) Inventory(now time.Time) []Released {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Released, 0, len(d.lanes))
	for ep, l := range d.lanes {
		list = append(list, Released{ep, l.tokens(now)})
	}
	return list
}

// Rescan makes the next read of an idle lane of ours start at its head. blocked: the lane has rows that wait behind
// their keys. It returns false for a lane that is not in memory.
func (d *Dispatcher) Rescan(ep id.UUID, blocked bool, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[ep]
	if l == nil {
		return false
	}
	if blocked && l.order == nil && l.phase == serving {
		l.order = newOrdering() // the rows were queued while the endpoint had an ordering
		d.mark(l)
		d.signal()
	}
	if l.idle() && now.Sub(l.rescannedAt) > rescanAgain {
		l.rescannedAt = now
		d.lower(l, 1)
		if l.order != nil {
			l.order = newOrdering()
		}
		d.signal()
	}
	return true
}

// IsOrphaned reports whether a lane that is ours in the database has been missing in memory for so long that the
// response to its lease was lost.
func (d *Dispatcher) IsOrphaned(ep id.UUID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, missed := d.orphans[ep]
	if !missed || now.Sub(since) > forgetOrphan {
		d.orphans[ep] = now
		return false
	}
	if now.Sub(since) < orphanedAfter {
		return false
	}
	delete(d.orphans, ep)
	return true
}
