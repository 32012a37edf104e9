package deliveries

import (
	"context"
	"encoding/json"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/id"
)

// BulkRef names a job.
type BulkRef struct{ TenantID, ID id.UUID }

// DueBulkJobs lists jobs with a chunk to do, of any tenant.
func DueBulkJobs(ctx context.Context, d *db.DB, most int) (due []BulkRef, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		rows, err := q.DueBulkJobs(ctx, int32(most))
		for _, r := range rows {
			due = append(due, BulkRef(r))
		}
		return err
	})
	return due, err
}

// BulkStep is the result of one step of a job.
type BulkStep struct {
	Took bool          // false: another worker has the job, or nothing is due now
	Over bool          // the job is done
	Rest time.Duration // until its next chunk
}

// StepBulkJob does the next chunk of a job and writes its progress, in one transaction as the job's tenant. A job with
// repeatedly failing chunks fails.
func StepBulkJob(ctx context.Context, d *db.DB, ref BulkRef) (step BulkStep, err error) {
	err = d.Tenant(ctx, ref.TenantID, func(q *sql.Queries) error {
		job, err := q.TakeBulkJob(ctx, ref.TenantID, ref.ID)
		if db.IsNoRows(err) {
			return nil
		} else if err != nil {
			return err
		}
		step.Took = true
		step.Over, step.Rest, err = stepBulkJob(ctx, q, job)
		return err
	})
	if err != nil && step.Took && ctx.Err() == nil && !db.IsUnavailable(err) {
		return step, postponeBulkJob(ctx, d, ref, err)
	}
	return step, err
}

// A failed chunk is tried again after a growing delay; after too many tries the job fails.
const (
	maxTries  = 10
	firstWait = time.Second
)

// postponeBulkJob records that a chunk failed, and fails the job after too many. The error is the chunk's.
func postponeBulkJob(ctx context.Context, d *db.DB, ref BulkRef, cause error) error {
	err := d.Tenant(ctx, ref.TenantID, func(q *sql.Queries) error {
		job, err := q.LockBulkJob(ctx, ref.TenantID, ref.ID)
		if err != nil || job.State.Over() {
			return err
		}
		if job.Tries++; job.Tries < maxTries {
			_, err := q.SaveBulkJob(ctx, saved(job, time.Duration(job.Tries)*firstWait))
			return err
		}
		if err := abandon(ctx, q, &job); err != nil {
			return err
		}
		job.State, job.Failure = bulk.Failed, "The job failed repeatedly because of an error on our side. What it has already done stays done."
		_, err = endBulkJob(ctx, q, db.Author{Kind: "system"}, "bulk_job.end", job)
		return err
	})
	if err != nil {
		return err
	}
	return cause
}

// lateCommits is how long after its creation an id can still be invisible: the committer retries for a few seconds
// (db/emit).
const lateCommits = 10 * time.Second

// stepBulkJob does a chunk of a job that the transaction has locked.
func stepBulkJob(ctx context.Context, q *sql.Queries, job sql.BulkJob) (over bool, rest time.Duration, err error) {
	if job.State == bulk.Sampled { // nobody decided
		job.State = bulk.Canceled
		_, err = endBulkJob(ctx, q, db.Author{Kind: "system"}, "bulk_job.end", job)
		return true, 0, err
	}
	began := time.Now()
	filter, err := bulk.ReadFilter(job.Filter)
	if err != nil {
		return false, 0, err
	}
	w, err := newBulkWork(ctx, q, job.TenantID, job.Kind, filter, job.ID.Time())
	if err != nil {
		return false, 0, err
	}
	w.job = &job.ID
	pace := 0
	if job.Pace != nil {
		pace = int(*job.Pace)
	}
	part, err := w.plan(ctx, job.Position, bulk.ChunkAt(pace), true)
	if err != nil {
		return false, 0, err
	}
	if err := w.apply(ctx, &part); err != nil {
		return false, 0, err
	}
	job.State, job.Tries, job.Position = bulk.Running, 0, part.position
	job.Done += part.count()
	if job.Skipped, err = addSkipped(job.Skipped, part.skipped); err != nil {
		return false, 0, err
	}
	rest = restAfter(part.count(), pace, time.Since(began))
	if part.end {
		if over, rest, err = w.over(ctx, &job); err != nil {
			return false, 0, err
		}
	}
	if !over {
		_, err = q.SaveBulkJob(ctx, saved(job, rest))
		return false, rest, err
	}
	job.State, job.Failure = bulk.Done, part.failure
	if part.failure != "" {
		job.State = bulk.Failed
	}
	_, err = endBulkJob(ctx, q, db.Author{Kind: "system"}, "bulk_job.end", job)
	return true, 0, err
}

// restAfter is how long a job rests after a chunk: as long as its pace requires, and at least as long as the chunk
// took, so that a job never uses more than half of one connection's time.
func restAfter(n int64, pace int, took time.Duration) time.Duration {
	rest := took
	if pace > 0 {
		rest = max(rest, time.Duration(n)*time.Second/time.Duration(pace))
	}
	return rest
}

func addSkipped(have json.RawMessage, more map[bulk.Skip]int64) (json.RawMessage, error) {
	if len(more) == 0 {
		return have, nil
	}
	sum := map[bulk.Skip]int64{}
	if err := json.Unmarshal(have, &sum); err != nil {
		return nil, err
	}
	for why, n := range more {
		sum[why] += n
	}
	return json.Marshal(sum)
}
