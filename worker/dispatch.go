package worker

import (
	"sync"
	"time"

	"posthorn/db"
	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/pause"
)

// The bounds of one worker.
const (
	maxInFlight  = 1024     // requests under way
	maxReadAhead = 20000    // rows in memory
	maxReadBytes = 32 << 20 // of payloads in memory
	maxWarmLanes = 8192     // leased lanes; idle ones beyond are given back
)

// dispatcher holds the lanes of a worker and decides which delivery starts next. Lanes of one tenant take turns, and so
// do tenants. When slots are short a tenant may hold no more of them than are still free: what one leaves unused is lent
// to the others, and no number of stuck endpoints takes the last slots from a tenant that has none.
type dispatcher struct {
	start  func(*job) // runs a job in a goroutine of its own
	signal func()     // asks for a pass of the reader
	fenced func() bool

	mu       sync.Mutex
	lanes    map[id.UUID]*lane
	marked   []*lane               // lanes that the next pass looks at
	wanted   map[id.UUID]struct{}  // woken, not ours: to be leased
	strays   map[id.UUID]time.Time // ours in the database, not in memory, since when
	tenants  map[id.UUID]*tenantQueue
	active   []*tenantQueue // tenants with runnable lanes, in turn
	pauses   *pause.Set     // what operators have paused
	inFlight int
	rows     int
	bytes    int64
	paced    bool // a timer looks again when a tenant's pace allows its next start
	stopped  bool
}

type tenantQueue struct {
	lanes    []*lane
	inFlight int
	queued   bool
	pace     pace
}

func newDispatcher(start func(*job), signal func(), fenced func() bool) *dispatcher {
	return &dispatcher{
		start: start, signal: signal, fenced: fenced,
		lanes: map[id.UUID]*lane{}, wanted: map[id.UUID]struct{}{}, strays: map[id.UUID]time.Time{}, tenants: map[id.UUID]*tenantQueue{},
	}
}

// wake marks lanes that have new rows and returns the endpoints that are not ours.
func (d *dispatcher) wake(endpoints []id.UUID) (foreign []id.UUID) {
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

// mark has the next pass look at a lane: it has rows to be read, or keys to be promoted. The caller holds the mutex.
func (d *dispatcher) mark(l *lane) {
	if !l.marked {
		l.marked = true
		d.marked = append(d.marked, l)
	}
}

// lower makes the next read of a lane begin at seq or before. The caller holds the mutex.
func (d *dispatcher) lower(l *lane, seq int64) {
	l.lowerFloor(seq)
	d.mark(l)
}

// wakeAll marks every lane: an announcement named more endpoints than fit.
func (d *dispatcher) wakeAll() {
	d.mu.Lock()
	for _, l := range d.lanes {
		l.announced()
		d.mark(l)
	}
	d.mu.Unlock()
	d.signal()
}

// install takes a leased lane into service.
func (d *dispatcher) install(leased db.Leased, t *target, now time.Time) {
	l := &lane{
		id: leased.EndpointID, tenant: leased.TenantID, rev: leased.Rev, rows: map[int64]*job{}, dirty: true, used: now,
		closed: t == nil, dropBelow: leased.DropBelow, host: pause.HostOf(leased.Endpoint.URL),
	}
	l.readHealth(leased.Health)
	if t != nil {
		l.target.Store(t)
		l.setRate(t, now)
		l.fillBucket(leased.Tokens, leased.IdleSeconds, now)
		if t.ordered {
			l.order = newOrdering()
		}
	}
	if leased.WaitSeconds > 0 {
		l.notBefore = now.Add(time.Duration(leased.WaitSeconds * float64(time.Second)))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lanes[l.id] = l
	l.paused = d.pauses.Covers(l.tenant, l.id, l.host)
	delete(d.strays, l.id)
	d.heed(l, leased.Asked, now)
	d.mark(l)
	if d.tenants[l.tenant] == nil {
		d.tenants[l.tenant] = &tenantQueue{}
	}
}

// runnable puts a lane in its tenant's turn when it has something to start. The caller holds the mutex.
func (d *dispatcher) runnable(l *lane) {
	if l.queued || l.closed || l.paused || l.record.resting || len(l.ready) == 0 || l.timer != nil || l.inFlight >= l.limit() {
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

// next picks the delivery that starts now, or nil. The caller holds the mutex.
func (d *dispatcher) next(now time.Time) *job {
	if d.stopped || d.inFlight >= maxInFlight || !d.fenced() {
		return nil
	}
	// Tenants that are over their share or ahead of their pace keep their place. Each has a request under way, which bounds how many
	// are passed over.
	for tries := len(d.active); tries > 0; tries-- {
		t := d.active[0]
		d.active = d.active[1:]
		if t.inFlight >= max(maxInFlight-d.inFlight, 1) {
			d.active = append(d.active, t)
			continue
		}
		if wait := t.pace.wait(t.inFlight, now); wait > 0 {
			d.active = append(d.active, t)
			d.lookAgain(wait)
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

// nextOf takes the turn of a tenant: the first of its lanes that may start something does.
func (d *dispatcher) nextOf(t *tenantQueue, now time.Time) *job {
	for len(t.lanes) > 0 {
		l := t.lanes[0]
		t.lanes = t.lanes[1:]
		l.queued = false
		if l.closed || l.paused || l.record.resting || len(l.ready) == 0 || l.inFlight >= l.limit() {
			continue
		}
		if l.record.breaker.State != health.Closed && !l.record.breaker.MayProbe(now) {
			d.rest(l, now)
			continue
		}
		if wait := l.wait(now); wait > 0 {
			d.arm(l, wait)
			continue
		}
		j := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		j.started, j.begun = true, now
		j.probe = l.probe(now)
		l.inFlight++
		t.inFlight++
		d.inFlight++
		t.pace.started(now)
		l.used = now
		d.runnable(l)
		if l.wantsRead() {
			d.mark(l)
			d.signal()
		}
		return j
	}
	return nil
}

// arm wakes a lane when its token or its time comes.
func (d *dispatcher) arm(l *lane, wait time.Duration) {
	l.timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		l.timer = nil
		d.runnable(l)
		d.mu.Unlock()
		d.kick()
	})
}

// lookAgain has the starts of tenants that were ahead of their pace made up for. The caller holds the mutex.
func (d *dispatcher) lookAgain(wait time.Duration) {
	if d.paced {
		return
	}
	d.paced = true
	time.AfterFunc(wait, func() {
		d.mu.Lock()
		d.paced = false
		d.mu.Unlock()
		d.kick()
	})
}

// kick starts whatever may start.
func (d *dispatcher) kick() {
	now := time.Now()
	d.mu.Lock()
	for j := d.next(now); j != nil; j = d.next(now) {
		d.start(j)
	}
	d.mu.Unlock()
}

// end is what came of a request, as far as the dispatcher must know.
type end struct {
	decision delivery.Decision
	result   delivery.Result
	error    db.LastError // of a failure
	broken   bool         // this worker broke it off: it says nothing about the endpoint
}

// ended is what follows from the end of a request.
type ended struct {
	next     *job              // may start in its stead; nil: none
	decision delivery.Decision // what becomes of the delivery: of a probe not what its schedule says
	change   *db.HealthChange  // to be saved; nil: nothing
	assess   bool              // something is to be decided about the endpoint, once that is saved
}

// finished gives back the slots of a request that has ended, with what it says about the endpoint.
func (d *dispatcher) finished(j *job, e end, now time.Time) (then ended) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := j.lane
	l.inFlight--
	d.inFlight--
	t := d.tenants[l.tenant]
	t.inFlight--
	t.pace.ended(now.Sub(j.begun))
	if until := now.Add(e.decision.LaneWait); e.decision.LaneWait > 0 && until.After(l.notBefore) {
		l.notBefore = until
	}
	before, was := l.counters, l.record.breaker
	then.change = l.count(j, e, now)
	then.assess = l.judge(e, before, was, now)
	then.decision = e.decision
	if j.probe {
		then.decision = l.spare(j, then.decision, now)
	}
	d.follow(l, was.State, now)
	d.trim(l)
	d.runnable(l)
	then.next = d.next(now)
	return then
}

// disableWithin is how long a lane waits for its endpoint to be disabled; by then it is held, or goes on where that failed.
const disableWithin = 5 * time.Second

// trim gives back what a lane read ahead when it could send more than it can now: an endpoint that does nothing but fail
// must not fill the memory that the others read ahead in. The caller holds the mutex.
func (d *dispatcher) trim(l *lane) {
	keep := l.readAhead()
	if len(l.ready) <= 2*keep {
		return
	}
	first := l.ready[keep].seq
	for i, j := range l.ready[keep:] {
		first = min(first, j.seq)
		delete(l.rows, j.seq)
		d.rows--
		d.bytes -= j.size()
		l.ready[keep+i] = nil
	}
	l.ready = l.ready[:keep:keep]
	l.lowerFloor(first)
}

// settled forgets jobs whose results are recorded, or that are to be read again.
func (d *dispatcher) settled(jobs []*job) {
	d.mu.Lock()
	for _, j := range jobs {
		l := j.lane
		if l.dropped {
			continue // with all it held
		}
		l.forget(j)
		d.rows--
		d.bytes -= j.size()
		if j.key != "" && l.order != nil {
			l.order.recheck[j.key] = struct{}{}
			d.mark(l)
			d.signal()
		}
	}
	d.mu.Unlock()
}

func (j *job) size() int64 {
	if j.event == nil {
		return 0
	}
	return int64(len(j.event.Data))
}

// drop forgets a lane at once, whatever it holds. The caller holds the mutex.
func (d *dispatcher) drop(l *lane) {
	l.closed, l.dropped = true, true
	for _, seq := range l.done {
		delete(l.rows, seq) // given back already
	}
	for _, j := range l.rows {
		d.rows--
		d.bytes -= j.size()
	}
	l.ready, l.done = nil, nil
	clear(l.rows)
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.endRest()
	delete(d.lanes, l.id)
}

// reset forgets everything: this worker was declared dead. Requests under way end as they will.
func (d *dispatcher) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		d.drop(l)
	}
	clear(d.wanted)
	clear(d.strays)
}

// stop starts nothing more.
func (d *dispatcher) stop() {
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
}
