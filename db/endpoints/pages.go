package endpoints

import (
	"context"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/id"
)

// Newest returns a tenant's endpoints, newest first, with what their rows hold.
func Newest(ctx context.Context, q *sql.Queries, tenant id.UUID, most int) ([]sql.Endpoint, error) {
	return q.ListEndpointsNewest(ctx, sql.ListEndpointsNewestParams{
		TenantID: tenant, Before: id.Last, Most: int32(most),
	})
}

// LaneState is the condition of a lane's endpoint.
type LaneState struct {
	condition.Condition
	Ready bool // ready deliveries are sent as fast as the endpoint's limits and the workers allow
}

// ConditionsCrossTenant returns the condition of endpoints of any tenant, for the console, without counts of waiting
// deliveries.
func ConditionsCrossTenant(ctx context.Context, q *sql.Queries, ids []id.UUID) (map[id.UUID]LaneState, error) {
	lanes, err := WaitingLanes(ctx, q, nil, ids)
	found := make(map[id.UUID]LaneState, len(lanes))
	for endpointID, l := range lanes {
		found[endpointID] = LaneState{l.Condition, l.Ready(l.At)}
	}
	return found, err
}

// Conditions returns the condition of a tenant's endpoints at a moment.
func Conditions(ctx context.Context, q *sql.Queries, tenant id.UUID, rows []sql.Endpoint,
	now time.Time,
) (map[id.UUID]condition.Condition, error) {
	full := make([]Full, len(rows))
	for i, e := range rows {
		full[i].Endpoint = e
	}
	err := addHealth(ctx, q, tenant, full)
	found := make(map[id.UUID]condition.Condition, len(rows))
	for _, e := range full {
		found[e.ID] = e.Condition(now)
	}
	return found, err
}
