package deliveries

import (
	"context"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/id"
)

// outcomeMost is how many of the deliveries that a job made are looked at.
const outcomeMost = 10_000

// BulkOutcome is what became of the deliveries that a job made; nil for a job that makes none, and for one of a version
// that did not note them. It changes how its transaction plans.
func BulkOutcome(ctx context.Context, q *sql.Queries, job sql.BulkJob) (*bulk.Outcome, error) {
	if !job.Kind.Sends() {
		return nil, nil
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return nil, err
	}
	r, err := q.JobOutcome(ctx, sql.JobOutcomeParams{
		TenantID: job.TenantID, JobID: &job.ID, Most: outcomeMost, Since: job.CreatedAt.Add(-time.Minute),
		Until: id.Last.Time(),
	})
	if err != nil || r.Made == 0 && job.Done > 0 {
		return nil, err
	}
	o := bulk.Outcome{
		Made: r.Made, Delivered: r.Delivered, Failed: r.Failed, Canceled: r.Canceled, Waiting: r.Waiting,
		Exact: r.Made < outcomeMost || job.Done <= outcomeMost,
	}
	return &o, nil
}
