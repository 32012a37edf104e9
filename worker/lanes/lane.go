package lanes

import (
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/worker/send"
)

// Row is a queue row from a read.
type Row struct {
	Seq        int64
	Gen        int32
	Attempts   int16 // started before this one
	Probes     int16 // those of the attempts that its schedule does not count
	TenantID   id.UUID
	EndpointID id.UUID
	DeliveryID id.UUID
	EventID    id.UUID
	Replay     bool
	FirstID    *id.UUID // the first delivery of the event to the endpoint; nil: this is it
	// RoutingVersion is that of the tenant's routes when a replay was created; nil: that of its event.
	RoutingVersion *int64
	OrderKey       string     // empty: unordered
	ExpiresAt      *time.Time // after which it is not sent; nil: never
}

// Job is one delivery in a worker's memory, from the read of its queue row until its outcome is recorded.
type Job struct {
	Row
	Event *send.Payload // nil: deleted, or its data expunged
	Lane  *Lane
	Epoch id.UUID // the worker's id when the row was read

	IsProbe  bool          // this attempt shows whether the endpoint has recovered
	looks    bool          // it is sent although the endpoint asked for a wait
	HeldBack time.Duration // by the lane's own limits, until its first attempt started
	started  time.Time
	inFlight bool      // its request started and has not ended
	texts    [2]string // of the event's id and the delivery's, once requested

	Rest  []*Job // the others of its request, in order
	after []*Job // the next of its key, which are blocked and can travel with it
}

// Version is the version of the tenant's routes by which the endpoint's transformation is chosen.
func (j *Job) Version() int64 {
	if j.RoutingVersion != nil {
		return *j.RoutingVersion
	}
	return j.Event.RoutingVersion
}

// EventText is the event's external id. Only the goroutine that has the job calls it.
func (j *Job) EventText() string {
	if j.texts[0] == "" {
		j.texts[0] = id.Event.Format(j.Event.ID)
	}
	return j.texts[0]
}

// DeliveryText is the delivery's external id. Only the goroutine that has the job calls it.
func (j *Job) DeliveryText() string {
	if j.texts[1] == "" {
		j.texts[1] = id.Delivery.Format(j.DeliveryID)
	}
	return j.texts[1]
}

// FirstText is the external id of the first delivery of a replay's event to its endpoint; empty if this is no replay.
func (j *Job) FirstText() string {
	if j.FirstID == nil {
		return ""
	}
	return id.Delivery.Format(*j.FirstID)
}

// size is the memory that the job counts in the dispatcher, in bytes.
func (j *Job) size() int64 {
	if j.Event == nil {
		return 0
	}
	return int64(len(j.Event.Data))
}

// Settings is an immutable snapshot of how a lane's deliveries are sent.
type Settings struct {
	Destination *send.Destination
	Policy      delivery.Policy
	Health      health.Policy
	MaxInFlight int
	Rate, Burst int // requests a second; Rate 0: unlimited
	Ordered     bool
	NoBreaker   bool            // deliveries keep to their schedules, however many attempts fail
	Log         *slog.Logger    // names the endpoint
	Batch       *endpoint.Batch // how deliveries share requests; nil: each has its own
}

// Lease is a lane that this worker now owns, as the database describes it.
type Lease struct {
	EndpointID, TenantID id.UUID
	Host                 string // of the endpoint's URL, as pauses name it
	Rev                  int64
	Version              int64 // of the tenant's routes; the settings are of it or of a newer one
	DropBelow            int64
	Tokens               float64 // left in the bucket by the last owner
	IdleSeconds          float64 // since then
	WaitSeconds          float64 // rest of a Retry-After
	LookSeconds          float64 // until a request is sent nevertheless
	WaitEpoch            int32   // grows when somebody ends a Retry-After
	ProbeRequest         int64   // the row of a requested probe; 0: none
	Health               Health
}

// Health is the recorded health of an endpoint.
type Health struct {
	Counters delivery.Counters
	Breaker  health.Breaker
	Epoch    int32
	GoneAt   time.Time // the last 410 since the last success
}

// phase is the state of a lane. A lane starts requests only while it is serving.
type phase uint8

const (
	serving  phase = iota
	parked         // its configuration cannot be used: it waits for another
	draining       // held, deleted, or surplus: to be released once nothing is in flight
	dropped        // no longer in memory: requests in flight end on their own
)

// Lane is a leased lane in memory. The dispatcher's mutex guards it, except for settings, which are replaced as a
// whole.
type Lane struct {
	id, tenant id.UUID
	host       string
	settings   atomic.Pointer[Settings]
	rev        int64
	version    int64 // of the tenant's routes; the settings are of it or of a newer one
	required   int64 // the newest version of an event that the lane has got; see versions.go
	phase      phase
	paused     bool // by an operator: nothing of the lane is read, kept or started

	window window
	ready  []*Job // to be started, in order
	looked int64  // when its last read ended, or when the lane was installed
	handed int    // rows that were handed over since then
	marked bool   // on the dispatcher's list of lanes to check

	inFlight    int
	limiter     *rate.Limiter // nil: unlimited
	asked       health.Asked  // Retry-After
	waiting     bool          // asked holds, as far as the lane has looked
	waitEpoch   int32         // of asked in the database; a new epoch means that somebody ended the wait
	stopUntil   time.Time     // the endpoint is about to be disabled
	proxyUntil  time.Time     // the platform's own proxy failed
	timer       *time.Timer   // armed while the lane waits for a token or a time
	queued      bool          // in its tenant's queue of runnable lanes
	health      laneHealth
	held        heldBack
	limited     laneLimit
	resumedAt   time.Time // when the last operator's pause of the lane ended
	lastStarted time.Time
	rescannedAt time.Time // when the rescan last caused a read from the head
	missing     int       // how many times in a row the database did not name us as its owner

	order *ordering // nil: the endpoint has no ordering
	batch gathering // of an endpoint whose deliveries share requests
}

// ID is the endpoint's id.
func (l *Lane) ID() id.UUID { return l.id }

// Settings is the present configuration; nil for a lane that was never served.
func (l *Lane) Settings() *Settings { return l.settings.Load() }

// limit is how many requests can be in flight: as many as the endpoint allows, or one probe while its breaker is not
// closed or the lane waits.
func (l *Lane) limit() int {
	if l.probesOnly() {
		return 1
	}
	return l.settings.Load().MaxInFlight
}

// probesOnly reports whether the lane sends single requests that show how the endpoint is, and nothing else.
func (l *Lane) probesOnly() bool { return l.health.breaker.State != health.Closed || l.waiting }

// readAhead is how many rows a lane keeps ready: enough that its slots never wait for a read.
func (l *Lane) readAhead() int {
	if l.probesOnly() {
		return 1
	}
	if b := l.settings.Load().Batch; b != nil {
		return min(max(2*l.limit(), 8), 200) + 2*b.Events
	}
	return min(max(2*l.limit(), 8), 200)
}

// stopped reports whether nothing of the lane is read or started now.
func (l *Lane) stopped() bool { return l.phase != serving || l.paused || l.health.awaitsProbe }

// wantsRead reports whether the next pass should read the lane.
func (l *Lane) wantsRead() bool {
	return !l.stopped() && l.window.wantsRead() && len(l.ready) <= l.readAhead()/2
}

// forgetReady drops what was read ahead and not started: the rows changed, or how they are sent.
func (l *Lane) forgetReady() {
	l.ready, l.batch.tally = nil, tally{}
	l.window.restart()
}

// idle reports whether nothing of the lane is in memory.
func (l *Lane) idle() bool {
	return l.inFlight == 0 && l.window.idle() && (l.order == nil || !l.order.pending())
}

// announced marks a lane that has new rows, or old ones that are ready again.
func (l *Lane) announced() {
	l.window.wanted = true
	if l.order != nil {
		l.order.arrived = true
	}
}

// wait is how long the lane must not start another request; 0: it can start one.
func (l *Lane) wait(now time.Time) time.Duration {
	if d := max(l.stopUntil.Sub(now), l.proxyUntil.Sub(now)); d > 0 {
		return d
	}
	if l.waiting = l.asked.Holds(now); l.waiting {
		if d := l.asked.Next().Sub(now); d > 0 {
			return d
		}
	}
	if l.limiter == nil || l.limiter.AllowN(now, 1) {
		return 0
	}
	r := l.limiter.ReserveN(now, 1)
	d := r.DelayFrom(now)
	r.CancelAt(now)
	return max(d, time.Millisecond)
}

// setRate applies the settings' rate limit and keeps the present tokens.
func (l *Lane) setRate(s *Settings, now time.Time) {
	switch {
	case s.Rate == 0:
		l.limiter = nil
	case l.limiter == nil:
		l.limiter = rate.NewLimiter(rate.Limit(s.Rate), s.Burst)
	default:
		l.limiter.SetLimitAt(now, rate.Limit(s.Rate))
		l.limiter.SetBurstAt(now, s.Burst)
	}
}

// fillBucket sets the tokens of a newly leased lane: what its last owner left, plus what has accrued since.
func (l *Lane) fillBucket(saved, idleSeconds float64, now time.Time) {
	if l.limiter == nil {
		return
	}
	burst := l.limiter.Burst()
	have := min(saved+idleSeconds*float64(l.limiter.Limit()), float64(burst))
	l.limiter.AllowN(now, burst-int(have))
}

// tokens are the tokens for the next owner.
func (l *Lane) tokens(now time.Time) float64 {
	if l.limiter == nil {
		return 0
	}
	return max(l.limiter.TokensAt(now), 0)
}
