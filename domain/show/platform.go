package show

import (
	"time"

	"posthorn/domain/bulk"
	"posthorn/domain/id"
)

// PlatformJob is a bulk job in the operators' list.
type PlatformJob struct {
	ID             id.UUID
	Tenant         id.UUID
	TenantName     string
	Kind           bulk.Kind
	State          bulk.State
	Done, Expected int64
	Reason         string
	Failure        string
	CreatedAt      time.Time
}

// PeriodicJob is a periodic job, with when any worker last did it.
type PeriodicJob struct {
	Name string
	Done time.Time
}
