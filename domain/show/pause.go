package show

import (
	"time"

	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/domain/pause"
)

// Pause is an operator's pause of deliveries, with the names that people know.
type Pause struct {
	ID id.UUID
	pause.Pause
	TenantName string // empty: concerns no tenant
	URL        string // of the endpoint
	Reason     string
	ActorKind  string
	ActorID    string
	CreatedAt  time.Time
}

// Of says what the pause concerns.
func (p Pause) Of() string {
	switch p.Scope {
	case pause.Tenant:
		return p.TenantName
	case pause.Host:
		return p.Host
	case pause.Endpoint:
		return egress.Mask(p.URL)
	}
	return "everything"
}

// Halt is the last time that operators stopped all deliveries of a tenant.
type Halt struct {
	Scope              pause.Scope
	ActorKind, ActorID string
	Reason             string
	Since              time.Time
}
