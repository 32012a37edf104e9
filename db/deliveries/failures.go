package deliveries

import (
	"context"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/failures"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// Failures reads the newest failures of an endpoint that were neither delivered nor replayed, by their response.
// Without bodies they are grouped by the result alone, for readers who see no responses. It changes the planner
// settings of its transaction.
func Failures(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, bodies bool) (f show.Failures, err error) {
	if _, err := endpoints.Status(ctx, q, tenant, endpointID); err != nil {
		return f, err
	}
	list := ListOptions{Status: delivery.AllFailed, Endpoint: endpointID, Range: show.Range{Limit: failures.Newest}}
	page, err := List(ctx, q, tenant, list)
	if err != nil {
		return f, err
	}
	failed := page.Rows[:0]
	for _, d := range page.Rows {
		if d.ReplayedBy.IsZero() && !d.Status.Ended() && d.Attempts > 0 {
			failed = append(failed, d)
		}
	}
	texts := map[id.UUID][]byte{}
	if bodies {
		if texts, err = lastResponses(ctx, q, tenant, failed); err != nil {
			return f, err
		}
	}
	return show.NewFailures(failed, texts, page.Next != nil), nil
}

// lastResponses reads the start of the last response to each delivery.
func lastResponses(ctx context.Context, q *sql.Queries, tenant id.UUID, of []show.Delivery) (map[id.UUID][]byte, error) {
	p := sql.LastResponsesParams{Size: failures.MaxBody, TenantID: tenant}
	for _, d := range of {
		since, until := attemptsBetween(d)
		p.Deliveries = append(p.Deliveries, d.ID)
		p.Since = append(p.Since, since)
		p.Until = append(p.Until, until)
	}
	rows, err := q.LastResponses(ctx, p)
	texts := make(map[id.UUID][]byte, len(rows))
	for _, r := range rows {
		texts[r.DeliveryID] = r.Body
	}
	return texts, err
}
