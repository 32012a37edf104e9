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
// another verification has replaced this one.
func OpenVerified(ctx context.Context, d *db.DB, tenant, endpointID, verification id.UUID, status int32) (bool, error) {
	err := d.Worker(ctx, func(q *sql.Queries) error {
		// The tenant first: this lock serializes changes of its endpoints' states.
		if _, err := q.LockTenant(ctx, tenant); err != nil {
			return err
		}
		// A replaced verification does not cover the endpoint's present settings.
		n, err := q.FinishVerification(ctx, sql.FinishVerificationParams{
			TenantID:   tenant,
			ID:         verification,
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
