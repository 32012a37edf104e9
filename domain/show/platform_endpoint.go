package show

import (
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
)

// PlatformEndpoint is an endpoint in the operators' lists.
type PlatformEndpoint struct {
	ID          id.UUID
	TenantID    id.UUID
	Tenant      string // its name
	URL         string
	Name        string // its description, or else its URL
	Condition   condition.Condition
	Failures    int // in a row
	LastStatus  int
	LastFailure delivery.Failure
	FailedAt    time.Time // zero: never
}
