package db

import (
	"context"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/id"
)

// NewestEndpoints is a tenant's endpoints, the newest first, without what their rows don't hold.
func (q *Queries) NewestEndpoints(ctx context.Context, tenant id.UUID, most int) ([]Endpoint, error) {
	return q.ListEndpointsNewest(ctx, ListEndpointsNewestParams{TenantID: tenant, Before: id.Last, Most: int32(most)})
}

// LaneState is how the endpoint of a lane is.
type LaneState struct {
	condition.Condition
	Listens bool // a developer's program collects its deliveries
}

// ConditionsEverywhere is how some endpoints of any tenants are, for the console: without what waits for them.
func (q *Queries) ConditionsEverywhere(ctx context.Context, ids []id.UUID) (map[id.UUID]LaneState, error) {
	lanes, err := q.readLanes(ctx, nil, ids)
	found := make(map[id.UUID]LaneState, len(lanes))
	for u, l := range lanes {
		found[u] = LaneState{l.Condition, l.Listens}
	}
	return found, err
}

// Conditions is how some endpoints of a tenant are at a moment.
func (q *Queries) Conditions(ctx context.Context, tenant id.UUID, rows []Endpoint, now time.Time) (map[id.UUID]condition.Condition, error) {
	full := make([]FullEndpoint, len(rows))
	for i, e := range rows {
		full[i].Endpoint = e
	}
	err := q.addRecords(ctx, tenant, full)
	found := make(map[id.UUID]condition.Condition, len(rows))
	for _, e := range full {
		found[e.ID] = e.Condition(now)
	}
	return found, err
}
