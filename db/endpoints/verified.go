package endpoints

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// OpenVerified makes a verified endpoint active, opens its lane, and resets its health counters. It returns false if
// another verification has replaced this one. A rate in requests a second lowers the endpoint's rate limit; 0: none.
func OpenVerified(ctx context.Context, d *db.DB, v sql.PendingVerificationsRow, status int32, rate int) (bool, error) {
	tenant, endpointID := v.TenantID, v.EndpointID
	err := d.Worker(ctx, func(q *sql.Queries) error {
		// The tenant first: this lock serializes changes of its endpoints' states.
		if _, err := q.LockTenant(ctx, tenant); err != nil {
			return err
		}
		// A replaced verification does not cover the endpoint's present settings.
		n, err := q.FinishVerification(ctx, sql.FinishVerificationParams{
			TenantID:   tenant,
			ID:         v.ID,
			State:      "succeeded",
			LastStatus: &status,
		})
		if err == nil && n == 0 {
			err = errNotPending
		}
		if err != nil {
			return err
		}
		was, err := q.LockEndpoint(ctx, tenant, endpointID)
		if err != nil {
			return err
		}
		if err := lowerRate(ctx, q, was, rate); err != nil {
			return err
		}
		e, err := q.ActivateEndpoint(ctx, tenant, endpointID)
		if db.IsNoRows(err) {
			// Active already, or paused. Who responds to a verification takes deliveries: it waits no longer.
			ended, err := EndWait(ctx, q, tenant, endpointID)
			if err != nil || !ended {
				return err
			}
			return WakeLane(ctx, q, tenant, endpointID)
		}
		if err != nil {
			return err
		}
		return open(ctx, q, was, e)
	})
	if db.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// lowerRate sets the rate limit that an endpoint has asked for, if its own is higher.
func lowerRate(ctx context.Context, q *sql.Queries, e sql.Endpoint, rate int) error {
	if rate = min(rate, endpoint.MaxRate); rate == 0 || e.RateLimit != nil && int(*e.RateLimit) <= rate {
		return nil
	}
	limited, err := q.LimitRate(ctx, sql.LimitRateParams{TenantID: e.TenantID, ID: e.ID, RateLimit: new(int32(rate))})
	if err != nil {
		return err
	}
	if err := reroute(ctx, q, limited, false); err != nil {
		return err
	}
	return db.Audit(ctx, q, db.Author{Kind: "system"}, db.Audited{
		Tenant:  &e.TenantID,
		Action:  "endpoint.update",
		Kind:    "endpoint",
		Object:  id.Endpoint.Format(e.ID),
		Details: map[string]any{"changed": []string{"rate_limit"}, "rate_limit": []any{e.RateLimit, rate}},
	})
}

// open does what follows when a verification makes an endpoint active.
func open(ctx context.Context, q *sql.Queries, was, e sql.Endpoint) error {
	if was.Status == string(endpoint.Disabled) {
		rows, err := q.EndpointHealthOf(ctx, e.TenantID, []id.UUID{e.ID})
		if err != nil {
			return err
		}
		details := endpointDetails(e, append(rows, sql.EndpointHealth{})[0])
		details.Reason = was.StatusReason
		if details.Held, details.HeldMore, err = held(ctx, q, e.TenantID, e.ID, heldCounted); err != nil {
			return err
		}
		if err := tell(ctx, q, e, notice.EndpointRecovered, key(e.ID, was.StatusAt), details); err != nil {
			return err
		}
	}
	if err := reroute(ctx, q, e, false); err != nil {
		return err
	}
	if err := holdLane(ctx, q, e); err != nil {
		return err
	}
	if err := clearHealth(ctx, q, e.TenantID, e.ID); err != nil {
		return err
	}
	tenant := e.TenantID
	return db.Audit(ctx, q, db.Author{Kind: "system"}, db.Audited{
		Tenant:  &tenant,
		Action:  "endpoint.verified",
		Kind:    "endpoint",
		Object:  id.Endpoint.Format(e.ID),
		Details: map[string]any{"from": was.Status},
	})
}

var errNotPending = fault.New(fault.NotFound, "not_pending", "This verification was superseded.")
