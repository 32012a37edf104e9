package emit

import (
	"context"

	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/event"
	"posthorn/domain/id"
)

// EmitFirst stores an emission together with the tenant that it creates, in one transaction. create finds the tenant or
// creates it, and reports whether it created it. If the tenant existed, nothing is stored and stored is false: the
// caller then emits as usual. A new tenant has no endpoints, so there is nothing to announce.
func (c *Committer) EmitFirst(
	ctx context.Context,
	create func(*sql.Queries) (tenant id.UUID, created bool, err error),
	from Item,
) (r Result, stored bool) {
	it := newItem(id.UUID{}, &from, &r)
	stored, err := queue.StoreFirst(ctx, c.db, create, func(q *sql.Queries, tenant id.UUID) (*queue.NewEvent, error) {
		route, err := load(ctx, q, tenant, nil)
		if err != nil {
			return nil, err
		}
		if len(it.Data) > event.DefaultMaxPayload {
			return nil, event.ErrFirstLarge
		}
		it.TenantID = tenant
		if err := route.fanOut(ctx, it); err != nil {
			return nil, err
		}
		it.RoutingVersion = route.version
		return &it.NewEvent, nil
	})
	if err != nil {
		failItems([]*item{it}, err)
		return r, false
	}
	r.ID = it.ID
	return r, stored
}
