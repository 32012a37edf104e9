package queue

import (
	"context"
	"maps"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/ledger"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// TakenRow is a deleted queue row whose delivery ends without a request.
type TakenRow = sql.TakeDeletedRowsRow

// FailDeletedEndpoint ends at most `most` deliveries that wait for a deleted endpoint: they fail, or are canceled if
// the endpoint was a listener. It returns how many it found.
func FailDeletedEndpoint(ctx context.Context, d *db.DB, endpointID id.UUID, most int32) (n int, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		rows, err := q.TakeDeletedRows(ctx, endpointID, most)
		if err != nil {
			return err
		}
		if n = len(rows); n == 0 {
			_, err := q.RemoveLane(ctx, endpointID)
			return err
		}
		kind, err := q.EndpointKind(ctx, endpointID)
		switch {
		case err != nil && !db.IsNoRows(err):
			return err
		case kind == string(endpoint.Listen):
			return endTaken(ctx, q, rows, delivery.Canceled, delivery.EndpointDeleted)
		}
		return FailTaken(ctx, q, rows, delivery.EndpointDeleted)
	})
	return n, err
}

// FailBefore ends at most `most` deliveries that were created before a moment, or whose events were, and that could be
// sent since before overdue.
func FailBefore(ctx context.Context, d *db.DB, before, overdue time.Time, most int32) (n int, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		rows, err := q.TakeExpiringRows(ctx, sql.TakeExpiringRowsParams{
			Before:  id.FirstAt(before),
			Overdue: overdue,
			Limit:   most,
		})
		if err != nil {
			return err
		}
		if n = len(rows); n == 0 {
			return nil
		}
		taken := make([]TakenRow, n)
		for i, r := range rows {
			taken[i] = TakenRow(r)
		}
		return FailTaken(ctx, q, taken, delivery.RetentionEnded)
	})
	return n, err
}

// FailTaken fails the deliveries of queue rows that were just deleted, lists them as dead letters and enters them in
// the ledger.
func FailTaken(ctx context.Context, q *sql.Queries, rows []TakenRow, reason delivery.Reason) error {
	return endTaken(ctx, q, rows, delivery.Failed, reason)
}

// endTaken fails or cancels the deliveries of queue rows that were just deleted.
func endTaken(ctx context.Context, q *sql.Queries, rows []TakenRow, as delivery.Status, reason delivery.Reason) error {
	totals := ledger.Totals{}
	days := map[int64]*sql.FailDeliveriesParams{}
	for _, r := range rows {
		created := r.DeliveryID.Time()
		p := days[created.Unix()/86400]
		if p == nil {
			p = &sql.FailDeliveriesParams{Reason: reason}
			days[created.Unix()/86400] = p
		}
		p.Tenants = append(p.Tenants, r.TenantID)
		p.Ids = append(p.Ids, r.DeliveryID)
		p.Created = append(p.Created, created)
		p.Low, p.High = db.Widen(p.Low, p.High, created)
		if total := totals.At(r.TenantID, created); as == delivery.Failed {
			total.Failed++
		} else {
			total.Canceled++
		}
	}
	for _, p := range days {
		var err error
		if as == delivery.Failed {
			err = failDay(ctx, q, *p)
		} else {
			_, err = q.CancelTaken(ctx, sql.CancelTakenParams(*p))
		}
		if err != nil {
			return err
		}
	}
	return ledger.EnterSettled(ctx, q, totals)
}

// failDay fails deliveries of one day, and lists them as dead letters.
func failDay(ctx context.Context, q *sql.Queries, p sql.FailDeliveriesParams) error {
	ended, err := q.FailDeliveries(ctx, p)
	if err != nil || len(ended) == 0 {
		return err
	}
	letters := sql.InsertDeadLettersParams{}
	for _, e := range ended {
		letters.Tenants = append(letters.Tenants, e.TenantID)
		letters.Deliveries = append(letters.Deliveries, e.ID)
		letters.Endpoints = append(letters.Endpoints, e.EndpointID)
		letters.Types = append(letters.Types, e.EventType)
		letters.Reasons = append(letters.Reasons, int16(p.Reason))
	}
	return q.InsertDeadLetters(ctx, letters)
}

// EndExpired ends at most `most` deliveries that were not delivered before their expiry at now, and returns how many it
// found.
func EndExpired(ctx context.Context, d *db.DB, now time.Time, most int32) (n int, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		rows, err := q.TakeExpiredRows(ctx, now, most)
		if err != nil || len(rows) == 0 {
			return err
		}
		n = len(rows)
		taken, lanes := make([]TakenRow, n), map[id.UUID]bool{}
		for i, r := range rows {
			taken[i] = TakenRow{TenantID: r.TenantID, DeliveryID: r.DeliveryID, EventID: r.EventID, Attempts: r.Attempts}
			lanes[r.EndpointID] = true
		}
		if err := endTaken(ctx, q, taken, delivery.Canceled, delivery.PastExpiry); err != nil {
			return err
		}
		// The next of an ordering key can go.
		woken := slices.SortedFunc(maps.Keys(lanes), id.UUID.Compare)
		if err := q.BumpTakenLanes(ctx, woken); err != nil {
			return err
		}
		return q.NotifyWake(ctx, db.WakePayload(woken, false))
	})
	return n, err
}
