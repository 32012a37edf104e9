package show

import (
	"encoding/json"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// Tenant is a tenant with its settings.
type Tenant struct {
	ID            id.UUID
	ExternalID    string // the company's own id; empty: none
	Name          string
	State         account.TenantState
	StrictTypes   bool
	RetentionDays int
	CreatedAt     time.Time
	Settings      json.RawMessage // of its own; rules read them beside the platform's
	Unconfirmed   []string        // the contacts that have not agreed to get notices; only of a tenant that is read alone
}

// Suspended reports whether an operator suspended the tenant.
func (t Tenant) Suspended() bool { return t.State == account.TenantSuspended }

// Notices are the tenant's settings of notices.
func (t Tenant) Notices() notice.Settings { return notice.ReadSettings(t.Settings) }

// ViewersReadPayloads reports whether viewers see payloads and responses.
func (t Tenant) ViewersReadPayloads() bool { return access.ViewersReadPayloads(t.Settings) }

// Metadata is what the company keeps with the tenant.
func (t Tenant) Metadata() map[string]string { return account.Metadata(t.Settings) }

// RateLimit is the tenant's own requests per second of new endpoints; nil: the platform's.
func (t Tenant) RateLimit() *int { return endpoint.OwnRate(t.Settings) }

// TenantLine is a tenant in the operators' list.
type TenantLine struct {
	Tenant
	Endpoints, Disabled, Failing int64
	Events                       int64 // of today and yesterday, UTC
	Waiting                      int64 // deliveries, counted up to MaxWaiting + 1
}

// Activity is who can use a tenant, and when somebody last did.
type Activity struct {
	Members, Keys int64
	Events        int64     // of today and yesterday, UTC
	LastEvent     time.Time // zero: none that is kept
	LastKey       time.Time // when a key was last used; zero: never
}

// MaxWaiting bounds how many waiting deliveries of a tenant the operators' list counts.
const MaxWaiting = 10_000

// Holdings are what a tenant's deletion takes away.
type Holdings struct {
	Endpoints, Keys, Members int64
	Waiting                  int64 // deliveries, counted up to MaxWaiting + 1
}
