// Package condition is the one account of how an endpoint is and why a delivery waits. Every surface (API, command
// line, dashboard, console, mail, metrics) shows what this package says, and derives nothing from stored columns
// itself.
package condition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/pause"
	"posthorn/domain/words"
)

// State is how an endpoint is. Exactly one holds. Programs see the words: they never change.
type State string

// The states.
const (
	Suspended  State = "suspended"          // the operator suspended the endpoint's tenant
	Disabled   State = "disabled"           // Posthorn disabled the endpoint, for a cause
	Failing    State = "failing"            // its circuit breaker is open: nothing is sent but probes
	Unverified State = "unverified"         // it has not been verified
	Paused     State = "paused"             // a member or program of its tenant paused it
	OnHold     State = "paused_by_operator" // the operator paused the endpoint, its tenant, its host, or everything
	// AskedToWait: the endpoint asked for a wait with Retry-After: nothing is sent before, except one delivery an hour
	AskedToWait State = "asked_to_wait"
	// Disconnected: a listener whose program is away
	Disconnected State = "disconnected"
	// Unserved: no live worker serves the endpoint
	Unserved State = "waiting_for_worker"
	Active   State = "active" // the next delivery would be sent now
)

// Degraded is what people call an active endpoint whose attempts fail too often. It is no state: deliveries are sent.
const Degraded = "degraded"

// States lists the states, those first that need somebody's attention most.
func States() []State {
	return []State{Failing, Disabled, Suspended, OnHold, Unserved, AskedToWait, Unverified, Paused, Disconnected, Active}
}

// Shown lists what endpoints are called, and filtered by: the states, and Degraded. Lists are sorted by it.
func Shown() []State {
	all := States()
	return slices.Insert(all, slices.Index(all, Unverified), Degraded)
}

// Rank is the place of the state in Shown.
func (s State) Rank() int { return slices.Index(Shown(), s) }

// Word is the state for people: the token, with spaces.
func (s State) Word() string { return strings.ReplaceAll(string(s), "_", " ") }

// Facts are what is stored about an endpoint.
type Facts struct {
	Status   endpoint.Status
	Reason   string    // why it has its status, as stored
	StatusAt time.Time // since when
	ResumeAt time.Time // when its pause ends by itself; zero: not
	Breaker  health.Breaker
	Asked    health.Asked    // what it asked for with Retry-After
	Last     delivery.Result // of its last failed attempt; zero: none
	Drops    bool            // it is set to drop events while it is not active
	// the widest pause of an operator that concerns it; Suspended: its tenant is; empty: none
	Scope       pause.Scope
	ScopeSince  time.Time     // zero: not known
	Unserved    bool          // no live worker serves its lane
	Verifying   bool          // it was disabled, was resumed, and is being verified
	Listens     bool          // a developer's program collects its deliveries
	HeardAt     time.Time     // when that program was last heard of
	Record      health.Record // of its attempts of the last 24 hours
	DisableAt   time.Time     // when it will be disabled if nothing changes; zero: no date
	DisableFor  health.Reason // and why
	Held        int64         // deliveries that wait for it
	HeldAtLeast bool          // more than Held wait
}

// Condition is how an endpoint is, since when, why, and what comes next. Times that do not apply are zero.
type Condition struct {
	State State
	Scope pause.Scope // of OnHold: what the operator paused
	Since time.Time   // zero: not known
	Cause string      // a word for programs, see CauseText; empty where there is nothing to say
	Until time.Time   // of AskedToWait, and of Paused where the pause ends by itself
	// NextProbeAt is of Failing; zero while a probe is under way. Of AskedToWait, if a delivery is sent before Until.
	NextProbeAt time.Time
	DisableAt   time.Time // when Posthorn will disable it unless a delivery succeeds
	DisableFor  health.Reason
	Held        int64       // deliveries that wait because of this condition
	HeldAtLeast bool        // there are more than Held
	Drops       bool        // new events create no deliveries to it, as its tenant configured
	Verifying   bool        // of Disabled: it was resumed, and is being verified
	Degraded    bool        // of Active: its attempts fail too often
	Day         health.Rate // of a degraded endpoint
}

// Of is the condition of an endpoint at a moment.
func Of(f Facts, now time.Time) Condition {
	c := Condition{State: stateOf(f, now), Since: f.StatusAt}
	if c.State != Active {
		c.Held, c.HeldAtLeast = f.Held, f.HeldAtLeast
	}
	c.Drops = f.Drops && (c.State == Disabled || c.State == Unverified || c.State == Paused || c.State == Disconnected && f.Status == endpoint.Paused)
	c.Verifying = f.Verifying && c.State == Disabled
	if c.Degraded = c.State == Active && f.Record.Degraded(now); c.Degraded {
		c.Day = f.Record.Day
	}
	switch c.State {
	case Unserved:
		c.Since = time.Time{} // not known: the worker may have ended without a word
	case Suspended:
		c.Since = f.ScopeSince
	case Disconnected:
		c.Since = f.HeardAt
	case OnHold:
		c.Since, c.Scope = f.ScopeSince, f.Scope
	case Disabled, Unverified:
		c.Cause = f.Reason
	case Paused:
		c.Until = f.ResumeAt
	case Failing:
		c.fails(f, now)
	case AskedToWait:
		c.Since, c.Until = f.Asked.Since, f.Asked.Until
		if f.Asked.Looks() {
			c.NextProbeAt = f.Asked.Next()
		}
	}
	// The date holds whatever keeps the endpoint from being sent to, as long as it is active by itself.
	if f.Status == endpoint.Active {
		c.DisableAt, c.DisableFor = f.DisableAt, f.DisableFor
	}
	return c
}

// fails adds what a breaker that is not closed says.
func (c *Condition) fails(f Facts, now time.Time) {
	c.Since = f.Breaker.OpenedAt
	if f.Last != (delivery.Result{}) {
		c.Cause = string(health.ProblemOf(f.Last))
	}
	if f.Breaker.At(now) == health.Open {
		c.NextProbeAt = f.Breaker.NextProbeAt
	}
	if next := f.Asked.Next(); f.Asked.Holds(now) && next.After(now) && next.After(c.NextProbeAt) {
		c.NextProbeAt = next // the probe waits too
	}
}

// stateOf puts first what has to end first: a suspended tenant can change nothing, and resuming a disabled endpoint
// comes before the end of an operator's pause can have an effect.
func stateOf(f Facts, now time.Time) State {
	switch {
	case f.Scope == pause.Suspended:
		return Suspended
	case f.Status == endpoint.Disabled:
		return Disabled
	case f.Status == endpoint.Unverified:
		return Unverified
	case f.Listens && !f.HeardAt.After(now.Add(-endpoint.ListenerSilent)):
		return Disconnected
	case f.Status == endpoint.Paused:
		return Paused
	case f.Scope != "":
		return OnHold
	case f.Breaker.State != health.Closed:
		return Failing
	case f.Asked.Holds(now):
		return AskedToWait
	case f.Unserved:
		return Unserved
	}
	return Active
}

// Shown is what people call the condition: its state, or Degraded.
func (c Condition) Shown() State {
	if c.Degraded {
		return Degraded
	}
	return c.State
}

// Is reports whether a filter of Shown finds the endpoint: a degraded one is active too.
func (c Condition) Is(filter State) bool { return filter == c.State || filter == c.Shown() }

// Sends reports whether the next delivery would be sent now.
func (c Condition) Sends() bool { return c.State == Active }

// Probing reports whether a probe is under way, or due at once.
func (c Condition) Probing() bool { return c.State == Failing && c.NextProbeAt.IsZero() }

// causes are what the words for a cause that is no problem of attempts mean, to follow "the endpoint".
var causes = map[string]string{
	"url_changed":            "its URL changed",
	string(health.Gone):      "it returned 410 Gone",
	string(health.TLS):       "every connection failed with a TLS error",
	string(health.Auth):      "it returned 401, 403, or 404 too many times in a row",
	string(health.Unhealthy): "every attempt failed for days",
	string(health.Failures):  "too many attempts failed in a row",
	string(health.Exhausted): "too many deliveries ran out of attempts",
}

// CauseText is a cause for people, to follow "because"; empty where there is nothing to say.
func (c Condition) CauseText() string {
	if c.State == Failing {
		return health.Problem(c.Cause).Words().Cause
	}
	return causes[c.Cause]
}

// Title is the condition in a few words.
func (c Condition) Title() string {
	switch c.State {
	case Suspended:
		return "Tenant suspended"
	case Disabled:
		return "Endpoint disabled"
	case Failing:
		return "Endpoint failing"
	case Unverified:
		return "Endpoint not verified"
	case Paused:
		return "Endpoint paused"
	case OnHold:
		return "Paused by the operator"
	case AskedToWait:
		return "Endpoint asked to wait"
	case Disconnected:
		return "Listener disconnected"
	case Unserved:
		return "No worker"
	}
	if c.Degraded {
		return "Endpoint degraded"
	}
	return "Active"
}

// newEvents says what becomes of events at an endpoint that is not active.
func (c Condition) newEvents(held string) string {
	if c.Drops {
		if c.State == Disconnected {
			return " New events create no deliveries to it until it connects again."
		}
		return " New events are dropped: they create no deliveries to it, as configured for this endpoint."
	}
	return held
}

// PauseText says what pausing does to an endpoint that drops events, or holds their deliveries.
func PauseText(drops bool) string {
	if drops {
		return "Nothing is sent until it is resumed. New events are dropped: they create no deliveries to this endpoint, as configured in its settings."
	}
	return "Nothing is sent until it is resumed. Deliveries are held, and none is lost."
}

// Detail says in a sentence or two what the condition means. Times are told beside it.
func (c Condition) Detail() string {
	because := func(text string) string {
		if why := c.CauseText(); why != "" {
			return text + ": " + why + "."
		}
		return text + "."
	}
	switch c.State {
	case Suspended:
		return pause.Suspended.Sentence()
	case Disabled:
		until := " Nothing is sent until it is resumed and verified."
		if c.Verifying {
			until = " A verification is under way. Nothing is sent until it succeeds."
		}
		return because("The endpoint was disabled automatically") + until + c.newEvents("")
	case Failing:
		return because("The endpoint fails every attempt, so its circuit breaker is open") +
			" Deliveries are on hold, and we send one probe at a time. Waiting deliveries don't use up retries; the first success releases the backlog."
	case Unverified:
		return because("The endpoint is not verified") + " Nothing is sent until it is verified." +
			c.newEvents(" Deliveries are held for up to 7 days.")
	case Paused:
		text := "The endpoint was paused. Nothing is sent until it is resumed."
		if !c.Until.IsZero() {
			text = "The endpoint was paused. It is resumed automatically; nothing is sent before."
		}
		return text + c.newEvents(" Deliveries are held.")
	case OnHold:
		return c.Scope.Sentence()
	case Disconnected:
		return "The program that listens is not connected." + c.newEvents(" Its deliveries wait until it connects again. New events create none once it has been away for ten minutes.")
	case Unserved:
		return "No live worker serves the endpoint. Deliveries wait, and are sent as soon as one does. Contact the operator of this platform."
	case AskedToWait:
		text := "The endpoint asked for a wait with Retry-After. Nothing is sent until it is over"
		if !c.NextProbeAt.IsZero() {
			text += ", except one delivery an hour that checks whether it is still meant"
		}
		return text + ". To send now, resume the endpoint or retry a delivery."
	}
	if c.Degraded {
		return fmt.Sprintf(
			"Deliveries are sent, but %s of %s failed in the last 24 hours.",
			words.Number(c.Day.Failed()),
			words.Count(c.Day.Total, "attempt", "attempts"),
		)
	}
	return "Deliveries are sent."
}
