package queue

import (
	"context"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

// StoreFirst creates a tenant and stores its first event, in one transaction. create reports whether the tenant is new;
// if it is not, nothing is stored. route completes the event by the routes of the new tenant, which it reads in the
// same transaction.
func StoreFirst(
	ctx context.Context,
	d *db.DB,
	create func(*sql.Queries) (id.UUID, bool, error),
	route func(*sql.Queries, id.UUID) (*NewEvent, error),
) (stored bool, err error) {
	var tenant id.UUID
	err = d.ConsoleThenIngest(ctx, func(q *sql.Queries) (bool, error) {
		tenant, stored, err = create(q)
		return stored, err
	}, func(q *sql.Queries, b *pgx.Batch) error {
		e, err := route(q, tenant)
		if err != nil {
			return err
		}
		events := []*NewEvent{e}
		if claims, _ := claimsOf(events); len(claims.Keys) > 0 {
			b.Queue(sql.ClaimIdempotencyKeys, db.Args(claims)...)
		}
		queueEvents(b, events, sql.InsertEvents)
		queueFanOut(b, events)
		return nil
	})
	return stored && err == nil, err
}
