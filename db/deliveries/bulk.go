package deliveries

import (
	"context"
	"fmt"
	"maps"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/fault"
	"posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// NewBulkJob describes an action on many deliveries or events. The filter has been validated.
type NewBulkJob struct {
	Kind   bulk.Kind
	Filter bulk.Filter
	Pace   int // rows a second, at most; 0: unlimited
	Reason string
	Sample bool // send one first, then wait for a decision
}

// Estimate is what a job would do now.
type Estimate struct {
	Count   int64
	Skipped map[bulk.Skip]int64
	Exact   bool  // false: Count is a lower bound
	Repeats int64 // of a replay: how many of Count were replayed before

	start  id.UUID             // the position before the first chunk with something to do
	before map[bulk.Skip]int64 // what is skipped up to there
}

// How many rows an estimate reads before it reports "at least" a number.
const (
	estimateMost = 10_000
	estimateTime = 1500 * time.Millisecond
)

// openJobs is how many jobs of a tenant can be open: all jobs share the same workers.
const openJobs = 100

var errOpenJobs = fault.New(
	fault.Conflict,
	"bulk_jobs_limit",
	fmt.Sprintf("A tenant can have up to %d bulk jobs in progress. Wait until one finishes, or cancel one.", openJobs),
)

// EstimateBulk counts what a job would do. It returns not found if the job names an endpoint that the tenant never had,
// or a deleted one to which it would send. It changes the planner settings of its transaction.
func EstimateBulk(ctx context.Context, q *sql.Queries, tenant id.UUID, n NewBulkJob) (e Estimate, err error) {
	if err := knowEndpoint(ctx, q, tenant, n); err != nil {
		return e, err
	}
	w, err := newBulkWork(ctx, q, tenant, n.Kind, n.Filter, id.Last.Time())
	if err != nil {
		return e, err
	}
	if n.Kind == bulk.Expunge {
		// An expunge does not count days in storage, and covers all data whatever the retention hides. Replays are
		// younger than their events.
		since := time.Unix(0, 0)
		if n.Filter.Since != nil {
			since = *n.Filter.Since
		}
		if day, err := q.StoredDaySince(ctx, tenant, since); err == nil {
			return e, history.ErrStored(day)
		} else if !db.IsNoRows(err) {
			return e, err
		}
	}
	e.Skipped, e.Exact = map[bulk.Skip]int64{}, true
	began, after := time.Now(), id.UUID{}
	for {
		part, err := w.plan(ctx, after, bulk.Chunk, false)
		if err != nil {
			return e, err
		}
		if e.Count == 0 && part.count() > 0 {
			e.start, e.before = after, maps.Clone(e.Skipped)
		}
		e.Count += part.count()
		for _, d := range part.rows {
			if n.Kind == bulk.Replay && !d.ReplayedBy.IsZero() {
				e.Repeats++
			}
		}
		for why, n := range part.skipped {
			e.Skipped[why] += n
		}
		if part.end {
			return e, nil
		}
		if e.Count >= estimateMost || time.Since(began) > estimateTime {
			e.Exact = false
			return e, nil
		}
		after = part.position
	}
}

// StartBulkJob stores a job with its estimate, and wakes the workers. With a sample it sends that instead.
func StartBulkJob(ctx context.Context, q *sql.Queries, tenant id.UUID, by db.Author, n NewBulkJob) (show.Job, error) {
	e, err := EstimateBulk(ctx, q, tenant, n) // before any lock: it can take a second
	if err != nil {
		return show.Job{}, err
	}
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return show.Job{}, err
	}
	if open, err := q.CountOpenBulkJobs(ctx, tenant); err != nil {
		return show.Job{}, err
	} else if open >= openJobs {
		return show.Job{}, errOpenJobs
	}
	job, err := insertBulkJob(ctx, q, tenant, by, n, e)
	if err == nil && n.Sample && n.Kind.Sends() {
		job, err = sendSample(ctx, q, job, e)
	}
	if err != nil {
		return show.Job{}, err
	}
	started := jobOf(job)
	started.Sample, err = readSample(ctx, q, job)
	return started, err
}

func insertBulkJob(ctx context.Context, q *sql.Queries, tenant id.UUID, by db.Author, n NewBulkJob, e Estimate) (job sql.BulkJob, err error) {
	filter, err := n.Filter.Store()
	if err != nil {
		return job, fmt.Errorf("encode filter: %w", err)
	}
	jobID := db.NewID()
	row := sql.InsertBulkJobParams{
		TenantID:  tenant,
		ID:        jobID,
		Kind:      n.Kind,
		Filter:    filter,
		Expected:  e.Count,
		Exact:     e.Exact,
		AskedKind: by.Kind,
		AskedBy:   by.ID,
		Reason:    n.Reason,
		CreatedAt: jobID.Time(),
	}
	if n.Pace > 0 {
		pace := int32(n.Pace)
		row.Pace = &pace
	}
	if job, err = q.InsertBulkJob(ctx, row); err != nil {
		return job, err
	}
	details := map[string]any{"expected": e.Count, "exact": e.Exact}
	if n.Sample {
		details["sample"] = true
	}
	if err := auditJob(ctx, q, by.Because(n.Reason), "bulk_job.start", job, details); err != nil {
		return job, err
	}
	return job, q.NotifyJobs(ctx)
}

// auditJob writes an entry about a job and its settings.
func auditJob(ctx context.Context, q *sql.Queries, by db.Author, action string, job sql.BulkJob, more map[string]any) error {
	details := map[string]any{"kind": job.Kind, "filter": job.Filter}
	for k, v := range more {
		details[k] = v
	}
	return db.Audit(ctx, q, by, db.Audited{
		Tenant:  &job.TenantID,
		Action:  action,
		Kind:    "bulk_job",
		Object:  id.Job.Format(job.ID),
		Details: details,
	})
}

// CancelBulkJob ends a job after its current chunk. What the job did before remains.
func CancelBulkJob(ctx context.Context, q *sql.Queries, tenant, jobID id.UUID, by db.Author) (show.Job, error) {
	job, err := q.LockBulkJob(ctx, tenant, jobID)
	if err != nil {
		return show.Job{}, err
	}
	if job.State.Over() {
		return show.Job{}, bulk.RefuseCancelJob(job.State)
	}
	job.State = bulk.Canceled
	if err := abandon(ctx, q, &job); err != nil {
		return show.Job{}, err
	}
	job, err = endBulkJob(ctx, q, by, "bulk_job.cancel", job)
	return jobOf(job), err
}

// abandon undoes the preparations for the part that a job will not do.
func abandon(ctx context.Context, q *sql.Queries, job *sql.BulkJob) error {
	if job.Kind != bulk.Drop {
		return nil
	}
	filter, err := bulk.ReadFilter(job.Filter)
	if err != nil {
		return err
	}
	return liftDrop(ctx, q, job, filter)
}

// endBulkJob writes a job's last state and its totals.
func endBulkJob(ctx context.Context, q *sql.Queries, by db.Author, action string, job sql.BulkJob) (sql.BulkJob, error) {
	job, err := q.SaveBulkJob(ctx, saved(job, 0))
	if err != nil {
		return job, err
	}
	return job, auditJob(ctx, q, by, action, job, map[string]any{
		"state":   job.State,
		"done":    job.Done,
		"skipped": job.Skipped,
		"failure": job.Failure,
	})
}

func saved(job sql.BulkJob, rest time.Duration) sql.SaveBulkJobParams {
	return sql.SaveBulkJobParams{
		State:    job.State,
		Done:     job.Done,
		Skipped:  job.Skipped,
		Position: job.Position,
		Horizon:  job.Horizon,
		SampleID: job.SampleID,
		Failure:  job.Failure,
		Tries:    job.Tries,
		Rest:     rest.Seconds(),
		TenantID: job.TenantID,
		ID:       job.ID,
	}
}

// BulkJobs returns a page of a tenant's jobs.
func BulkJobs(ctx context.Context, q *sql.Queries, tenant id.UUID, r show.Range) (show.Page[show.Job], error) {
	rows, err := q.ListBulkJobs(ctx, sql.ListBulkJobsParams{
		TenantID: tenant,
		Newest:   !r.Ascending,
		After:    r.Edge(),
		Limit:    int32(r.Limit + 1),
	})
	return show.Each(show.CutByID(rows, r.Limit, func(j sql.BulkJob) id.UUID { return j.ID }), jobOf), err
}

// ReadBulkJob reads a job with the outcome of its deliveries. It changes the planner settings of its transaction.
func ReadBulkJob(ctx context.Context, q *sql.Queries, tenant, jobID id.UUID) (show.Job, error) {
	row, err := q.GetBulkJob(ctx, tenant, jobID)
	if err != nil {
		return show.Job{}, err
	}
	job := jobOf(row)
	if job.Sample, err = readSample(ctx, q, row); err != nil {
		return job, err
	}
	job.Outcome, err = bulkOutcome(ctx, q, row)
	return job, err
}

func jobOf(row sql.BulkJob) show.Job {
	job := show.Job{
		ID:        row.ID,
		TenantID:  row.TenantID,
		Kind:      row.Kind,
		State:     row.State,
		Expected:  row.Expected,
		Exact:     row.Exact,
		Done:      row.Done,
		Skipped:   bulk.ReadSkipped(row.Skipped),
		Reason:    row.Reason,
		Failure:   row.Failure,
		AskedKind: row.AskedKind,
		AskedBy:   row.AskedBy,
		CreatedAt: row.CreatedAt,
		StartedAt: db.OrZero(row.StartedAt),
		EndedAt:   db.OrZero(row.EndedAt),
		SampleID:  db.OrZero(row.SampleID),
	}
	if row.State == bulk.Sampled {
		job.DecideBy = row.DueAt
	}
	if row.Pace != nil {
		job.Pace = int(*row.Pace)
	}
	job.Filter, _ = bulk.ReadFilter(row.Filter) // as stored
	job.Filter.Below = 0
	return job
}

// knowEndpoint returns not found if a job names an endpoint that the tenant never had, or a deleted one to which the
// job would send. Deliveries of a deleted endpoint can still be archived.
func knowEndpoint(ctx context.Context, q *sql.Queries, tenant id.UUID, n NewBulkJob) error {
	if n.Filter.Endpoint == "" {
		return nil
	}
	endpointID, err := id.Endpoint.Parse(n.Filter.Endpoint)
	if err != nil {
		return fault.ErrNotFound
	}
	if n.Kind == bulk.Replay || n.Kind == bulk.ReplayMissing {
		_, err := q.GetEndpoint(ctx, tenant, endpointID)
		return err
	}
	known, err := q.EndpointExists(ctx, tenant, endpointID)
	if err == nil && !known {
		err = fault.ErrNotFound
	}
	return err
}
