package deliveries

import (
	"context"
	"slices"
	"strings"

	"posthorn/db/sql"
	"posthorn/domain/id"
)

// ScanEvents returns a page of a tenant's events, newest first or oldest first. It changes the planner settings of its
// transaction, so call it last.
func ScanEvents(ctx context.Context, q *sql.Queries, l sql.ScanEventsDownParams,
	ascending bool,
) ([]sql.ScanEventsDownRow, error) {
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

// MatchesEvent reports whether an event has the type (or is below the family) and the channel that a list asks for; an
// empty text matches everything.
func MatchesEvent(wantedType, wantedChannel, typ string, channels []string) bool {
	family, isFamily := strings.CutSuffix(wantedType, "*")
	return (wantedType == "" || typ == wantedType || isFamily && strings.HasPrefix(typ, family)) &&
		(wantedChannel == "" || slices.Contains(channels, wantedChannel))
}

// TenantOfDelivery finds the tenant of a delivery by the delivery's id alone. It changes the planner settings of its
// transaction, so call it last.
func TenantOfDelivery(ctx context.Context, q *sql.Queries, deliveryID id.UUID) (id.UUID, error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return id.UUID{}, err
	}
	return q.TenantOfDelivery(ctx, sql.TenantOfDeliveryParams{CreatedAt: deliveryID.Time(), ID: deliveryID})
}

// TenantOfEvent finds the tenant of an event by the event's id alone. It changes the planner settings of its
// transaction, so call it last.
func TenantOfEvent(ctx context.Context, q *sql.Queries, tenantID id.UUID) (id.UUID, error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return id.UUID{}, err
	}
	return q.TenantOfEvent(ctx, sql.TenantOfEventParams{CreatedAt: tenantID.Time(), ID: tenantID})
}
