package show

import (
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/id"
)

// PlatformTotals are the numbers of the operators' overview.
type PlatformTotals struct {
	Tenants       int64
	Suspended     int64
	Endpoints     int64
	DisabledToday int64
	BreakersOpen  int64
	Workers       int64
	WorkersLost   int64
	BooksDiffer   int64
	Rejected      int64
	Waiting       int64
	DeadLetters   int64
	MailsFailed   int64
}

// LateTenant is a tenant with deliveries that are due, and the lane of the oldest.
type LateTenant struct {
	ID         id.UUID
	Name       string
	ReadyAt    time.Time
	Lanes      int64
	EndpointID id.UUID
	URL        string // masked
	Endpoint   string // its description, or else its URL
	Owner      string
}

// Backlog is how many deliveries of a tenant wait, and how many of them are due.
type Backlog struct {
	ID       id.UUID
	Name     string
	Waiting  int64
	Ready    int64
	AllReady int64 // of all tenants
}

// Share is a tenant's share of the workers in the last ten minutes.
type Share struct {
	ID          id.UUID
	Name        string
	Attempts    int64
	Us          int64 // the time of its requests, in microseconds
	Endpoints   int64
	AllAttempts int64 // of all tenants
	AllUs       int64
}

// InFlight is how many of the tenant's requests were in flight on average.
func (s Share) InFlight() float64 { return float64(s.Us) / 600e6 }

// PlatformLoad is what the operators' overview shows beside hosts.
type PlatformLoad struct {
	Totals   PlatformTotals
	Late     []LateTenant // for the longest first
	Backlogs []Backlog    // the largest first
	Shares   []Share      // the largest first
}

// Age counts the waiting deliveries of an age, and those of them that are due.
type Age struct{ Waiting, Ready int64 }

// Worker is a worker process.
type Worker struct {
	ID        id.UUID
	Name      string
	Dead      bool // and declared dead
	StartedAt time.Time
	BeatAt    *time.Time // the last heartbeat; nil: unknown
	Lanes     int64
	Silent    bool // no heartbeat for too long
}

// Lane is an endpoint's queue that has deliveries.
type Lane struct {
	TenantID   id.UUID
	Tenant     string // its name
	EndpointID id.UUID
	URL        string
	Name       string // its description, or else its URL
	Condition  condition.Condition
	Waiting    int64
	Ready      int64
	Oldest     time.Time
	Owner      string     // the worker's name
	LeasedAt   *time.Time // since when the worker owns it; nil: unknown
}
