package deliveries

import (
	"context"

	"posthorn/db/sql"
	"posthorn/domain/id"
)

// ScanEvents is a page of a tenant's events, newest first or oldest first. It changes how its transaction plans: it
// comes last.
func ScanEvents(ctx context.Context, q *sql.Queries, l sql.ScanEventsDownParams, ascending bool) ([]sql.ScanEventsDownRow, error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return nil, err
	}
	if !ascending {
		return q.ScanEventsDown(ctx, l)
	}
	up, err := q.ScanEventsUp(ctx, sql.ScanEventsUpParams(l))
	rows := make([]sql.ScanEventsDownRow, len(up))
	for i, r := range up {
		rows[i] = sql.ScanEventsDownRow(r)
	}
	return rows, err
}

// TenantOfDelivery finds the tenant of a delivery by the delivery's id alone. It changes how its transaction plans: it
// comes last.
func TenantOfDelivery(ctx context.Context, q *sql.Queries, deliveryID id.UUID) (id.UUID, error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return id.UUID{}, err
	}
	return q.TenantOfDelivery(ctx, sql.TenantOfDeliveryParams{CreatedAt: deliveryID.Time(), ID: deliveryID})
}

// TenantOfEvent finds the tenant of an event by the event's id alone. It changes how its transaction plans: it comes
// last.
func TenantOfEvent(ctx context.Context, q *sql.Queries, tenantID id.UUID) (id.UUID, error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return id.UUID{}, err
	}
	return q.TenantOfEvent(ctx, sql.TenantOfEventParams{CreatedAt: tenantID.Time(), ID: tenantID})
}
