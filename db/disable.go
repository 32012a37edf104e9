package db

import (
	"context"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// DisableByPosthorn switches an endpoint off for a reason; what follows is held, not lost. False when it was not active.
func (d *DB) DisableByPosthorn(ctx context.Context, tenant, endpoint id.UUID, reason string) (bool, error) {
	err := d.Worker(ctx, func(q *Queries) error {
		// The version first: it serialises changes of a tenant's routes.
		version, err := q.BumpRoutingVersion(ctx, tenant)
		if err != nil {
			return err
		}
		e, err := q.DisableEndpoint(ctx, DisableEndpointParams{TenantID: tenant, ID: endpoint, Reason: reason})
		if err != nil {
			return err
		}
		if err := q.HoldLane(ctx, HoldLaneParams{TenantID: tenant, EndpointID: endpoint, Held: true}); err != nil {
			return err
		}
		if err := q.InsertDisabledRevision(ctx, InsertDisabledRevisionParams{
			TenantID: tenant, EndpointID: endpoint, RoutingVersion: version, EventTypes: e.EventTypes, Filter: e.Filter, Channels: e.Channels,
		}); err != nil {
			return err
		}
		return q.InsertSystemAudit(ctx, InsertSystemAuditParams{
			ID: NewID(), TenantID: &tenant, Action: "endpoint.disabled", ObjectKind: "endpoint", ObjectID: id.Endpoint.Format(endpoint), Reason: reason,
		})
	})
	if isNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// OpenVerified makes an endpoint active that has proven itself, and opens its lane. False when it was changed meanwhile.
func (d *DB) OpenVerified(ctx context.Context, tenant, endpoint, verification id.UUID, status int32) (bool, error) {
	err := d.Worker(ctx, func(q *Queries) error {
		version, err := q.BumpRoutingVersion(ctx, tenant)
		if err != nil {
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
		e, err := q.ActivateEndpoint(ctx, ActivateEndpointParams{TenantID: tenant, ID: endpoint})
		if noRows(err) {
			return nil // active already, or paused: it has proven itself once more, and that is all
		}
		if err != nil {
			return err
		}
		if err := q.HoldLane(ctx, HoldLaneParams{TenantID: tenant, EndpointID: endpoint, Held: false}); err != nil {
			return err
		}
		if err := q.InsertActiveRevision(ctx, InsertActiveRevisionParams{
			TenantID: tenant, EndpointID: endpoint, RoutingVersion: version, EventTypes: e.EventTypes, Filter: e.Filter, Channels: e.Channels,
		}); err != nil {
			return err
		}
		if err := q.NotifyWake(ctx, WakePayload([]id.UUID{endpoint}, true)); err != nil {
			return err
		}
		return q.InsertSystemAudit(ctx, InsertSystemAuditParams{
			ID: NewID(), TenantID: &tenant, Action: "endpoint.verified", ObjectKind: "endpoint", ObjectID: id.Endpoint.Format(endpoint),
		})
	})
	if isNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

var errNotPending = fault.New(fault.NotFound, "not_pending", "This verification was superseded.")
