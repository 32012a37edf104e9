package deliveries

import (
	"context"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/id"
)

// outcomeMost is how many of a job's deliveries are read.
const outcomeMost = 10_000

// bulkOutcome returns the outcomes of the deliveries that a job created. It is nil for a job that creates none, and for
// a job of an older version that did not record them. It changes the planner settings of its transaction.
func bulkOutcome(ctx context.Context, q *sql.Queries, job sql.BulkJob) (*bulk.Outcome, error) {
	if !job.Kind.Sends() {
		return nil, nil
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return nil, err
	}
	r, err := q.JobOutcome(ctx, sql.JobOutcomeParams{
		TenantID: job.TenantID,
		JobID:    &job.ID,
		Limit:    outcomeMost,
		Since:    job.CreatedAt.Add(-time.Minute),
		Until:    id.Last.Time(),
	})
	if err != nil || r.Made == 0 && job.Done > 0 {
		return nil, err
	}
	o := bulk.Outcome{
		Made:      r.Made,
		Delivered: r.Delivered,
		Failed:    r.Failed,
		Canceled:  r.Canceled,
		Waiting:   r.Waiting,
		Exact:     r.Made < outcomeMost || job.Done <= outcomeMost,
	}
	return &o, nil
}
