package deliveries

import (
	"context"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// DropHeld drops the queued deliveries of an endpoint, in the transaction that resumes it. From that commit on the
// lane's owner sends none of them, and a job cancels them, while newer events are delivered.
func DropHeld(ctx context.Context, q *sql.Queries, tenant, ep id.UUID, by db.Author, reason string) (show.Job, error) {
	below, err := q.MarkDropped(ctx, tenant, ep)
	if err != nil {
		return show.Job{}, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return show.Job{}, err
	}
	n, err := q.CountDropped(ctx, sql.CountDroppedParams{
		TenantID:   tenant,
		EndpointID: ep,
		Below:      below,
		Limit:      estimateMost + 1,
	})
	if err != nil {
		return show.Job{}, err
	}
	job := NewBulkJob{
		Kind:   bulk.Drop,
		Filter: bulk.Filter{Endpoint: id.Endpoint.Format(ep), Below: below},
		Reason: reason,
	}
	made, err := insertBulkJob(ctx, q, tenant, by, job, Estimate{Count: min(n, estimateMost), Exact: n <= estimateMost})
	if err != nil {
		return show.Job{}, err
	}
	return jobOf(made), q.NotifyWake(ctx, db.WakePayload([]id.UUID{ep}, true))
}

// planDrop takes the next rows to drop, wherever they are in the lane. It leaves locked rows for the next chunk. Before
// it reads, it asks which transactions still run (see overDrop).
func (w *bulkWork) planDrop(ctx context.Context, most int) (part bulkPart, err error) {
	part = newPart(id.UUID{})
	if w.endpoint, err = id.Endpoint.Parse(w.filter.Endpoint); err != nil {
		return part, err
	}
	if w.oldest, err = w.q.OldestRunningXid(ctx); err != nil {
		return part, err
	}
	rows, err := w.q.LockDropped(ctx, sql.LockDroppedParams{
		TenantID:   w.tenant,
		EndpointID: w.endpoint,
		Below:      w.filter.Below,
		Limit:      int32(most),
	})
	if err != nil {
		return part, err
	}
	part.queued = make(map[id.UUID]sql.Queue, len(rows))
	for _, r := range rows {
		part.queued[r.DeliveryID] = r
		part.ids = append(part.ids, r.DeliveryID)
	}
	slices.SortFunc(part.ids, id.UUID.Compare)
	part.end = len(rows) == 0
	return part, nil
}

// overDrop reports whether no row is left and none can appear: a transaction that has not ended can have drawn a number
// up to the mark (worker/lanes/watermark.go). Then the mark is no longer needed.
func (w *bulkWork) overDrop(ctx context.Context, job *sql.BulkJob) (over bool, rest time.Duration, err error) {
	left, err := w.q.CountDropped(ctx, sql.CountDroppedParams{
		TenantID:   w.tenant,
		EndpointID: w.endpoint,
		Below:      w.filter.Below,
		Limit:      1,
	})
	if err != nil || left > 0 {
		return false, dropRest, err
	}
	if job.Horizon == nil {
		xid, err := w.q.OwnXid(ctx)
		job.Horizon = &xid
		return false, dropRest, err
	}
	if w.oldest <= *job.Horizon {
		return false, dropRest, nil
	}
	return true, 0, liftDrop(ctx, w.q, job, w.filter)
}

// dropRest is the wait for rows that others have locked, or are about to commit.
const dropRest = 200 * time.Millisecond

// liftDrop removes the mark of a drop: the remaining rows below it are sent.
func liftDrop(ctx context.Context, q *sql.Queries, job *sql.BulkJob, f bulk.Filter) error {
	ep, err := id.Endpoint.Parse(f.Endpoint)
	if err != nil {
		return err
	}
	if err := q.UnmarkDropped(ctx, sql.UnmarkDroppedParams{
		TenantID:   job.TenantID,
		EndpointID: ep,
		Below:      f.Below,
	}); err != nil {
		return err
	}
	return q.NotifyWake(ctx, db.WakePayload([]id.UUID{ep}, true))
}
