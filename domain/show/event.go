package show

import (
	"slices"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/domain/routing"
)

// Event is an event as every surface shows it. Texts and times that it does not have are empty and zero.
type Event struct {
	ID          id.UUID
	TenantID    id.UUID
	Tenant      string // the name of its tenant, in lists of all tenants
	Type        string
	Key         string // its ordering key
	Channels    []string
	Version     string // of the payload
	ExternalID  string // the producer's own id
	Unsent      bool   // receivers see Posthorn's id instead of the producer's
	ContentType string // of a payload that is text; empty: JSON
	TraceID     string
	CreatedAt   time.Time
	OccurredAt  time.Time
	DeliverAt   time.Time
	ExpiresAt   time.Time   // of its producer; zero: none
	Data        []byte      // as it was received; nil: expunged, or not read
	Outcome     *Outcome    // nil: not read
	Value       event.Value // the first short text of its data; empty: it has none, or was not read
}

// Outcome is what became of an event: how many of its deliveries have which status. A delivery that was replayed counts
// as its newest replay.
type Outcome struct {
	Waiting, Delivered, Failed, Canceled int
	Feeds                                int // that have the event; counted if it has no delivery
}

// The outcomes by which events are filtered.
const (
	AnyOutcome     = ""
	WithFailures   = "failed"    // a delivery failed, and no replay of it was delivered
	MatchedNothing = "unmatched" // the event has no delivery, and no feed has it
)

// Outcomes are the filters by outcome.
func Outcomes() []string { return []string{AnyOutcome, WithFailures, MatchedNothing} }

// Is reports whether the outcome is one that a filter selects.
func (o Outcome) Is(filter string) bool {
	switch filter {
	case WithFailures:
		return o.Failed > 0
	case MatchedNothing:
		return o == Outcome{}
	}
	return true
}

// Counted is how many deliveries have a status, or wait.
type Counted struct {
	Word string
	N    int
}

func feeds(n int) string {
	if n == 1 {
		return "feed"
	}
	return "feeds"
}

// Counts are the statuses that the outcome has, in the order in which people read them.
func (o Outcome) Counts() []Counted {
	all := []Counted{
		{delivery.Delivered.String(), o.Delivered},
		{"waiting", o.Waiting},
		{delivery.Failed.String(), o.Failed},
		{delivery.Canceled.String(), o.Canceled},
		{feeds(o.Feeds), o.Feeds},
	}
	return slices.DeleteFunc(all, func(c Counted) bool { return c.N == 0 })
}

// Rejected is an event that was emitted in SQL, or a message of a source, that was rejected.
type Rejected struct {
	ID             id.UUID
	SourceID       id.UUID // zero: it was emitted in SQL
	TenantID       id.UUID
	Tenant         string // the name of its tenant, in lists of all tenants; empty: there is no such tenant
	Type           string
	Key            string
	IdempotencyKey string
	Size           int // of its data, in bytes
	Code           string
	Detail         string
	RejectedAt     time.Time
	Data           []byte // nil: not read; null if it is larger than any event's
}

// RejectedReason counts a tenant's events that were rejected with a code.
type RejectedReason struct {
	TenantID id.UUID
	Tenant   string // its name; empty: there is no such tenant
	Code     string
	N        int64
	Oldest   time.Time
	Newest   time.Time
}

// Routed is an event with what became of it at the endpoints of its tenant as they were when it was emitted: those that
// still exist first, then the newest.
type Routed struct {
	Event
	routing.Explanation
	Endpoints []RoutedEndpoint // in the order of the verdicts
	More      bool             // there are further endpoints
}

// RoutedEndpoint is an endpoint of a routing.
type RoutedEndpoint struct {
	Destination
	Status     endpoint.Status // when the event was emitted; empty: it did not exist
	DeliveryID id.UUID         // the event's first delivery to it; zero: none
}

// FoundEvent is an event that a search found, and what of it has the text: "ordering key" or "data.order.id".
type FoundEvent struct {
	Event
	Where string
}
