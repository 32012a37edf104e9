package endpoints

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
)

// WaitingLane is a lane at one moment.
type WaitingLane struct {
	condition.Lane
	At       time.Time
	InFlight map[string]time.Time // by the id of a delivery: since when its request is in flight
}

// WaitingLanes returns the present state of the lanes of endpoints. The console passes no tenant and sees all.
func WaitingLanes(ctx context.Context, q *sql.Queries, tenant *id.UUID, endpoints []id.UUID) (map[id.UUID]WaitingLane, error) {
	found, err := q.LanesOf(ctx, sql.LanesOfParams{
		SilentSeconds: incidents.Silent.Seconds(),
		Ids:           endpoints,
		TenantID:      tenant,
	})
	if err != nil {
		return nil, err
	}
	onRecord, err := q.HealthOfEndpoints(ctx, endpoints, tenant)
	if err != nil {
		return nil, err
	}
	known := make(map[id.UUID]sql.EndpointHealth, len(onRecord))
	for _, h := range onRecord {
		known[h.EndpointID] = h
	}
	lanes := make(map[id.UUID]WaitingLane, len(found))
	for _, l := range found {
		h := known[l.ID]
		facts := condition.Facts{
			Status:     endpoint.Status(l.Status),
			Reason:     l.StatusReason,
			StatusAt:   l.StatusAt,
			Breaker:    Breaker(h),
			Asked:      asked(l.AskedAt, l.NotBefore, l.LookAt),
			Unserved:   unserved(l),
			Last:       last(h),
			Scope:      pause.Scope(l.Scope),
			ScopeSince: notEpoch(l.Since),
			Drops:      l.WhenHeld == endpoint.Drop,
		}
		lane := condition.Lane{
			Condition: condition.Of(facts, l.Now),
			Listens:   l.Kind == string(endpoint.Listen),
			Served:    l.Served,
			LimitedBy: condition.Limit(l.LimitedBy),
			NotBefore: db.OrZero(l.NotBefore),
		}
		if l.RateLimit != nil {
			lane.RateLimit = int(*l.RateLimit)
		}
		waiting := WaitingLane{Lane: lane, At: l.Now}
		if err := json.Unmarshal(l.InFlight, &waiting.InFlight); err != nil {
			return nil, fmt.Errorf("requests in flight of a lane: %w", err)
		}
		lanes[l.ID] = waiting
	}
	return lanes, nil
}

// unserved reports whether deliveries wait for a worker. Those of a listener wait for its program.
func unserved(l sql.LanesOfRow) bool { return !l.Served && l.Kind != string(endpoint.Listen) }

// LaneState is the condition of a lane's endpoint.
type LaneState struct {
	condition.Condition
	Ready bool // ready deliveries are sent as fast as the endpoint's limits and the workers allow
}

// conditionsCrossTenant returns the condition of endpoints of any tenant, for the console, without counts of waiting
// deliveries.
func conditionsCrossTenant(ctx context.Context, q *sql.Queries, ids []id.UUID) (map[id.UUID]LaneState, error) {
	lanes, err := WaitingLanes(ctx, q, nil, ids)
	found := make(map[id.UUID]LaneState, len(lanes))
	for endpointID, l := range lanes {
		found[endpointID] = LaneState{l.Condition, l.Ready(l.At)}
	}
	return found, err
}

// asked is the wait that an endpoint asked for, as it is recorded.
func asked(since, until, look *time.Time) health.Asked {
	return health.Asked{Since: db.OrZero(since), Until: db.OrZero(until), LookAt: db.OrZero(look)}
}

// EndWait ends the waits that endpoints of a tenant asked for with Retry-After, and reports whether there was one.
// Their lanes' owners learn it with the next notification.
func EndWait(ctx context.Context, q *sql.Queries, tenant id.UUID, endpoints ...id.UUID) (bool, error) {
	n, err := q.EndWait(ctx, sql.EndWaitParams{TenantID: tenant, Endpoints: endpoints})
	return n > 0, err
}

// EndWaitsBefore ends only what endpoints asked for up to a moment.
func EndWaitsBefore(ctx context.Context, q *sql.Queries, tenant id.UUID, before time.Time, endpoints []id.UUID) error {
	_, err := q.EndWait(ctx, sql.EndWaitParams{TenantID: tenant, Endpoints: endpoints, Before: &before})
	return err
}

// notEpoch returns zero for the epoch, which the database returns for an unknown time.
func notEpoch(t time.Time) time.Time {
	if t.Unix() == 0 {
		return time.Time{}
	}
	return t
}

// last is the result of the last failed attempt; zero if there is none.
func last(h sql.EndpointHealth) delivery.Result {
	return delivery.Result{Failure: h.LastFailure, Status: int(h.LastStatus)}
}
