package worker

import (
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/worker/send"
)

// job is one delivery in a worker's memory, from the read of its queue row until its result is recorded.
type job struct {
	seq      int64
	gen      int32
	attempts int16 // made before this one
	delivery id.UUID
	eventID  id.UUID
	event    *send.Payload // nil: gone, or its data expunged
	lane     *lane
	key      string // order key; empty: unordered
	replay   bool
	probes   int16 // those of the attempts that its schedule does not count
	started  bool
	begun    time.Time // its request
	probe    bool      // this attempt sees whether the endpoint is well again
	epoch    id.UUID   // the worker's id when the row was read
	texts    [2]string // of the event's id and the delivery's, once asked for
}

// eventText is the event's id as people see it. Only the goroutine that has the job may ask.
func (j *job) eventText() string {
	if j.texts[0] == "" {
		j.texts[0] = id.Event.Format(j.event.ID)
	}
	return j.texts[0]
}

// deliveryText is the delivery's id as people see it. Only the goroutine that has the job may ask.
func (j *job) deliveryText() string {
	if j.texts[1] == "" {
		j.texts[1] = id.Delivery.Format(j.delivery)
	}
	return j.texts[1]
}

// lane is a leased lane in memory. The dispatcher's mutex guards it, but for target, which is a snapshot that changes whole.
type lane struct {
	id, tenant id.UUID
	target     atomic.Pointer[target]
	rev        int64
	closed     bool   // held, deleted, given back, or not to be served: nothing new starts
	leaving    bool   // held or deleted: to be given back once nothing is under way
	dropped    bool   // no longer in memory; what is under way ends as it will
	paused     bool   // by an operator: nothing of the lane is read, kept or started
	host       string // of its endpoint, as pauses name it

	// What is in memory, and what the next read has to ask for.
	rows  map[int64]*job // by seq: read ahead, in flight, or waiting to be recorded
	done  []int64        // recorded while a read was under way, which may have seen them still
	ready []*job         // to be started, in order
	floor int64          // everything up to here has been read
	// Rows up to here were held and are to be dropped: a job does, and no read takes them in.
	dropBelow int64
	lowered   bool // the floor went down while a read was under way
	stale     bool // what that read brings is out of date
	dirty     bool // rows were announced since the last read began
	more      bool // the last read did not come to the end
	reading   bool
	marked    bool // on the dispatcher's list of lanes to look at

	inFlight  int
	limiter   *rate.Limiter // nil: unlimited
	notBefore time.Time     // Retry-After
	timer     *time.Timer   // armed while the lane waits for a token or for notBefore
	queued    bool          // in its tenant's queue of runnable lanes
	counters  delivery.Counters
	record    record    // what else is kept of the endpoint
	savedAt   time.Time // when a success was last written to the endpoint's health
	used      time.Time
	walkedAt  time.Time // last full read on the ring walk's word
	missing   int       // times in a row that the database did not name us as its owner

	order *ordering // nil: the endpoint asks for no order
}

// target is what a lane's deliveries are sent with: a snapshot of the endpoint's configuration that never changes.
type target struct {
	*send.Destination
	policy      delivery.Policy
	maxInFlight int
	rate, burst int // requests a second; 0: unlimited
	ordered     bool
	health      health.Policy
	log         *slog.Logger // names the endpoint
}

// ordering is what the owner of an ordered lane knows about its blocked rows.
type ordering struct {
	begun    bool
	sweeping bool
	after    string              // last key of the sweep
	arrived  bool                // rows were announced since the last look
	arrivals int64               // blocked rows up to here have been looked at
	most     int32               // how many to look at in one go
	recheck  map[string]struct{} // keys whose head has gone
}

func newOrdering() *ordering { return &ordering{most: arrivalsChunk, recheck: map[string]struct{}{}} }

const arrivalsChunk = 500

// limit is how many requests may be in flight: what the endpoint allows, or one probe while its breaker is not closed.
func (l *lane) limit() int {
	if l.record.breaker.State != health.Closed {
		return 1
	}
	return l.target.Load().maxInFlight
}

// readAhead is how many rows a lane keeps ready: enough that its slots never wait for a read.
func (l *lane) readAhead() int {
	if l.record.breaker.State != health.Closed {
		return 1
	}
	return min(max(2*l.limit(), 8), 200)
}

// wantsRead reports whether the next pass should read the lane.
func (l *lane) wantsRead() bool {
	return !l.closed && !l.paused && !l.record.resting && !l.reading && (l.dirty || l.more) && len(l.ready) <= l.readAhead()/2
}

// lowerFloor makes the next read begin at seq or before.
func (l *lane) lowerFloor(seq int64) {
	l.floor = min(l.floor, seq-1)
	l.lowered = true // whatever the floor is: a read that is under way must not raise it over seq
	l.dirty = true
}

// flush forgets what was read ahead and not started: the rows changed, or how they are to be sent did.
func (l *lane) flush() {
	for _, j := range l.ready {
		delete(l.rows, j.seq)
	}
	l.ready = nil
	l.stale = l.reading
	l.lowerFloor(1)
}

// forget drops a row whose result is recorded. While a read is under way, which may have begun before, the row stays
// known until the next.
func (l *lane) forget(j *job) {
	if l.reading {
		l.done = append(l.done, j.seq)
		return
	}
	delete(l.rows, j.seq)
}

// beginRead marks a read as under way and returns the rows above the floor that it must not bring again.
func (l *lane) beginRead(known []int64) []int64 {
	for _, seq := range l.done {
		delete(l.rows, seq)
	}
	l.done = l.done[:0]
	l.reading, l.dirty, l.lowered, l.stale = true, false, false, false
	for seq := range l.rows {
		if seq > l.floor {
			known = append(known, seq)
		}
	}
	return known
}

// endRead takes over how far a read came: last is the greatest number it took in, complete says that nothing is left
// above it, settled is the horizon of the read.
func (l *lane) endRead(last int64, complete bool, settled int64) {
	l.reading = false
	l.more = !complete
	if l.lowered || l.stale {
		l.dirty = true
		return
	}
	if !complete {
		settled = min(settled, last)
	}
	l.floor = max(l.floor, settled)
}

// idle reports whether nothing of the lane is in memory.
func (l *lane) idle() bool {
	return l.inFlight == 0 && len(l.rows) == len(l.done) && !l.reading && !l.dirty && !l.more && (l.order == nil || !l.order.pending())
}

func (o *ordering) pending() bool {
	return o.sweeping || !o.begun || o.arrived || len(o.recheck) > 0
}

// announced marks a lane that has new rows, or old ones that are ready again.
func (l *lane) announced() {
	l.dirty = true
	if l.order != nil {
		l.order.arrived = true
	}
}

// wait is how long the lane must not start another request: 0 for not at all.
func (l *lane) wait(now time.Time) time.Duration {
	if d := l.notBefore.Sub(now); d > 0 {
		return d
	}
	if l.limiter == nil || l.limiter.AllowN(now, 1) {
		return 0
	}
	r := l.limiter.ReserveN(now, 1)
	d := r.DelayFrom(now)
	r.CancelAt(now)
	return max(d, time.Millisecond)
}

// setRate takes over a target's rate limit, keeping the tokens that are there.
func (l *lane) setRate(t *target, now time.Time) {
	switch {
	case t.rate == 0:
		l.limiter = nil
	case l.limiter == nil:
		l.limiter = rate.NewLimiter(rate.Limit(t.rate), t.burst)
	default:
		l.limiter.SetLimitAt(now, rate.Limit(t.rate))
		l.limiter.SetBurstAt(now, t.burst)
	}
}

// fillBucket sets the tokens of a lane that was just leased: what its last owner left, and what has flowed in since.
func (l *lane) fillBucket(saved, idleSeconds float64, now time.Time) {
	if l.limiter == nil {
		return
	}
	burst := l.limiter.Burst()
	have := min(saved+idleSeconds*float64(l.limiter.Limit()), float64(burst))
	l.limiter.AllowN(now, burst-int(have))
}

// tokens is what the next owner inherits.
func (l *lane) tokens(now time.Time) float64 {
	if l.limiter == nil {
		return 0
	}
	return max(l.limiter.TokensAt(now), 0)
}
