package db

import (
	"context"

	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// OpenVerified makes an endpoint active that has proven itself, opens its lane, and lets what was counted against it go. False
// when the verification was superseded meanwhile.
func (d *DB) OpenVerified(ctx context.Context, tenant, u, verification id.UUID, status int32) (bool, error) {
	err := d.Worker(ctx, func(q *Queries) error {
		// The tenant first: it serialises changes of its endpoints' states.
		if _, err := q.LockTenant(ctx, tenant); err != nil {
			return err
		}
		// A verification that somebody superseded proves an endpoint that is no more.
		n, err := q.FinishVerification(ctx, FinishVerificationParams{TenantID: tenant, ID: verification, State: "succeeded", LastStatus: &status})
		if err == nil && n == 0 {
			err = errNotPending
		}
		if err != nil {
			return err
		}
		was, err := q.LockEndpoint(ctx, LockEndpointParams{TenantID: tenant, ID: u})
		if err != nil {
			return err
		}
		e, err := q.ActivateEndpoint(ctx, ActivateEndpointParams{TenantID: tenant, ID: u})
		if noRows(err) {
			return nil // active already, or paused: it has proven itself once more, and that is all
		}
		if err != nil {
			return err
		}
		return q.open(ctx, was, e)
	})
	if isNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// open does what follows when an endpoint has become active by itself.
func (q *Queries) open(ctx context.Context, was, e Endpoint) error {
	if was.Status == string(endpoint.Disabled) {
		rows, err := q.EndpointHealthOf(ctx, EndpointHealthOfParams{TenantID: e.TenantID, Endpoints: []id.UUID{e.ID}})
		if err != nil {
			return err
		}
		details := endpointDetails(e, append(rows, EndpointHealth{})[0])
		details.Reason = was.StatusReason
		if details.Held, details.HeldMore, err = q.held(ctx, e.TenantID, e.ID, heldCounted); err != nil {
			return err
		}
		if err := q.tell(ctx, e, notice.EndpointRecovered, key(e.ID, was.StatusAt), details); err != nil {
			return err
		}
	}
	if err := q.reroute(ctx, e, false); err != nil {
		return err
	}
	if err := q.holdLane(ctx, e); err != nil {
		return err
	}
	if err := q.clearHealth(ctx, e.TenantID, e.ID); err != nil {
		return err
	}
	tenant := e.TenantID
	return q.Audit(ctx, Author{Kind: "system"}, Audited{
		Tenant: &tenant, Action: "endpoint.verified", Kind: "endpoint", Object: id.Endpoint.Format(e.ID), Details: map[string]any{"from": was.Status},
	})
}

var errNotPending = fault.New(fault.NotFound, "not_pending", "This verification was superseded.")
