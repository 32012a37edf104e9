package db

import (
	"context"
	"time"

	"posthorn/domain/health"
	"posthorn/domain/id"
)

// NewestEndpoints is a tenant's endpoints, the newest first, without what their rows don't hold.
func (q *Queries) NewestEndpoints(ctx context.Context, tenant id.UUID, most int) ([]Endpoint, error) {
	return q.ListEndpointsNewest(ctx, ListEndpointsNewestParams{TenantID: tenant, Before: id.Last, Most: int32(most)})
}

// Condition is how an endpoint is: its counters and breaker, and what the tenant's policy makes of them.
type Condition struct {
	EndpointHealth
	health.Verdict
	Policy health.Policy
}

// ReadCondition is an endpoint's condition. One that was never tried has an empty one.
func (q *Queries) ReadCondition(ctx context.Context, tenant, u id.UUID, now time.Time) (Condition, error) {
	policy, err := q.healthPolicy(ctx, tenant)
	if err != nil {
		return Condition{}, err
	}
	rows, err := q.EndpointsHealth(ctx, tenant)
	if err != nil {
		return Condition{}, err
	}
	for _, r := range rows {
		if r.ID == u {
			return Condition{r.EndpointHealth, policy.Judge(r.EndpointHealth.Counters(), now), policy}, nil
		}
	}
	return Condition{Policy: policy}, nil
}
