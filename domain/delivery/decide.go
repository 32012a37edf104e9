package delivery

import (
	"time"

	"posthorn/domain/retry"
)

// MaxRetryAfter is the longest wait that an endpoint can ask for with Retry-After.
const MaxRetryAfter = 24 * time.Hour

// DisableGone is Decision.Disable for an endpoint that returned 410.
const DisableGone = "gone"

// Result is what came of one attempt.
type Result struct {
	Failure    Failure       // FailNone if there was a response; wins over Status when both are set
	Status     int           // HTTP status of the response; 0 if there was none
	RetryAfter time.Duration // the response's Retry-After, read with ParseRetryAfter; 0: none
	Again      bool          // the response is not about this delivery: it is retried whatever the policy says
	// Stale: the connection was kept from an earlier request, and ended without a byte of a response to this one. Most
	// likely the receiver had closed it, which says nothing about the endpoint. Or the access token was rejected, and
	// the next attempt has another one.
	Stale bool
}

// WorkerSlots is how many requests a worker can have in flight.
const WorkerSlots = 1024

// Policy is how the endpoint's settings read responses.
type Policy struct {
	Schedule          retry.Schedule
	AcceptConflict    bool // a 409 counts as delivered: the receiver had it already
	RetryClientErrors bool // other 4xx are retried by the schedule instead of failing at once
	RetryGone         bool // so is a 410: set where it does not disable the endpoint and other 4xx are retried
	// The first 401, 403 or 404 of a delivery is retried: gateways respond so during a deployment.
	RetryRefusal bool
}

// Decision is what becomes of the delivery and of its lane.
type Decision struct {
	Status   Status        // Delivered, Retrying or Failed
	Reason   Reason        // of a Failed one
	RetryIn  time.Duration // of a Retrying one: the wait until the next attempt
	Repeat   bool          // Retrying immediately, without using up the schedule
	Probe    bool          // RetryIn follows the endpoint's breaker, since the attempt was a probe
	Hold     time.Duration // nothing of the lane is sent for so long: the platform's own proxy failed
	LaneWait time.Duration // the endpoint asks for so long a wait of the whole lane; 0 is no wait
	Disable  string        // why the endpoint is to be disabled at once: DisableGone or empty
	Class    Class         // how the outcome counts for the endpoint's health
}

// Class is how an outcome counts for the endpoint's health.
type Class int16

// The classes.
const (
	Neutral   Class = 0 // concerns this one delivery; counts nowhere
	Success   Class = 1 // clears every counter
	Unhealthy Class = 2 // the endpoint is not well: breaker, 5 days, 100 failures
	Auth      Class = 3 // 401, 403, 404: their own streak
	Throttled Class = 4 // 429: asks for less, counts nowhere
)

var classWords = [...]string{"neutral", "success", "unhealthy", "auth", "throttled"}

// String is the word for the class, as metrics and logs carry it.
func (c Class) String() string { return word(classWords[:], int(c), "class") }

// UntilEdit is for how long a delivery waits whose endpoint's transformation can't be applied to it: until somebody
// edits the transformation. HeldByTransformation recognizes such a wait.
const UntilEdit = 200 * 365 * 24 * time.Hour

// HeldByTransformation reports whether a retry that is due then waits for an edit.
func HeldByTransformation(due, now time.Time) bool { return due.Sub(now) > UntilEdit/2 }

// Decide says what an attempt's result means for its delivery, by the table of docs/delivery.md. attempt counts from 1
// and is the attempt that just ended; random is drawn evenly from [0, 1) and spreads the retry.
func Decide(p Policy, attempt int, r Result, random float64) Decision {
	d := Decision{Class: Classify(r, p.AcceptConflict)}
	if r.Stale {
		d.Status, d.Repeat = Retrying, true
		return d
	}
	if r.Failure == FailTransformation {
		d.Status, d.RetryIn = Retrying, UntilEdit
		return d
	}
	if r.Failure == FailExpired {
		d.Status, d.Reason = Canceled, PastExpiry
		return d
	}
	if r.Failure == FailTooLarge {
		d.Status, d.Reason = Failed, PayloadTooLarge
		return d
	}
	if r.Failure.OfPlatform() {
		d.Hold = proxyWait(random)
		d.Status, d.RetryIn = Retrying, d.Hold
		return d
	}
	in, more := p.Schedule.Delay(attempt, random)
	switch classify(p, r, d.Class) {
	case deliver:
		d.Status = Delivered
		return d
	case reject:
		if d.Status, d.Reason = Failed, Rejected; p.RetryRefusal && d.Class == Auth && attempt == 1 && more {
			d.Status, d.Reason, d.RetryIn = Retrying, None, in
		}
		return d
	case gone:
		d.Status, d.Reason, d.Disable = Failed, Gone, DisableGone
		return d
	case broken:
		d.Status, d.Reason = Failed, Internal
		return d
	}
	// The whole lane waits, also when this delivery has no attempt left. The delivery keeps its own schedule: who ends
	// the wait of the lane releases it too.
	d.LaneWait = laneWait(r)
	if !more {
		d.Status, d.Reason = Failed, Exhausted
		return d
	}
	d.Status, d.RetryIn = Retrying, in
	return d
}

// AfterProbe is the decision about a probe of an endpoint that only fails. A delivery that would be retried, or has no
// attempt left, waits this long without using up its schedule. A response that settles the delivery still settles it,
// unless it is a refusal that is only held back.
func (d Decision) AfterProbe(in time.Duration, holdsRefusals bool) (Decision, bool) {
	if d.Status != Retrying && d.Reason != Exhausted && !(holdsRefusals && d.Refused()) {
		return d, false
	}
	d.Probe = true
	d.Status, d.Reason, d.RetryIn = Retrying, None, in
	return d, true
}

// Refused reports whether a 401, 403 or 404 ended the delivery.
func (d Decision) Refused() bool { return d.Class == Auth && d.Reason == Rejected }

// proxyWait is how long a lane waits after the platform's own proxy failed: so short that deliveries go on soon after
// it works, and spread, since it failed for many lanes together.
func proxyWait(random float64) time.Duration {
	return 10*time.Second + time.Duration(random*float64(10*time.Second))
}

type outcome int

const (
	again outcome = iota
	deliver
	reject
	gone
	broken
)

func classify(p Policy, r Result, class Class) outcome {
	switch {
	case r.Failure == FailInternal:
		// Rendering is a function of stored bytes: trying again would fail the same way, out of sight.
		return broken
	case class == Success:
		return deliver
	case r.Failure != FailNone, r.Again:
		return again
	case r.Status == 410 && !p.RetryGone:
		return gone
	case r.Status == 408 || r.Status == 425 || r.Status == 429:
		return again
	case r.Status >= 400 && r.Status < 500 && !p.RetryClientErrors:
		return reject
	default:
		return again
	}
}

// laneWait heeds Retry-After only where RFC 9110 and RFC 6585 give it this meaning for a refused request: 429 and 503.
func laneWait(r Result) time.Duration {
	if r.Failure != FailNone || (r.Status != 429 && r.Status != 503) {
		return 0
	}
	return min(max(r.RetryAfter, 0), MaxRetryAfter)
}

// Classify says how a result counts for the endpoint's health. A status outside 200 to 599 is invalid for a receiver of
// webhooks, and counts as unhealthy.
func Classify(r Result, acceptConflict bool) Class {
	switch {
	case r.Failure.Unsent(), r.Stale:
		return Neutral
	case r.Failure != FailNone:
		return Unhealthy
	case r.Status >= 200 && r.Status < 300, r.Status == 409 && acceptConflict:
		return Success
	case r.Status == 401 || r.Status == 403 || r.Status == 404:
		return Auth
	case r.Status == 429:
		return Throttled
	case r.Status == 408:
		return Unhealthy
	case r.Status >= 400 && r.Status < 500:
		return Neutral
	default:
		return Unhealthy
	}
}
