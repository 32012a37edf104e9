package endpoints

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// Holding lists endpoints that hold their deliveries now, ordered by id beyond after.
func Holding(ctx context.Context, d *db.DB, after id.UUID, most int) (rows []sql.HoldingEndpointsRow, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) (err error) {
		rows, err = q.HoldingEndpoints(ctx, after, int32(most))
		return err
	})
	return rows, err
}

// ExpireHeld ends at most `most` deliveries that an endpoint has held for the longest time allowed at now. It notifies
// the endpoint's owner once, before the first of them ends. more says that there can be further ones.
func ExpireHeld(ctx context.Context, d *db.DB, h sql.HoldingEndpointsRow, now time.Time, most int) (more bool, err error) {
	hold := health.HoldFor(endpoint.Status(h.Status), int(h.RetentionDays))
	err = d.Worker(ctx, func(q *sql.Queries) error {
		if err := q.PlanByIndex(ctx); err != nil {
			return err
		}
		oldest, err := q.OldestHeld(ctx, sql.OldestHeldParams{
			TenantID:   h.TenantID,
			EndpointID: h.ID,
			Before:     id.FirstAt(now.Add(-health.NoticeAfter(hold))),
		})
		if err != nil || len(oldest) == 0 {
			return err
		}
		// A concurrent resume waits for this transaction, or this one finds the endpoint active.
		e, err := q.LockEndpoint(ctx, h.TenantID, h.ID)
		if err != nil || e.Status != h.Status {
			return err
		}
		if err := tellHeld(ctx, q, e, oldest[0].Add(hold)); err != nil {
			return err
		}
		if oldest[0].Add(hold).After(now) {
			return nil
		}
		rows, err := q.TakeHeldRows(ctx, sql.TakeHeldRowsParams{
			TenantID:   h.TenantID,
			EndpointID: h.ID,
			Before:     id.FirstAt(now.Add(-hold)),
			Limit:      int32(most),
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		more = len(rows) == most
		taken := make([]queue.TakenRow, len(rows))
		for i, r := range rows {
			taken[i] = queue.TakenRow(r)
		}
		return queue.FailTaken(ctx, q, taken, delivery.RetentionEnded)
	})
	if db.IsNotFound(err) {
		return false, nil
	}
	return more && err == nil, err
}

// tellHeld notifies an endpoint's owner when the first held delivery expires, once for each time that the endpoint
// holds.
func tellHeld(ctx context.Context, q *sql.Queries, e sql.Endpoint, expires time.Time) error {
	held, more, err := held(ctx, q, e.TenantID, e.ID, heldCounted)
	if err != nil {
		return err
	}
	endpointID := e.ID
	_, err = accounts.PostNotice(ctx, q, accounts.Notice{
		Tenant:   e.TenantID,
		Kind:     notice.HeldExpiring,
		Key:      string(notice.HeldExpiring) + ":" + key(e.ID, e.StatusAt),
		Endpoint: &endpointID,
		Details: notice.HeldDetails{
			Endpoint:    id.Endpoint.Format(e.ID),
			URL:         egress.Mask(e.URL),
			Description: e.Description,
			Status:      e.Status,
			Held:        held,
			HeldMore:    more,
			ExpiresAt:   expires.UTC(),
		},
	})
	return err
}
