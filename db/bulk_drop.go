package db

import (
	"context"
	"slices"
	"time"

	"posthorn/domain/bulk"
	"posthorn/domain/id"
)

// DropHeld drops what is queued for an endpoint that is being resumed, in the transaction that resumes it: the lane's owner
// sends nothing of it from that commit on, and a job cancels it, while newer events are delivered.
func (q *Queries) DropHeld(ctx context.Context, tenant, ep id.UUID, by Author, reason string) (BulkJob, error) {
	below, err := q.MarkDropped(ctx, MarkDroppedParams{TenantID: tenant, EndpointID: ep})
	if err != nil {
		return BulkJob{}, err
	}
	if err := q.PlanByIndex(ctx); err != nil {
		return BulkJob{}, err
	}
	n, err := q.CountDropped(ctx, CountDroppedParams{TenantID: tenant, EndpointID: ep, Below: below, Most: estimateMost + 1})
	if err != nil {
		return BulkJob{}, err
	}
	job := NewBulkJob{Kind: bulk.Drop, Filter: bulk.Filter{Endpoint: id.Endpoint.Format(ep), Below: below}, Reason: reason}
	made, err := q.insertBulkJob(ctx, tenant, by, job, Estimate{Count: min(n, estimateMost), Exact: n <= estimateMost})
	if err != nil {
		return made, err
	}
	return made, q.NotifyWake(ctx, WakePayload([]id.UUID{ep}, true))
}

// planDrop takes the next rows that are to be dropped, wherever they are in the lane; those that somebody holds are left for
// the next chunk. before it looks it asks which transactions still run (see overDrop).
func (w *bulkWork) planDrop(ctx context.Context, most int) (part bulkPart, err error) {
	part = newPart(id.UUID{})
	if w.endpoint, err = id.Endpoint.Parse(w.filter.Endpoint); err != nil {
		return part, err
	}
	if w.oldest, err = w.q.OldestRunningXid(ctx); err != nil {
		return part, err
	}
	rows, err := w.q.LockDropped(ctx, LockDroppedParams{TenantID: w.tenant, EndpointID: w.endpoint, Below: w.filter.Below, Most: int32(most)})
	if err != nil {
		return part, err
	}
	part.queued = make(map[id.UUID]Queue, len(rows))
	for _, r := range rows {
		part.queued[r.DeliveryID] = r
		part.ids = append(part.ids, r.DeliveryID)
	}
	slices.SortFunc(part.ids, compareIDs)
	part.end = len(rows) == 0
	return part, nil
}

// overDrop is over once nothing is left, and nothing can still come: a number up to the mark may have been drawn by a
// transaction that had not ended (worker/lanes/watermark.go). Then the mark has done its work.
func (w *bulkWork) overDrop(ctx context.Context, job *BulkJob) (over bool, rest time.Duration, err error) {
	left, err := w.q.CountDropped(ctx, CountDroppedParams{TenantID: w.tenant, EndpointID: w.endpoint, Below: w.filter.Below, Most: 1})
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
	return true, 0, w.q.liftDrop(ctx, job, w.filter)
}

// dropRest is the wait for rows that others hold, or are about to commit.
const dropRest = 200 * time.Millisecond

// liftDrop takes the mark of a drop away: what is left below it is sent.
func (q *Queries) liftDrop(ctx context.Context, job *BulkJob, f bulk.Filter) error {
	ep, err := id.Endpoint.Parse(f.Endpoint)
	if err != nil {
		return err
	}
	if err := q.UnmarkDropped(ctx, UnmarkDroppedParams{TenantID: job.TenantID, EndpointID: ep, Below: f.Below}); err != nil {
		return err
	}
	return q.NotifyWake(ctx, WakePayload([]id.UUID{ep}, true))
}
