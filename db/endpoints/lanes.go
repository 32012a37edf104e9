package endpoints

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"posthorn/db"
	"posthorn/db/ledger"
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
	Record   health.Record
	Failures int                  // in a row
	InFlight map[string]time.Time // by the id of a delivery: since when its request is in flight
}

// WaitingLanes returns the present state of the lanes of endpoints, which is why deliveries wait. It does not tell
// whether an endpoint is degraded. The console passes no tenant and sees all.
func WaitingLanes(ctx context.Context, q *sql.Queries, tenant *id.UUID, endpoints []id.UUID) (map[id.UUID]WaitingLane, error) {
	return waitingLanes(ctx, q, tenant, endpoints, nil)
}

// waitingLanes is WaitingLanes with the days of the endpoints, which tell whether they are degraded.
func waitingLanes(
	ctx context.Context,
	q *sql.Queries,
	tenant *id.UUID,
	endpoints []id.UUID,
	days map[id.UUID]health.Record,
) (map[id.UUID]WaitingLane, error) {
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
			ResumeAt:   db.OrZero(l.ResumeAt),
			Breaker:    Breaker(h),
			Asked:      asked(l.AskedAt, l.NotBefore, l.LookAt),
			Unserved:   unserved(l),
			Verifying:  l.Verifying,
			Listens:    l.Kind == string(endpoint.Listen),
			HeardAt:    db.NotEpoch(l.HeardAt),
			Record:     recorded(days[l.ID], Counters(h), l.StatusAt, db.OrZero(h.ClosedAt), l.Now),
			Last:       last(h),
			Scope:      pause.Scope(l.Scope),
			ScopeSince: db.NotEpoch(l.Since),
			Drops:      l.WhenHeld == endpoint.Drop,
		}
		lane := condition.Lane{
			Condition: condition.Of(facts, l.Now),
			Listens:   l.Kind == string(endpoint.Listen),
			Served:    l.Served || endpoint.Kind(l.Kind).Pulls(),
			LimitedBy: condition.Limit(l.LimitedBy),
			NotBefore: db.OrZero(l.NotBefore),
		}
		if l.RateLimit != nil {
			lane.RateLimit = int(*l.RateLimit)
		}
		counted := Counters(h)
		waiting := WaitingLane{
			Lane:     lane,
			At:       l.Now,
			Record:   facts.Record,
			Failures: facts.Record.InARow(counted.ConsecutiveFailures + counted.AuthStreak),
		}
		if err := json.Unmarshal(l.InFlight, &waiting.InFlight); err != nil {
			return nil, fmt.Errorf("requests in flight of a lane: %w", err)
		}
		lanes[l.ID] = waiting
	}
	return lanes, nil
}

// unserved reports whether deliveries wait for a worker. Those of a listener wait for its program, and a feed has none.
func unserved(l sql.LanesOfRow) bool {
	return !l.Served && l.Kind != string(endpoint.Listen) && !endpoint.Kind(l.Kind).Pulls()
}

// Conditions returns the lanes of endpoints of a tenant, or for the console of any, with their conditions, but without
// counts of waiting deliveries.
func Conditions(ctx context.Context, q *sql.Queries, tenant *id.UUID, ids []id.UUID) (map[id.UUID]WaitingLane, error) {
	days, err := ledger.EndpointDays(ctx, q, tenant, ids, time.Now())
	if err != nil {
		return nil, err
	}
	return waitingLanes(ctx, q, tenant, ids, days)
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

// last is the result of the last failed attempt; zero if there is none.
func last(h sql.EndpointHealth) delivery.Result {
	return delivery.Result{Failure: h.LastFailure, Status: int(h.LastStatus)}
}
