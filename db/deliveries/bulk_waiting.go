package deliveries

import (
	"context"
	"slices"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/ledger"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// planWaiting plans a chunk of waiting deliveries. With lock it locks their queue rows, as far as they are free.
func (w *bulkWork) planWaiting(ctx context.Context, part *bulkPart, rows []show.Delivery, lock bool) error {
	skip := bulk.SkipCancel
	if w.kind == bulk.RetryNow {
		skip = bulk.SkipRetry
	}
	if lock {
		var reached int
		var err error
		if part.queued, reached, err = lockQueued(ctx, w.q, w.tenant, idsOf(rows)); err != nil {
			return err
		}
		if reached < len(rows) {
			rows, part.end = rows[:reached], false
			part.position = rows[reached-1].ID
		}
	}
	waits, err := w.waits(ctx, rows, lock)
	if err != nil {
		return err
	}
	for _, d := range rows {
		why := skip(d.Status)
		if why == bulk.SkipNone && lock {
			why = w.skipQueued(part.queued, d.ID)
		}
		if why == bulk.SkipReady && waits[d.Endpoint.ID] {
			why = bulk.SkipNone // the end of the wait sends it
		}
		part.take(d, why)
	}
	return nil
}

// waits says which endpoints asked for a wait that a retry now ends.
func (w *bulkWork) waits(ctx context.Context, rows []show.Delivery, lock bool) (map[id.UUID]bool, error) {
	if w.kind != bulk.RetryNow || !lock || len(rows) == 0 {
		return nil, nil
	}
	found, err := w.q.WaitsOf(ctx, w.tenant, endpointsOf(rows))
	waits := make(map[id.UUID]bool, len(found))
	for _, f := range found {
		waits[f.EndpointID] = f.AskedAt == nil || !f.AskedAt.After(w.ceiling)
	}
	return waits, err
}

// skipQueued decides by the locked queue row.
func (w *bulkWork) skipQueued(queued map[id.UUID]sql.Queue, deliveryID id.UUID) bulk.Skip {
	row, there := queued[deliveryID]
	switch {
	case !there:
		return bulk.SkipSettled
	case w.kind != bulk.RetryNow:
	case row.State == queue.Blocked:
		return bulk.SkipBlocked
	case row.State == queue.Ready:
		return bulk.SkipReady
	}
	return bulk.SkipNone
}

// lockQueued locks the queue rows of the first of some deliveries, up to one that another transaction holds. reached is
// how many it covers, at least one. Waiting for a row while holding others can deadlock with the recorder, so
// lockQueued waits for the first row only, before it holds any. Deliveries without a row are settled, and are left out
// of the result.
func lockQueued(ctx context.Context, q *sql.Queries, tenant id.UUID, ids []id.UUID) (rows map[id.UUID]sql.Queue, reached int, err error) {
	rows = make(map[id.UUID]sql.Queue, len(ids))
	if len(ids) == 0 {
		return rows, 0, nil
	}
	first, err := lockWaiting(ctx, q, tenant, ids[0])
	if err != nil {
		return nil, 0, err
	}
	if first != nil {
		rows[ids[0]] = *first
	}
	free, err := q.LockFreeQueued(ctx, tenant, ids[1:])
	if err != nil {
		return nil, 0, err
	}
	for _, r := range free {
		rows[r.DeliveryID] = r
	}
	still, err := q.StillQueued(ctx, tenant, ids[1:])
	if err != nil {
		return nil, 0, err
	}
	busy := map[id.UUID]bool{}
	for _, deliveryID := range still {
		if _, ours := rows[deliveryID]; !ours {
			busy[deliveryID] = true
		}
	}
	for reached = 1; reached < len(ids) && !busy[ids[reached]]; {
		reached++
	}
	return rows, reached, nil
}

// applyRetry makes scheduled rows ready at once, in their order, and ends the waits that their endpoints had asked for
// when the job was created. What endpoints ask for while the job runs is respected.
func (w *bulkWork) applyRetry(ctx context.Context, part *bulkPart) error {
	scheduled := slices.DeleteFunc(idsOf(part.rows), func(deliveryID id.UUID) bool {
		return part.queued[deliveryID].State == queue.Ready
	})
	if err := w.q.QueueManyNow(ctx, w.tenant, scheduled); err != nil {
		return err
	}
	if err := endpoints.EndWaitsBefore(ctx, w.q, w.tenant, w.ceiling, endpointsOf(part.rows)); err != nil {
		return err
	}
	return wakeLanes(ctx, w.q, w.tenant, endpointsOf(part.rows))
}

// applyCancel cancels waiting deliveries whose queue rows are locked.
func (w *bulkWork) applyCancel(ctx context.Context, part *bulkPart, reason delivery.Reason) error {
	if err := cancelMany(ctx, w.q, w.tenant, idsOf(part.rows), part.queued, reason); err != nil {
		return err
	}
	return wakeLanes(ctx, w.q, w.tenant, endpointsOf(part.rows))
}

// cancelMany cancels waiting deliveries, ordered by id, whose queue rows the transaction has locked.
func cancelMany(
	ctx context.Context,
	q *sql.Queries,
	tenant id.UUID,
	ids []id.UUID,
	queued map[id.UUID]sql.Queue,
	reason delivery.Reason,
) error {
	if err := q.DropManyQueued(ctx, tenant, ids); err != nil {
		return err
	}
	listed := sql.InsertCancellationsParams{TenantID: tenant}
	totals := ledger.Totals{}
	for _, day := range splitByDay(ids) {
		ended, err := q.CancelDeliveries(ctx, sql.CancelDeliveriesParams{
			Reason:   reason,
			TenantID: tenant,
			Ids:      day.ids,
			Created:  day.created,
			First:    day.first,
			Last:     day.last,
		})
		if err != nil {
			return err
		}
		for _, d := range ended {
			listed.Deliveries = append(listed.Deliveries, d.ID)
			listed.Endpoints = append(listed.Endpoints, d.EndpointID)
			listed.Types = append(listed.Types, d.EventType)
			listed.Attempted = append(listed.Attempted, max(d.Attempts, queued[d.ID].Attempts) > 0)
			totals.At(tenant, d.ID.Time()).Canceled++
		}
	}
	if err := q.InsertCancellations(ctx, listed); err != nil {
		return err
	}
	return ledger.Enter(ctx, q, totals)
}

// wakeLanes notifies the owners of lanes that old rows changed.
func wakeLanes(ctx context.Context, q *sql.Queries, tenant id.UUID, endpoints []id.UUID) error {
	if err := q.BumpLanes(ctx, tenant, endpoints); err != nil {
		return err
	}
	return q.NotifyWake(ctx, db.WakePayload(endpoints, true))
}

// applyArchive hides settled deliveries from lists, or shows them again. A delivery that another transaction changed in
// between counts as left alone.
func (w *bulkWork) applyArchive(ctx context.Context, part *bulkPart) error {
	wanted := w.kind == bulk.Archive
	changed := map[id.UUID]bool{}
	var ids []id.UUID
	for _, day := range splitByDay(idsOf(part.rows)) {
		some, err := w.q.ArchiveDeliveries(ctx, sql.ArchiveDeliveriesParams{
			Ids:      day.ids,
			Created:  day.created,
			TenantID: w.tenant,
			First:    day.first,
			Last:     day.last,
			Archived: wanted,
		})
		if err != nil {
			return err
		}
		for _, deliveryID := range some {
			changed[deliveryID] = true
		}
		ids = append(ids, some...)
	}
	rows := part.rows
	part.rows = rows[:0:0]
	for _, d := range rows {
		why := bulk.SkipNone
		if !changed[d.ID] {
			why = bulk.SkipAlready
		}
		part.take(d, why)
	}
	if err := w.q.ArchiveLetters(ctx, sql.ArchiveLettersParams{
		Archived: wanted,
		TenantID: w.tenant,
		Ids:      ids,
	}); err != nil {
		return err
	}
	return w.q.ArchiveCancellations(ctx, sql.ArchiveCancellationsParams{Archived: wanted, TenantID: w.tenant, Ids: ids})
}
