package show

import (
	"cmp"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/pause"
)

// Endpoint is an endpoint with its condition. Lists of the dashboard read it without the settings that are sealed.
type Endpoint struct {
	Tenant       id.UUID
	ID           id.UUID
	Settings     endpoint.Settings
	Status       endpoint.Status
	StatusReason string
	StatusAt     time.Time
	VerifiedAt   *time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Deleted      bool
	Mute         health.Mute   // of its alerts
	ResumeAt     time.Time     // when its pause ends by itself; zero: not, or it is not paused
	Verification *Verification // the newest; nil: none, or not read
	Condition    condition.Condition
	Breaker      health.State // closed, open, or half open
	Verdict      health.Verdict
	EndpointFacts
}

// EndpointFacts are what is stored about an endpoint's attempts, and what keeps it from being sent to.
type EndpointFacts struct {
	Counters       delivery.Counters
	Last           delivery.Result // of the last failed attempt; zero: none
	LastError      string          // of the last failed attempt, as its transport put it
	Recorded       health.Breaker
	Gone           bool // it returned 410
	Asked          health.Asked
	ClosedAt       time.Time // when its circuit breaker last closed
	Unserved       bool      // no live worker serves it
	Verifying      bool      // it was disabled, was resumed, and is being verified
	HeardAt        time.Time // of a listener: when its program was last heard of
	StartingAt     time.Time // since when it catches up with older events; zero: it does not
	Record         health.Record
	Policy         health.Policy
	Scope          pause.Scope // the widest pause of an operator that covers it; empty: none
	ScopeSince     time.Time   // zero: not known
	Waiting        int64       // deliveries that wait; counted for one endpoint, and for those that are not sent to
	WaitingAtLeast bool        // more than Waiting wait
}

// With is the endpoint in the condition that follows from facts at a moment.
func (e Endpoint) With(f EndpointFacts, now time.Time) Endpoint {
	e.EndpointFacts = f
	e.Breaker, e.Verdict = f.Recorded.At(now), f.Policy.Verdict(f.Counters, f.Gone, now)
	facts := condition.Facts{
		Status:      e.Status,
		Reason:      e.StatusReason,
		StatusAt:    e.StatusAt,
		ResumeAt:    e.ResumeAt,
		Breaker:     f.Recorded,
		Asked:       f.Asked,
		Last:        f.Last,
		Drops:       e.Settings.WhenHeld == endpoint.Drop,
		Unserved:    f.Unserved,
		Verifying:   f.Verifying,
		Listens:     e.Settings.Kind == endpoint.Listen,
		HeardAt:     f.HeardAt,
		Record:      f.Record,
		Scope:       f.Scope,
		ScopeSince:  f.ScopeSince,
		Held:        f.Waiting,
		HeldAtLeast: f.WaitingAtLeast,
	}
	if !e.Verdict.Disable {
		facts.DisableAt, facts.DisableFor = e.Verdict.DisableAt, e.Verdict.Reason
	}
	e.Condition = condition.Of(facts, now)
	return e
}

// Troubled reports whether the endpoint has a problem to recover from.
func (e Endpoint) Troubled(now time.Time) bool {
	return e.Status == endpoint.Disabled || health.Troubled(e.Counters, e.Record, now)
}

// CountsDown reports whether people are told when the endpoint will be disabled: from half-way on, when its owner is
// warned.
func (e Endpoint) CountsDown() bool {
	return !e.Condition.DisableAt.IsZero() && len(e.Verdict.Warn) > 0
}

// Mutable reports whether alerts about the endpoint can be muted: a program that listens raises none.
func (e Endpoint) Mutable() bool { return e.Settings.Kind != endpoint.Listen }

// Muted reports whether alerts about the endpoint are muted at a moment.
func (e Endpoint) Muted(now time.Time) bool { return e.Mute.Holds(now) }

// FailuresInARow is how many attempts have failed since the last success.
func (e Endpoint) FailuresInARow() int {
	return e.Record.InARow(e.Counters.ConsecutiveFailures + e.Counters.AuthStreak)
}

// Masked is the endpoint as lists show it: the values of its URL's query are masked.
func (e Endpoint) Masked() Endpoint {
	e.Settings.URL = e.MaskedURL()
	return e
}

// MaskedURL is its URL without the values of the query.
func (e Endpoint) MaskedURL() string { return egress.Mask(e.Settings.URL) }

// Name is what people call the endpoint: its description, or else its URL.
func (e Endpoint) Name() string { return cmp.Or(e.Settings.Description, e.MaskedURL()) }

// Verification is the progress of a check that an endpoint wants to be sent to.
type Verification struct {
	State       string // pending, succeeded, failed, superseded
	Tries       int
	RequestedAt time.Time
	DueAt       time.Time // of the next try
	DoneAt      *time.Time
	LastStatus  int // 0: no response
	LastDetail  string
}

// Secret is what can be shown of a signing secret.
type Secret struct {
	ID        id.UUID
	Type      endpoint.SecretType
	Public    string // of a key pair
	Hint      string
	Signing   bool // deliveries are signed with it now
	CreatedAt time.Time
	ExpiresAt *time.Time   // the end of its overlap; nil: none
	Check     *SecretCheck // nil: none was asked for
}

// Accepted reports whether the receiver accepted a delivery that this secret alone signed.
func (s Secret) Accepted() bool { return s.Check != nil && s.Check.State == endpoint.CheckAccepted }

// SecretCheck is whether the receiver accepts a delivery that one secret alone signs.
type SecretCheck struct {
	State  endpoint.CheckState
	At     time.Time // when it was asked for, then when it ended
	Status int       // of the response; 0: none
	Detail string    // why it was rejected
}
