package queue

import (
	"context"
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
			return cancelTaken(ctx, q, rows)
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
		return FailTaken(ctx, q, taken, delivery.Expired)
	})
	return n, err
}

// FailTaken fails the deliveries of queue rows that were just deleted, lists them as dead letters and enters them in
// the ledger.
func FailTaken(ctx context.Context, q *sql.Queries, rows []TakenRow, reason delivery.Reason) error {
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
		totals.At(r.TenantID, created).Failed++
	}
	for _, p := range days {
		ended, err := q.FailDeliveries(ctx, *p)
		if err != nil {
			return err
		}
		letters := sql.InsertDeadLettersParams{}
		for _, e := range ended {
			letters.Tenants = append(letters.Tenants, e.TenantID)
			letters.Deliveries = append(letters.Deliveries, e.ID)
			letters.Endpoints = append(letters.Endpoints, e.EndpointID)
			letters.Types = append(letters.Types, e.EventType)
			letters.Reasons = append(letters.Reasons, int16(reason))
		}
		if len(letters.Tenants) > 0 {
			if err := q.InsertDeadLetters(ctx, letters); err != nil {
				return err
			}
		}
	}
	return ledger.EnterSettled(ctx, q, totals)
}

// cancelTaken cancels the deliveries of queue rows of a deleted listener.
func cancelTaken(ctx context.Context, q *sql.Queries, rows []TakenRow) error {
	totals := ledger.Totals{}
	days := map[int64]*sql.EndListenedParams{}
	for _, r := range rows {
		created := r.DeliveryID.Time()
		p := days[created.Unix()/86400]
		if p == nil {
			p = &sql.EndListenedParams{Reason: delivery.EndpointDeleted}
			days[created.Unix()/86400] = p
		}
		p.Tenants = append(p.Tenants, r.TenantID)
		p.Ids = append(p.Ids, r.DeliveryID)
		p.Created = append(p.Created, created)
		p.Low, p.High = db.Widen(p.Low, p.High, created)
		totals.At(r.TenantID, created).Canceled++
	}
	for _, p := range days {
		if _, err := q.EndListened(ctx, *p); err != nil {
			return err
		}
	}
	return ledger.EnterSettled(ctx, q, totals)
}
