package deliveries

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// TenantOfDelivery finds the tenant of a delivery by the delivery's id alone. It changes the planner settings of its
// transaction, so call it last.
func TenantOfDelivery(ctx context.Context, q *sql.Queries, deliveryID id.UUID) (id.UUID, error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return id.UUID{}, err
	}
	return q.TenantOfDelivery(ctx, deliveryID.Time(), deliveryID)
}

// TenantOfEvent finds the tenant of an event by the event's id alone. It changes the planner settings of its
// transaction, so call it last.
func TenantOfEvent(ctx context.Context, q *sql.Queries, tenantID id.UUID) (id.UUID, error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return id.UUID{}, err
	}
	return q.TenantOfEvent(ctx, tenantID.Time(), tenantID)
}

// ReadEventOfTenant reads an event with the name of its tenant, for the console.
func ReadEventOfTenant(ctx context.Context, q *sql.Queries, tenant, eventID id.UUID) (show.Event, error) {
	owner, err := q.GetTenant(ctx, tenant)
	if err != nil {
		return show.Event{}, err
	}
	e, err := events.Read(ctx, q, tenant, eventID)
	e.Tenant = owner.Name
	return e, err
}

// idOrNull is nil for the zero id, which a statement reads as no filter.
func idOrNull(uuid id.UUID) *id.UUID {
	if uuid.IsZero() {
		return nil
	}
	return &uuid
}

// OfExternalID finds the tenant with an external id, or else the newest endpoint of any tenant with it.
func OfExternalID(ctx context.Context, q *sql.Queries, externalID string) (tenant, endpoint id.UUID, err error) {
	t, err := q.TenantOfExternalID(ctx, externalID)
	if err == nil || !db.IsMissing(err) {
		return t.ID, endpoint, err
	}
	endpoint, err = q.AnyEndpointOfExternalID(ctx, externalID)
	return tenant, endpoint, err
}

// LastDurations is how long the last attempt of each delivery lasted. Deliveries without attempts are left out.
func LastDurations(ctx context.Context, q *sql.Queries, tenant id.UUID, of []show.Delivery, now time.Time) (map[id.UUID]time.Duration, error) {
	ids, since := make([]id.UUID, len(of)), now
	for i, d := range of {
		ids[i] = d.ID
		if d.CreatedAt.Before(since) {
			since = d.CreatedAt
		}
	}
	rows, err := q.LastDurations(ctx, sql.LastDurationsParams{
		TenantID:   tenant,
		Deliveries: ids,
		Since:      since.Add(-db.ClockSkew),
		Until:      now.Add(db.ClockSkew),
	})
	durations := make(map[id.UUID]time.Duration, len(rows))
	for _, r := range rows {
		durations[r.DeliveryID] = time.Duration(r.TotalUs) * time.Microsecond
	}
	return durations, err
}
