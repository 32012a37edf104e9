package maintenance

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// Payload names the data of an event in object storage.
type Payload struct{ Tenant, Event id.UUID }

// UnneededPayloads returns those of the next payloads to check whose event is not kept or has no data, and how many it
// checked. The others are checked again in a day.
func UnneededPayloads(ctx context.Context, d *db.DB, most int32) (unneeded []Payload, checked int32, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		rows, err := q.CheckLargePayloads(ctx, most)
		for _, r := range rows {
			if !r.Kept {
				unneeded = append(unneeded, Payload{r.TenantID, r.EventID})
			}
		}
		checked = int32(len(rows))
		return err
	})
	return unneeded, checked, err
}

// PayloadsOf returns payloads of a tenant.
func PayloadsOf(ctx context.Context, d *db.DB, tenant id.UUID, most int32) (of []Payload, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		ids, err := q.LargePayloadsOf(ctx, tenant, most)
		for _, one := range ids {
			of = append(of, Payload{tenant, one})
		}
		return err
	})
	return of, err
}

// ForgetPayloads deletes the rows of payloads whose objects are deleted.
func ForgetPayloads(ctx context.Context, d *db.DB, payloads []Payload) error {
	if len(payloads) == 0 {
		return nil
	}
	var tenants, events []id.UUID
	for _, one := range payloads {
		tenants, events = append(tenants, one.Tenant), append(events, one.Event)
	}
	return d.Console(ctx, func(q *sql.Queries) error { return q.ForgetLargePayloads(ctx, tenants, events) })
}
