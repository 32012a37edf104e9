package show

import (
	"cmp"
	"slices"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/pause"
)

// Delivery is a delivery as every surface shows it. Ids and times that do not apply are zero.
type Delivery struct {
	ID         id.UUID
	TenantID   id.UUID
	EventID    id.UUID
	EventType  string
	Endpoint   Destination
	Status     delivery.Status // held if its endpoint receives nothing
	Reason     delivery.Reason
	Attempts   int
	Last       delivery.Result // of its last attempt
	CreatedAt  time.Time
	SettledAt  time.Time
	ArchivedAt time.Time
	JobID      id.UUID // the bulk job that created it
	ReplayOf   id.UUID
	FirstID    id.UUID // the first delivery of its event to its endpoint, if this is a replay; older rows lack it
	ReplayedBy id.UUID // its newest replay
	Routes     int64   // of a replay: the version of its tenant's routes when it was created; 0: that of its event
	DeadLetter bool    // see delivery.DeadLetter

	Wait        condition.Wait // why it waits; empty: it does not
	ExpiresAt   time.Time      // after which it is not sent; zero: never, or it waits no more
	NextAt      time.Time      // when the next attempt starts; zero if that is unknown: Wait says why
	PausedSince time.Time      // when the operator's pause that holds it started, if that is known
	Diagnosis   diagnosis.Diagnosis
	facts       diagnosis.Facts
}

// Destination is an endpoint as far as other nouns tell about it. The settings are those that explain a delivery:
// nouns that have none leave them out.
type Destination struct {
	ID             id.UUID
	Kind           endpoint.Kind
	URL            string // masked
	Description    string
	Deleted        bool
	Timeout        time.Duration
	AcceptConflict bool   // a 409 counts as delivered
	Tenant         string // the name of its tenant
}

// Name is what people call the endpoint: its description, or else its URL.
func (d Destination) Name() string { return cmp.Or(d.Description, d.URL) }

// Queued is what is known of the row and the lane of a delivery that waits.
type Queued struct {
	Row  condition.Row
	Lane condition.Lane
	Now  time.Time
}

// NewDelivery completes what is stored about a delivery with what follows from it. queued is nil for a delivery that
// does not wait, or whose endpoint was just deleted.
func NewDelivery(d Delivery, queued *Queued) Delivery {
	if queued != nil && !d.Status.Terminal() {
		d.Wait = condition.WaitOf(queued.Row, queued.Lane, queued.Now)
		d.NextAt = d.Wait.NextAttempt()
		if d.Wait.Scope != "" {
			d.PausedSince = queued.Lane.Condition.Since
		}
	}
	d.facts = diagnosis.Facts{
		Expires:        !d.ExpiresAt.IsZero(),
		Kind:           d.Endpoint.Kind,
		Status:         d.Status,
		Reason:         d.Reason,
		Attempts:       d.Attempts,
		Last:           d.Last,
		AcceptConflict: d.Endpoint.AcceptConflict,
		Timeout:        d.Endpoint.Timeout,
		Wait:           d.Wait,
	}
	d.Diagnosis = diagnosis.Of(d.facts)
	return d
}

// Diagnosed is the delivery with a diagnosis that knows the response of the last of its attempts.
func (d Delivery) Diagnosed(attempts []Attempt) Delivery {
	if n := len(attempts); n > 0 && attempts[n-1].Result == d.Last {
		d.facts.Response = attempts[n-1].response()
		d.Diagnosis = diagnosis.Of(d.facts)
	}
	return d
}

// Untransformed is the delivery with why its endpoint's transformation can't be applied to it.
func (d Delivery) Untransformed(problem string) Delivery {
	d.Wait.Problem, d.facts.Wait.Problem = problem, problem
	d.Diagnosis = diagnosis.Of(d.facts)
	return d
}

// DeliveryDetail is a delivery with what its page shows beside it.
type DeliveryDetail struct {
	Delivery
	Attempts  []Attempt       // oldest first
	Earlier   bool            // it has earlier attempts
	Condition condition.State // what its endpoint is called; empty: deleted
	Sendable  bool            // both the event's data and the endpoint still exist
	Others    []Delivery      // of the same event to the same endpoint
	Newer     id.UUID         // the next delivery to the same endpoint
	Older     id.UUID
}

// NewestFirst are the attempts, the newest first.
func (d DeliveryDetail) NewestFirst() []Attempt {
	newest := slices.Clone(d.Attempts)
	slices.Reverse(newest)
	return newest
}

// PausedBy is the operator's pause that holds the delivery; empty: none.
func (d Delivery) PausedBy() pause.Scope { return d.Wait.Scope }

// Untried says why there is no attempt: a title and a sentence.
func (d Delivery) Untried() (title, text string) {
	if d.Status.Terminal() {
		return "No attempts", "Nothing was sent. " + d.Diagnosis.Detail
	}
	return "No attempts yet", "The request and the response appear here after the first attempt."
}

// Archived reports whether lists leave the delivery out.
func (d Delivery) Archived() bool { return !d.ArchivedAt.IsZero() }

// OnHold reports whether something keeps the delivery that somebody has to end.
func (d Delivery) OnHold() bool {
	return d.Wait.Reason.Holds() || d.Status == delivery.Held && d.Wait.Reason != condition.InFlight
}

// WentWrong reports whether the delivery had a failed attempt, or failed, and was not delivered.
func (d Delivery) WentWrong() bool {
	switch d.Status {
	case delivery.Failed, delivery.Retrying:
		return true
	case delivery.Canceled, delivery.Expired:
		return d.Attempts > 0
	}
	return false
}

// First is the first delivery of its event to its endpoint: the delivery itself if it is no replay. Replays of older
// versions name only the delivery that they repeat.
func (d Delivery) First() id.UUID {
	switch {
	case !d.FirstID.IsZero():
		return d.FirstID
	case !d.ReplayOf.IsZero():
		return d.ReplayOf
	}
	return d.ID
}

// SentAgain reports whether the delivery's requests are marked as a replay.
func (d Delivery) SentAgain() bool {
	return !d.FirstID.IsZero() || !d.ReplayOf.IsZero() || !d.JobID.IsZero()
}
