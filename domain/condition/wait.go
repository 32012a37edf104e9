package condition

import (
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/pause"
)

// Reason is why a delivery waits. Programs see the words: they never change.
type Reason string

// The reasons.
const (
	InFlight           Reason = "in_flight"           // it is being sent: see Since
	Next               Reason = "next"                // nothing keeps it: it is sent next
	Retry              Reason = "retry"               // its schedule's next attempt is not due
	Deferred           Reason = "deferred"            // its event asked for a later time
	Order              Reason = "order"               // an earlier delivery with its ordering key comes first
	RateLimit          Reason = "rate_limit"          // the endpoint's rate limit
	Concurrency        Reason = "concurrency"         // the endpoint's limit of concurrent requests
	RetryAfter         Reason = "retry_after"         // the endpoint asked for a wait
	Breaker            Reason = "breaker"             // the endpoint's circuit breaker is open
	NoWorker           Reason = "no_worker"           // no live worker serves the endpoint
	OperatorPause      Reason = "paused_by_operator"  // see Scope
	EndpointPaused     Reason = "endpoint_paused"     // by its owner
	EndpointUnverified Reason = "endpoint_unverified" //
	EndpointDisabled   Reason = "endpoint_disabled"   //
	TenantSuspended    Reason = "tenant_suspended"    //
	Listener           Reason = "listener"            // the program that listens has not collected it
	Transformation     Reason = "transformation"      // its endpoint's transformation can't be applied to it
)

// Reasons lists the reasons.
func Reasons() []Reason {
	return []Reason{
		InFlight, Next, Retry, Deferred, Order, RateLimit, Concurrency, RetryAfter, Breaker, NoWorker, OperatorPause,
		EndpointPaused, EndpointUnverified, EndpointDisabled, TenantSuspended, Listener, Transformation,
	}
}

// Holds reports whether a delivery that waits for this reason is on hold: it waits until somebody ends what keeps its
// endpoint from receiving, and not for a time or its turn.
func (r Reason) Holds() bool {
	switch r {
	case Breaker, OperatorPause, EndpointPaused, EndpointUnverified, EndpointDisabled, TenantSuspended, Listener, Transformation:
		return true
	}
	return false
}

// The states of a waiting delivery's row, stored as smallint: the numbers never change.
const (
	RowReady    = 0
	RowRetry    = 1
	RowBlocked  = 2
	RowDeferred = 3
)

// Limit is what keeps a lane from starting another request, as its worker last noted it. Stored as smallint.
type Limit int16

// The limits.
const (
	Unlimited  Limit = 0
	ByRate     Limit = 1
	ByInFlight Limit = 2
)

// Lane is what is known of the lane in which a delivery waits.
type Lane struct {
	Condition Condition
	Listens   bool      // a developer's program collects the deliveries
	Served    bool      // a live worker serves the lane, or would as soon as there is something to send
	LimitedBy Limit     // what holds back the lane's ready deliveries
	RateLimit int       // requests a second; 0: none
	NotBefore time.Time // the endpoint asked for a wait until then
}

// Row is what is known of a waiting delivery.
type Row struct {
	State  int16 // RowReady, ...
	Due    time.Time
	Asked  bool      // somebody asked for it to be the next probe
	Behind id.UUID   // the delivery that its ordering key lets go first
	Ahead  int64     // ready deliveries of the lane that go first, as far as they were counted
	Sent   time.Time // since when its request is in flight, as its worker noted; zero: it is not
}

// Wait is why a delivery waits.
type Wait struct {
	Reason Reason
	Since  time.Time   // of InFlight: when its request started
	Until  time.Time   // when what keeps it is expected to end; zero: not known
	About  bool        // Until is an estimate
	Behind id.UUID     // of Order
	Scope  pause.Scope // of OperatorPause
	// Problem is, of Transformation, what is wrong, if the event was looked at.
	Problem string
}

// WaitOf says why a delivery waits at a moment. What has to end first is named first.
func WaitOf(r Row, l Lane, now time.Time) Wait {
	if !r.Sent.IsZero() && !r.Due.After(now) {
		return Wait{Reason: InFlight, Since: r.Sent}
	}
	if w := l.stops(); w.Reason != "" {
		return w
	}
	switch {
	case r.State == RowDeferred && r.Due.After(now):
		return Wait{Reason: Deferred, Until: r.Due}
	case l.Listens:
		return Wait{Reason: Listener}
	case !l.Served:
		return Wait{Reason: NoWorker}
	case r.Asked && (l.Condition.State == Failing || l.Condition.State == AskedToWait):
		return Wait{Reason: Next}
	case l.Condition.State == Failing:
		return Wait{Reason: Breaker, Until: l.Condition.NextProbeAt}
	case r.State == RowBlocked && !r.Behind.IsZero():
		return Wait{Reason: Order, Behind: r.Behind}
	case r.State == RowRetry && delivery.HeldByTransformation(r.Due, now):
		return Wait{Reason: Transformation}
	case r.State == RowRetry && r.Due.After(now) && r.Due.After(l.NotBefore):
		return Wait{Reason: Retry, Until: r.Due}
	case l.NotBefore.After(now):
		return Wait{Reason: RetryAfter, Until: l.NotBefore}
	}
	return l.limits(r, now)
}

// AheadCounted is up to how many deliveries are counted in Row.Ahead.
const AheadCounted = 1000

// limits is the wait for the endpoint's limits of what nothing else stops. A delivery with more than a second's worth
// of others ahead waits for the rate limit, also before its worker has noted that it has reached it.
func (l Lane) limits(r Row, now time.Time) Wait {
	switch {
	case r.State == RowReady && l.RateLimit > 0 && r.Ahead >= AheadCounted:
		return Wait{Reason: RateLimit} // the wait is longer than what was counted
	case r.State == RowReady && l.RateLimit > 0 && (l.LimitedBy == ByRate || r.Ahead > int64(l.RateLimit)):
		behind := time.Duration(r.Ahead) * time.Second / time.Duration(l.RateLimit)
		return Wait{Reason: RateLimit, Until: now.Add(behind), About: true}
	case r.State == RowReady && l.LimitedBy == ByInFlight:
		return Wait{Reason: Concurrency}
	}
	return Wait{Reason: Next}
}

// Ready reports whether the lane's ready deliveries are sent as fast as its endpoint's limits and the workers allow.
// They are a backlog.
func (l Lane) Ready(now time.Time) bool {
	switch WaitOf(Row{}, l, now).Reason {
	case Next, RateLimit, Concurrency, NoWorker:
		return l.Condition.State == Active || l.Condition.State == Unserved
	}
	return false
}

// stops is the wait of every delivery of a lane to which nothing is sent; zero where something is.
func (l Lane) stops() Wait {
	switch l.Condition.State {
	case Suspended:
		return Wait{Reason: TenantSuspended, Scope: pause.Suspended}
	case Disabled:
		return Wait{Reason: EndpointDisabled}
	case Unverified:
		return Wait{Reason: EndpointUnverified}
	case Paused:
		return Wait{Reason: EndpointPaused, Until: l.Condition.Until}
	case OnHold:
		return Wait{Reason: OperatorPause, Scope: l.Condition.Scope}
	}
	return Wait{}
}

// NextAttempt is the time at which the delivery will really be tried, as far as it is known; zero where it is not.
func (w Wait) NextAttempt() time.Time {
	switch w.Reason {
	case Retry, Deferred, RetryAfter:
		return w.Until
	}
	return time.Time{}
}

// reasonWords are what each reason is called: in a word or two under a status, as a title if that differs, and in a
// sentence.
var reasonWords = map[Reason]struct{ word, title, detail string }{
	InFlight:  {"In flight", "", "Its request was sent, and the response has not arrived yet."},
	Next:      {"Sent next", "", "Nothing keeps it. It is sent in a moment."},
	Retry:     {"Waiting for retry", "", "It is retried on the endpoint's retry schedule."},
	Deferred:  {"Scheduled", "", "Its event has a deliver_at time in the future."},
	Order:     {"Waiting for an earlier delivery", "", "An earlier delivery with the same ordering key comes first."},
	RateLimit: {"Rate limit", "Waiting for the rate limit", "The endpoint is at its rate limit. Deliveries are sent as fast as the limit allows, oldest first."},
	Concurrency: {
		"Waiting for a free request slot", "",
		"The endpoint is at its limit of concurrent requests. It is sent when one of them finishes.",
	},
	RetryAfter: {
		"Endpoint asked to wait", "Waiting: the endpoint asked for it",
		"The endpoint asked for a wait with Retry-After. It is sent when the wait is over. Retry now sends it immediately and ends the wait.",
	},
	Breaker: {
		"Endpoint failing", "On hold: the endpoint is failing",
		"The endpoint fails every attempt, so deliveries are on hold (circuit breaker open). One at a time is sent as a probe; the first success releases the others.",
	},
	NoWorker: {
		"Waiting for a worker", "",
		"No live worker serves the endpoint. It is sent as soon as one does. Contact the operator of this platform.",
	},
	OperatorPause:   {"Paused by the operator", "On hold: paused by the operator", ""},
	TenantSuspended: {"Tenant suspended", "On hold: the tenant is suspended", ""},
	EndpointPaused:  {"Endpoint paused", "On hold: the endpoint is paused", "The endpoint is paused. It is sent when the endpoint is resumed."},
	EndpointUnverified: {
		"Endpoint not verified", "On hold: the endpoint is not verified",
		"The endpoint is not verified. It is sent when the endpoint is verified.",
	},
	EndpointDisabled: {
		"Endpoint disabled", "On hold: the endpoint is disabled",
		"The endpoint was disabled automatically. The delivery is sent when the endpoint is resumed and verified.",
	},
	Transformation: {
		"Transformation failed", "On hold: the transformation failed",
		"The endpoint's transformation can't be applied to this event. Nothing was sent.",
	},
	Listener: {"Listener not connected", "On hold: the listener is not connected", "It waits for `posthorn listen` to collect it."},
}

// Word is the reason in a word or two.
func (r Reason) Word() string { return reasonWords[r].word }

// Title is the reason in a few words.
func (w Wait) Title() string {
	if title := reasonWords[w.Reason].title; title != "" {
		return title
	}
	return w.Reason.Word()
}

// Detail says in a sentence why the delivery waits. Times are told beside it.
func (w Wait) Detail() string {
	if w.Reason == OperatorPause || w.Reason == TenantSuspended {
		return w.Scope.Sentence()
	}
	if w.Problem != "" {
		return reasonWords[w.Reason].detail + " The problem is in " + w.Problem + "."
	}
	return reasonWords[w.Reason].detail
}
