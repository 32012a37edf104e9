package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"posthorn/db"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/worker/send"
)

const (
	// passEvery is the least time between two passes under load: what gathers in it is read together. An idle worker
	// begins a pass at once.
	passEvery     = 3 * time.Millisecond
	maxLease      = 500
	readBudget    = 8 << 20 // bytes of payloads in one read
	maxReadEvents = 2000
	readRetry     = 200 * time.Millisecond
)

// read leases lanes, reads their heads and hands what it finds to the dispatcher, until the context ends.
func (w *Worker) read(ctx context.Context) {
	for {
		select {
		case <-w.signals:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		if err := w.pass(ctx); err != nil && ctx.Err() == nil {
			if !errors.Is(err, db.ErrWorkerDead) {
				w.log.Warn("lanes could not be read", "error", err)
			}
			w.signal()
			if !sleep(ctx, readRetry) {
				return
			}
			continue
		}
		if rest := passEvery - time.Since(began); rest > 0 && !sleep(ctx, rest) {
			return
		}
	}
}

// signal asks for a pass; several at once are one.
func (w *Worker) signal() {
	select {
	case w.signals <- struct{}{}:
	default:
	}
}

// pass does what has come up since the last.
func (w *Worker) pass(ctx context.Context) error {
	if err := w.lease(ctx); err != nil {
		return err
	}
	if err := w.promoteOrdered(ctx); err != nil {
		return err
	}
	read, lanes := w.dispatch.plan()
	if len(lanes) == 0 {
		return nil
	}
	got, err := w.db.ReadLanes(ctx, read)
	if err != nil {
		w.dispatch.abandon(lanes)
		return err
	}
	events, gone, err := w.payloads(ctx, got.Rows)
	if err != nil {
		w.dispatch.abandon(lanes)
		return err
	}
	settled := w.horizon.observe(got.Top, got.Xid, got.Oldest)
	lost := w.dispatch.take(lanes, read, got.Rows, events, gone, settled, w.id())
	w.dispatch.kick()
	w.expire(lost)
	return nil
}

// payloads finds the events of rows: in the cache, or in the database. An event may be cut (read it later) or gone.
func (w *Worker) payloads(ctx context.Context, rows []db.ReadLanesRow) (map[id.UUID]*send.Payload, map[id.UUID]bool, error) {
	known, missing := w.events.find(rows)
	gone := map[id.UUID]bool{}
	if len(missing) == 0 {
		return known, gone, nil
	}
	if len(missing) > maxReadEvents {
		missing = missing[:maxReadEvents] // the others stay nil and not gone: cut
	}
	found, err := w.db.ReadEvents(ctx, missing, readBudget)
	if err != nil {
		return nil, nil, err
	}
	fresh := make([]*send.Payload, 0, len(found))
	for _, ref := range missing {
		f, ok := found[ref.ID]
		switch {
		case ok && f.Cut:
		case !ok || f.Data == nil:
			gone[ref.ID] = true
		default:
			p := &send.Payload{Event: f.Event}
			known[ref.ID] = p
			fresh = append(fresh, p)
		}
	}
	w.events.add(fresh)
	return known, gone, nil
}

// expire ends deliveries whose event is no longer there.
func (w *Worker) expire(jobs []*job) {
	for _, j := range jobs {
		w.results <- &result{job: j, outcome: db.Outcome{
			TenantID: j.lane.tenant, DeliveryID: j.delivery, EventID: j.eventID, EndpointID: j.lane.id, Gen: j.gen, Attempts: j.attempts,
			Decision: delivery.Decision{Status: delivery.Failed, Reason: delivery.Expired},
		}}
	}
}

// lease takes lanes that were woken and belong to nobody.
func (w *Worker) lease(ctx context.Context) error {
	wanted := w.dispatch.takeWanted(maxLease)
	if len(wanted) == 0 {
		return nil
	}
	me := w.id()
	leased, err := w.db.Lease(ctx, me, wanted)
	if err != nil {
		if errors.Is(err, db.ErrWorkerDead) {
			w.died(me)
		} else {
			w.dispatch.want(wanted)
		}
		return err
	}
	now := time.Now()
	targets := make([]*target, len(leased))
	for i := range leased {
		targets[i] = w.targetOf(leased[i])
	}
	if w.id() != me {
		return nil // declared dead meanwhile: the lanes are free again
	}
	for i := range leased {
		w.dispatch.install(leased[i], targets[i], now)
	}
	if w.dispatch.hasWanted() {
		w.signal()
	}
	return nil
}

// targetOf reads a lane's configuration. It returns nil, and logs why, when the endpoint cannot be served; a change of the
// endpoint brings the next try.
func (w *Worker) targetOf(l db.Leased) *target {
	t, err := w.newTarget(l)
	if err != nil {
		w.log.Error("endpoint cannot be served: its deliveries wait", "endpoint", endpointID(l.Endpoint.ID), "error", err)
		return nil
	}
	t.log = w.log.With("tenant", id.Tenant.Format(l.Endpoint.TenantID), "endpoint", t.Endpoint, "url", t.Masked)
	return t
}

func (w *Worker) newTarget(l db.Leased) (*target, error) {
	e := &l.Endpoint
	settings, err := e.OpenSettings(w.keys)
	if err != nil {
		return nil, fmt.Errorf("sealed settings: %w", err)
	}
	to, err := w.sender.NewDestination(l, settings, w.keys)
	if err != nil {
		return nil, err
	}
	t := &target{
		Destination: to, maxInFlight: int(e.MaxInFlight), ordered: e.Ordering != "none", health: l.Policy,
		policy: delivery.Policy{Schedule: settings.Schedule(), AcceptConflict: e.AcceptConflict, RetryClientErrors: e.RetryClientErrors},
	}
	if settings.RateLimit != nil {
		t.rate, t.burst = *settings.RateLimit, settings.EffectiveBurst()
	}
	return t, nil
}

// plan chooses the lanes to read now and how much of each.
func (d *dispatcher) plan() (r db.LaneRead, lanes []*lane) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return r, nil
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
			d.mark(l) // its keys want another pass
		}
		if !l.wantsRead() {
			continue // what is ready comes first; its end marks the lane again
		}
		if tight && len(l.ready) > 0 {
			continue // with thousands of such lanes a pass must not cost a look at each: the next start of this one marks it again
		}
		limit := l.readAhead() - len(l.ready)
		if tight {
			limit = min(limit, 4) // enough that every lane goes on
		}
		r.Known = l.beginRead(r.Known)
		floor := l.floor
		if asked := l.record.asked; asked != 0 {
			// The probe that somebody wants, wherever it is in the lane; the next read begins where this one would have.
			floor, l.lowered, l.record.asked = asked-1, true, 0
		}
		r.Endpoints = append(r.Endpoints, l.id)
		r.Floors = append(r.Floors, max(floor, l.dropBelow))
		r.Limits = append(r.Limits, int32(limit))
		lanes = append(lanes, l)
		if room -= limit; room <= 0 {
			tight = true
		}
	}
	return r, lanes
}

// abandon takes back a plan whose read failed.
func (d *dispatcher) abandon(lanes []*lane) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range lanes {
		l.reading, l.dirty = false, true
		d.mark(l)
	}
}

// take puts what a read found into memory. Rows whose event is cut are left for the next read; those whose event is gone
// are returned.
func (d *dispatcher) take(lanes []*lane, read db.LaneRead, rows []db.ReadLanesRow, events map[id.UUID]*send.Payload, gone map[id.UUID]bool, settled int64, epoch id.UUID) (lost []*job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	type progress struct {
		rows int32
		last int64
		cut  bool
	}
	seen := make(map[id.UUID]*progress, len(lanes))
	for i := range rows {
		row := &rows[i]
		p := seen[row.EndpointID]
		if p == nil {
			p = &progress{}
			seen[row.EndpointID] = p
		}
		l := d.lanes[row.EndpointID]
		e := events[row.EventID]
		if p.cut = p.cut || (e == nil && !gone[row.EventID]); p.cut || l == nil {
			continue
		}
		p.rows++
		p.last = row.Seq
		if l.rows[row.Seq] != nil || l.closed || l.stale {
			continue
		}
		j := &job{
			seq: row.Seq, gen: row.Gen, attempts: row.Attempts, probes: row.Probes, delivery: row.DeliveryID, eventID: row.EventID, event: e, lane: l, key: row.OrderKey,
			replay: row.Replay, epoch: epoch,
		}
		l.rows[row.Seq] = j
		d.rows++
		d.bytes += j.size()
		if e == nil {
			lost = append(lost, j)
			continue
		}
		l.ready = append(l.ready, j)
	}
	again := false
	for i, l := range lanes {
		p := seen[l.id]
		if p == nil {
			p = &progress{}
		}
		l.endRead(p.last, !p.cut && p.rows < read.Limits[i], settled)
		d.runnable(l)
		if l.wantsRead() {
			d.mark(l)
			again = true
		}
	}
	if again {
		d.signal()
	}
	return lost
}

func (d *dispatcher) takeWanted(most int) []id.UUID {
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

func (d *dispatcher) want(endpoints []id.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ep := range endpoints {
		d.wanted[ep] = struct{}{}
	}
}

func (d *dispatcher) hasWanted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.wanted) > 0
}
