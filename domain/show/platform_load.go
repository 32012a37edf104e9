package show

import (
	"cmp"
	"slices"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
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

// For is how long the oldest delivery has been due.
func (t LateTenant) For(now time.Time) time.Duration {
	return max(now.Sub(t.ReadyAt), 0).Round(time.Millisecond)
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

// TenantLoad is a tenant's share of the workers and of the waiting deliveries.
type TenantLoad struct {
	incidents.Load
	TenantID id.UUID
	Waiting  int64
	InFlight float64 // requests, on average of the last ten minutes
	Capacity int64   // requests that the live workers can have in flight
}

// Loads are the tenants with the largest shares of the slots or of the ready deliveries, largest first, at most so
// many.
func (l PlatformLoad) Loads(most int) []TenantLoad {
	byTenant := map[id.UUID]*TenantLoad{}
	of := func(tenant id.UUID, name string) *TenantLoad {
		if byTenant[tenant] == nil {
			byTenant[tenant] = &TenantLoad{Load: incidents.Load{Tenant: name, ID: id.Tenant.Format(tenant)}, TenantID: tenant}
		}
		return byTenant[tenant]
	}
	for _, b := range l.Backlogs {
		t := of(b.ID, b.Name)
		t.Waiting, t.Ready, t.Queue = b.Waiting, b.Ready, float64(b.Ready)/float64(max(b.AllReady, 1))
	}
	for _, r := range l.Shares {
		t := of(r.ID, r.Name)
		t.InFlight, t.Capacity = r.InFlight(), max(l.Totals.Workers, 1)*delivery.WorkerSlots
		t.Slots = t.InFlight / float64(t.Capacity)
	}
	var all []TenantLoad
	for _, t := range byTenant {
		t.Alone = len(byTenant) == 1
		all = append(all, *t)
	}
	slices.SortFunc(all, TenantLoad.compare)
	return all[:min(len(all), most)]
}

// compare orders the largest first.
func (t TenantLoad) compare(o TenantLoad) int {
	return cmp.Or(
		cmp.Compare(max(o.Slots, o.Queue), max(t.Slots, t.Queue)),
		cmp.Compare(o.Waiting, t.Waiting),
		cmp.Compare(t.Tenant, o.Tenant),
	)
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
