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
	SampleID  id.UUID       // the delivery that it sent first, as a sample; zero: it sent none
	Sample    *Delivery     // the same, if it was read and still exists
	DecideBy  time.Time     // a sampled job is canceled then
}

// Rest is how many deliveries a sampled job sends when it is continued, as counted when it was created.
func (j Job) Rest() int64 { return max(j.Expected-j.Done, 0) }

// Settled reports whether nothing more happens to the job or to the deliveries that it made.
func (j Job) Settled() bool {
	return j.State.Over() && (j.Outcome == nil || j.Outcome.Waiting == 0)
}

// Told says in a few words how far the deliveries are that the job made.
func (j Job) Told() string {
	if j.State == bulk.Sampled {
		return "One of the deliveries was sent first. The others wait for your decision"
	}
	var o bulk.Outcome
	if j.Outcome != nil {
		o = *j.Outcome
	}
	return o.Text(j.Expected, j.State.Over())
}
