package deliveries

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// sendSample sends the first delivery of a new job and lets the job wait for a decision on the rest. No worker is
// involved: those of an older version would do a whole chunk. A job with nothing beyond its sample goes on by itself.
func sendSample(ctx context.Context, q *sql.Queries, job sql.BulkJob, e Estimate) (sql.BulkJob, error) {
	if e.Count == 0 && !e.Exact {
		return job, bulk.ErrNoSample
	}
	filter, err := bulk.ReadFilter(job.Filter)
	if err != nil {
		return job, err
	}
	w, err := newBulkWork(ctx, q, job.TenantID, job.Kind, filter, job.ID.Time())
	if err != nil {
		return job, err
	}
	w.job, w.sample = &job.ID, true
	job.Position = e.start
	if job.Skipped, err = addSkipped(job.Skipped, e.before); err != nil {
		return job, err
	}
	began := time.Now()
	var part bulkPart
	for part.count() == 0 && !part.end {
		if time.Since(began) > estimateTime {
			return job, bulk.ErrNoSample
		}
		if part, err = w.plan(ctx, job.Position, bulk.Chunk, true); err != nil {
			return job, err
		}
		job.Position = part.position
		if job.Skipped, err = addSkipped(job.Skipped, part.skipped); err != nil {
			return job, err
		}
	}
	if err := w.apply(ctx, &part); err != nil || len(part.made) == 0 {
		return job, err
	}
	job.SampleID = &part.made[0]
	job.Done += part.count()
	rest := time.Duration(0)
	if e.Count > 1 || !e.Exact {
		job.State, rest = bulk.Sampled, bulk.SampleWaits
	}
	return q.SaveBulkJob(ctx, saved(job, rest))
}

// ContinueBulkJob lets a job that sent a sample do the rest.
func ContinueBulkJob(ctx context.Context, q *sql.Queries, tenant, jobID id.UUID, by db.Author) (show.Job, error) {
	job, err := q.LockBulkJob(ctx, tenant, jobID)
	if err != nil {
		return show.Job{}, err
	}
	if job.State != bulk.Sampled {
		return show.Job{}, bulk.RefuseContinue(job.State)
	}
	job.State = bulk.Queued
	if job, err = q.SaveBulkJob(ctx, saved(job, 0)); err != nil {
		return show.Job{}, err
	}
	if err := auditJob(ctx, q, by, "bulk_job.continue", job, nil); err != nil {
		return show.Job{}, err
	}
	return jobOf(job), q.NotifyJobs(ctx)
}

// readSample reads the delivery that a job sent first; nil if it sent none, or the delivery's day was dropped.
func readSample(ctx context.Context, q *sql.Queries, job sql.BulkJob) (*show.Delivery, error) {
	if job.SampleID == nil {
		return nil, nil //nolint:nilnil // most jobs have no sample
	}
	d, err := Read(ctx, q, job.TenantID, *job.SampleID)
	if fault.Is(err, fault.ErrNotFound.Code) || db.IsNoRows(err) {
		return nil, nil //nolint:nilnil // as above
	}
	return &d, err
}
