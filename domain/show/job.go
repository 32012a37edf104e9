package show

import (
	"time"

	"posthorn/domain/bulk"
	"posthorn/domain/id"
)

// Job is a bulk job. Times that it does not have yet are zero.
type Job struct {
	ID        id.UUID
	TenantID  id.UUID
	Kind      bulk.Kind
	State     bulk.State
	Filter    bulk.Filter
	Expected  int64
	Exact     bool // false: Expected is a lower bound
	Done      int64
	Skipped   map[bulk.Skip]int64
	Pace      int // rows a second, at most; 0: unlimited
	Reason    string
	Failure   string
	AskedKind string // who started it
	AskedBy   string
	CreatedAt time.Time
	StartedAt time.Time
	EndedAt   time.Time
	Outcome   *bulk.Outcome // of the deliveries that it created; nil: it creates none, or it was not read
}
