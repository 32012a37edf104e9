package lanes

import (
	"sync"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/pause"
)

// The bounds of one worker.
const (
	maxInFlight  = delivery.WorkerSlots // requests in flight
	maxReadAhead = 20000                // rows in memory
	maxReadBytes = 32 << 20             // of payloads in memory
	maxWarmLanes = 8192                 // leased lanes; idle ones beyond are released
)

// Dispatcher holds the lanes of a worker and decides which delivery starts next. Lanes of a tenant take turns, and so
// do tenants. When slots are short, a tenant holds at most as many of them as are still free: slots that one tenant
// leaves unused are lent to others, and stuck endpoints never take the last slots from a tenant that has none.
type Dispatcher struct {
	start    func(*Job)    // runs a job in a goroutine of its own
	signal   func()        // requests a pass of the reader
	compare  func(id.UUID) // requests that a lane is compared with the database
	mayStart func() bool

	mu        sync.Mutex
	lanes     map[id.UUID]*Lane
	marked    []*Lane                  // lanes that the next pass checks
	wanted    map[id.UUID]struct{}     // woken but not ours: to be leased
	orphans   map[id.UUID]time.Time    // ours in the database, not in memory, and since when
	behind    map[id.UUID]int64        // lanes that start nothing before they are compared, and their events' version
	tenants   map[id.UUID]*tenantQueue // of lanes in memory
	active    []*tenantQueue           // tenants with runnable lanes, in turn
	pauses    *pause.Set               // what operators have paused
	inFlight  int
	rows      int
	bytes     int64
	looks     int64 // counts ended reads and new lanes, of all lanes: the time that Mark returns
	paceTimer bool  // a timer for the next start that a tenant's pace allows
	stopped   bool
}

type tenantQueue struct {
	lanes    []*Lane
	inFlight int
	queued   bool
	pace     pace
}

// New returns a dispatcher without lanes. It calls start, signal, compare and mayStart while it holds its mutex.
func New(start func(*Job), signal func(), compare func(id.UUID), mayStart func() bool) *Dispatcher {
	return &Dispatcher{
		start:    start,
		signal:   signal,
		compare:  compare,
		mayStart: mayStart,
		lanes:    map[id.UUID]*Lane{},
		wanted:   map[id.UUID]struct{}{},
		orphans:  map[id.UUID]time.Time{},
		behind:   map[id.UUID]int64{},
		tenants:  map[id.UUID]*tenantQueue{},
	}
}

// Install puts a leased lane into service. Settings are nil if the endpoint cannot be served.
func (d *Dispatcher) Install(leased Lease, s *Settings, now time.Time) {
	l := &Lane{
		id:          leased.EndpointID,
		tenant:      leased.TenantID,
		host:        leased.Host,
		rev:         leased.Rev,
		version:     leased.Version,
		lastStarted: now,
		window:      window{rows: map[int64]*Job{}, wanted: true, dropBelow: leased.DropBelow},
		waitEpoch:   leased.WaitEpoch,
	}
	l.readHealth(leased.Health)
	if s == nil {
		l.phase = parked
	} else {
		l.settings.Store(s)
		l.setRate(s, now)
		l.fillBucket(leased.Tokens, leased.IdleSeconds, now)
		l.held.inherit(l, leased.Tokens, leased.IdleSeconds, now)
		if s.Ordered {
			l.order = newOrdering()
		}
	}
	l.inheritWait(leased, now)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	l.looked = d.looks
	d.lanes[l.id] = l
	l.paused = d.pauses.Covers(l.tenant, l.id, l.host)
	delete(d.orphans, l.id)
	d.requestProbe(l, leased.ProbeRequest, now)
	d.mark(l)
	if d.tenants[l.tenant] == nil {
		d.tenants[l.tenant] = &tenantQueue{}
	}
}

// runnable adds a lane to its tenant's turn if it has something to start. The caller holds the mutex.
func (d *Dispatcher) runnable(l *Lane) {
	if l.queued || l.stopped() || l.isBehind() || len(l.ready) == 0 || l.timer != nil || l.inFlight >= l.limit() || d.gathers(l) {
		return
	}
	t := d.tenants[l.tenant]
	l.queued = true
	t.lanes = append(t.lanes, l)
	if !t.queued {
		t.queued = true
		d.active = append(d.active, t)
	}
}

// Kick starts everything that can start.
func (d *Dispatcher) Kick() {
	now := time.Now()
	d.mu.Lock()
	for j := d.next(now); j != nil; j = d.next(now) {
		d.start(j)
	}
	d.mu.Unlock()
}

// next takes the delivery that starts now, or nil. The caller holds the mutex.
func (d *Dispatcher) next(now time.Time) *Job {
	if d.stopped || d.inFlight >= maxInFlight || !d.mayStart() {
		return nil
	}
	// Tenants that hold too many slots or are ahead of their pace keep their place. Each has a request in flight, which
	// bounds how many are skipped.
	for tries := len(d.active); tries > 0; tries-- {
		t := d.active[0]
		d.active = d.active[1:]
		if t.inFlight >= max(maxInFlight-d.inFlight, 1) {
			d.active = append(d.active, t)
			continue
		}
		if wait := t.pace.wait(t.inFlight, now); wait > 0 {
			d.active = append(d.active, t)
			d.kickAfterPace(wait)
			continue
		}
		j := d.nextOf(t, now)
		if len(t.lanes) > 0 {
			d.active = append(d.active, t)
		} else {
			t.queued = false
		}
		if j != nil {
			return j
		}
	}
	return nil
}

// nextOf takes a tenant's turn: it starts the first of its lanes that can start something.
func (d *Dispatcher) nextOf(t *tenantQueue, now time.Time) *Job {
	for len(t.lanes) > 0 {
		l := t.lanes[0]
		t.lanes = t.lanes[1:]
		l.queued = false
		if l.stopped() || l.isBehind() || len(l.ready) == 0 || l.inFlight >= l.limit() {
			continue
		}
		if l.health.breaker.State != health.Closed && !l.health.breaker.MayProbe(now) {
			d.openBreaker(l, now)
			continue
		}
		if wait := l.wait(now); wait > 0 {
			d.kickLaneAfter(l, wait)
			continue
		}
		return d.startNext(t, l, now)
	}
	return nil
}

// startNext takes a slot for the first ready delivery of a lane.
func (d *Dispatcher) startNext(t *tenantQueue, l *Lane, now time.Time) *Job {
	j := l.ready[0]
	l.ready[0] = nil
	l.ready = l.ready[1:]
	l.stopGathering(now)
	j.startsAt(now)
	if b := l.settings.Load().Batch; b != nil {
		d.pack(l, j, b, now)
	}
	j.IsProbe = l.startProbe(now)
	if l.waiting {
		j.looks, l.asked = true, l.asked.Looking(now)
	}
	if l.inFlight++; l.inFlight >= l.limit() {
		l.held.begin(now)
	}
	t.inFlight++
	d.inFlight++
	t.pace.started(now)
	l.lastStarted = now
	d.runnable(l)
	if l.wantsRead() {
		d.mark(l)
		d.signal()
	}
	return j
}

// kickLaneAfter tries a lane again when it gets its next token or its wait ends. A wait for the platform's own proxy is
// none of the lane's limits.
func (d *Dispatcher) kickLaneAfter(l *Lane, wait time.Duration) {
	now := time.Now()
	own := !l.proxyUntil.After(now)
	if own {
		l.held.begin(now)
	}
	l.timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		l.timer = nil
		if own {
			l.held.end(time.Now())
		}
		l.waiting = l.asked.Holds(time.Now())
		d.runnable(l)
		d.mu.Unlock()
		d.Kick()
	})
}

// kickAfterPace tries tenants again that were ahead of their pace. The caller holds the mutex.
func (d *Dispatcher) kickAfterPace(wait time.Duration) {
	if d.paceTimer {
		return
	}
	d.paceTimer = true
	time.AfterFunc(wait, func() {
		d.mu.Lock()
		d.paceTimer = false
		d.mu.Unlock()
		d.Kick()
	})
}

// Outcome is the result of a request for its lane.
type Outcome struct {
	Decision  delivery.Decision
	Result    delivery.Result
	LastError health.LastError // of a failure
	Aborted   bool             // this worker canceled the request: it says nothing about the endpoint
}

// Finished is what happens after a request ended.
type Finished struct {
	Next     *Job              // the job to start next; nil: none
	Decision delivery.Decision // for the delivery; after a probe it can differ from the schedule
	Change   *health.Change    // to save; nil: nothing
	Wait     *Wait             // to save; nil: nothing
	Assess   bool              // the endpoint must be assessed once the change is saved
}

// Finish releases the slots of an ended request, and counts its outcome for the endpoint.
func (d *Dispatcher) Finish(j *Job, o Outcome, now time.Time) Finished {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := j.Lane.health.breaker.State
	f := d.end(j, o, now)
	f.Decision = j.Lane.settle(j, o, now)
	f.Next = d.goOn(j.Lane, was, now)
	return f
}

// end releases the slots of a request and counts its outcome. The caller holds the mutex.
func (d *Dispatcher) end(j *Job, o Outcome, now time.Time) Finished {
	l := j.Lane
	t := d.tenants[l.tenant]
	if l.inFlight >= l.limit() {
		l.held.end(now)
	}
	l.inFlight--
	t.inFlight--
	d.inFlight--
	t.pace.ended(now.Sub(j.started))
	j.inFlight = false
	counters, breaker := l.health.counters, l.health.breaker
	f := Finished{Wait: l.applyWait(j, o, now), Change: l.count(j, o, now)}
	f.Assess = l.evaluate(o, counters, breaker, now)
	return f
}

// settle is the decision about a delivery after its request was counted. The caller holds the mutex.
func (l *Lane) settle(j *Job, o Outcome, now time.Time) delivery.Decision {
	decision := o.Decision
	if o.Result.Failure.NotTried() {
		// it waits for an edit, or is over, also as a probe: nothing was sent
	} else if j.IsProbe || decision.Refused() && l.holdsRefusals() {
		decision = l.afterProbe(j, decision, now)
	} else if decision.Repeat || decision.Hold > 0 {
		j.Probes++
	}
	if decision.Hold > 0 {
		l.proxyUntil = delivery.Latest(l.proxyUntil, now.Add(decision.Hold))
		times := min(1+int(j.Probes)/longOutage, maxHolds)
		decision.RetryIn = max(decision.RetryIn, time.Duration(times)*decision.Hold)
	}
	return decision
}

// goOn follows the breaker after a request and returns the job that starts next. The caller holds the mutex.
func (d *Dispatcher) goOn(l *Lane, was health.State, now time.Time) *Job {
	d.followBreaker(l, was, now)
	d.trim(l)
	d.runnable(l)
	return d.next(now)
}

// A delivery that the platform's own proxy has kept for long is tried less often, so that its attempts can be counted.
const (
	longOutage = 20 // attempts after which a delivery waits once more as long
	maxHolds   = 20 // and at most so many times as long
)

// trim drops what a lane read ahead when it could send more than it can now, so that an endpoint with only failures
// does not fill the memory of the others. The caller holds the mutex.
func (d *Dispatcher) trim(l *Lane) {
	keep := l.readAhead()
	if len(l.ready) <= 2*keep {
		return
	}
	first := l.ready[keep].Seq
	for i, j := range l.ready[keep:] {
		first = min(first, j.Seq)
		d.unread(j)
		l.ready[keep+i] = nil
	}
	l.ready, l.batch.tally = l.ready[:keep:keep], tally{}
	l.window.lower(first)
}

// unread forgets a job that was read and not started, with the next of its key. The caller holds the mutex, and makes
// the next read start at it or before.
func (d *Dispatcher) unread(j *Job) {
	delete(j.Lane.window.rows, j.Seq)
	d.release(j)
	for _, next := range j.after {
		d.unread(next)
	}
	j.after = nil
}

// release subtracts a job from the used memory. The caller holds the mutex.
func (d *Dispatcher) release(j *Job) {
	d.rows--
	d.bytes -= j.size()
}

// Settle removes jobs whose outcomes are recorded, or that must be read again.
func (d *Dispatcher) Settle(jobs []*Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range jobs {
		l := j.Lane
		if l.phase == dropped {
			continue // with everything it held
		}
		l.window.forget(j.Seq)
		d.release(j)
		if j.OrderKey != "" && l.order != nil {
			l.order.recheck[j.OrderKey] = struct{}{}
			d.mark(l)
			d.signal()
		}
	}
}

// drop removes a lane immediately, with everything it holds. The caller holds the mutex.
func (d *Dispatcher) drop(l *Lane) {
	l.phase = dropped
	for _, seq := range l.window.done {
		delete(l.window.rows, seq) // released already
	}
	for _, j := range l.window.rows {
		d.release(j)
	}
	l.ready, l.window.done = nil, nil
	clear(l.window.rows)
	l.stopTimer()
	l.stopGathering(time.Now())
	l.stopAwaitingProbe(time.Now())
	delete(d.lanes, l.id)
	delete(d.behind, l.id)
}

// Reset removes everything after this worker was declared dead. Requests in flight end on their own.
func (d *Dispatcher) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		d.drop(l)
	}
	clear(d.wanted)
	clear(d.orphans)
}

// Stop starts nothing more.
func (d *Dispatcher) Stop() {
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
}
