package show

import (
	"time"

	"posthorn/domain/id"
	"posthorn/domain/reconcile"
)

// Books are a tenant's totals of the deliveries created in one UTC day.
type Books struct {
	Tenant     id.UUID
	TenantName string
	Day        time.Time
	Accepted   int64
	Delivered  int64
	Failed     int64
	Canceled   int64
	Expunged   int64
	Purged     int64      // deliveries in storage that the purge of the tenant removed
	PurgedAt   *time.Time // when no file had them any more; nil: files still do
	Waiting    int64
	Held       int64
	Difference int64 // accepted deliveries, less the ended and the waiting ones: must be 0
	FromTables int64 // the difference between totals and tables, as the job found it
}

// Discrepancy is a page of the books that differs from the tables.
type Discrepancy struct {
	Tenant     id.UUID
	TenantName string
	Day        time.Time
	Amount     int64
	Gap        string // what exactly differs, as acceptance names it
	FoundAt    time.Time
	EndedAt    *time.Time // nil: it still differs
	Open       bool       // nobody has accepted it
	AcceptedAt *time.Time
	AcceptedBy string // an operator's id
	Reason     string // of the acceptance
	reconcile.Finding
}

// Accepted reports whether it still differs and somebody has accepted that.
func (d Discrepancy) Accepted() bool { return d.EndedAt == nil && !d.Open }

// Reconciliation is how far a check of the books is.
type Reconciliation struct {
	Name  string
	Day   time.Time
	Pages int64
	Since time.Time // when its round started
}
