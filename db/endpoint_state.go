package db

import (
	"context"
	"crypto/rand"

	"posthorn/db/seal"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// SetEndpointState pauses or resumes an endpoint as the rule says; changed is false where it was so already, or is on its way.
func (q *Queries) SetEndpointState(ctx context.Context, ring *seal.Ring, tenant, u id.UUID, rule func(endpoint.Status) (endpoint.Change, error)) (e FullEndpoint, changed bool, err error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return e, false, err
	}
	row, err := q.LockEndpoint(ctx, LockEndpointParams{TenantID: tenant, ID: u})
	if err != nil {
		return e, false, err
	}
	change, err := rule(endpoint.Status(row.Status))
	if err != nil {
		return e, false, err
	}
	changed = string(change.To) != row.Status
	if changed {
		set := SetEndpointStatusParams{Status: string(change.To), TenantID: tenant, ID: u}
		if row, err = q.SetEndpointStatus(ctx, set); err != nil {
			return e, false, err
		}
		if err := q.reroute(ctx, row, false); err != nil {
			return e, false, err
		}
		if err := q.holdLane(ctx, row); err != nil {
			return e, false, err
		}
		if change.To == endpoint.Active {
			if err := q.clearHealth(ctx, tenant, u); err != nil {
				return e, false, err
			}
		}
	}
	asked := false
	if change.Verify {
		if asked, err = q.askOnce(ctx, row); err != nil {
			return e, false, err
		}
	}
	full, err := q.complete(ctx, ring, tenant, []Endpoint{row})
	if err != nil {
		return e, false, err
	}
	return full[0], changed || asked, nil
}

// VerifyEndpoint asks for a verification of an endpoint in any state; it changes no state by itself.
func (q *Queries) VerifyEndpoint(ctx context.Context, tenant, u id.UUID) (Verification, error) {
	e, err := q.LockEndpoint(ctx, LockEndpointParams{TenantID: tenant, ID: u})
	if err != nil {
		return Verification{}, err
	}
	if e.Kind == string(endpoint.Listen) {
		return Verification{}, endpoint.ErrListener
	}
	return q.requestVerification(ctx, tenant, u)
}

// askOnce asks for a verification unless that was done since the endpoint's state changed: who resumes twice resumes once. The tenant
// is locked.
func (q *Queries) askOnce(ctx context.Context, e Endpoint) (bool, error) {
	n, err := q.HastenVerification(ctx, HastenVerificationParams{TenantID: e.TenantID, EndpointID: e.ID, Since: e.StatusAt})
	if err != nil {
		return false, err
	}
	if n > 0 {
		return false, q.NotifyJobs(ctx)
	}
	_, err = q.requestVerification(ctx, e.TenantID, e.ID)
	return err == nil, err
}

// requestVerification asks the jobs to verify an endpoint; a request that is still pending is superseded.
func (q *Queries) requestVerification(ctx context.Context, tenant, u id.UUID) (Verification, error) {
	err := q.SupersedeVerifications(ctx, SupersedeVerificationsParams{TenantID: tenant, EndpointID: u})
	if err != nil {
		return Verification{}, err
	}
	v, err := q.InsertVerification(ctx, InsertVerificationParams{TenantID: tenant, ID: NewID(), EndpointID: u, Challenge: rand.Text()})
	if err != nil {
		return Verification{}, err
	}
	return v, q.NotifyJobs(ctx)
}

// reroute gives a tenant a new routing version, and remembers what the endpoint routes under it.
func (q *Queries) reroute(ctx context.Context, e Endpoint, deleted bool) error {
	version, err := q.BumpRouting(ctx, e.TenantID)
	if err != nil {
		return err
	}
	return q.keepRevision(ctx, e, version, deleted)
}

func (q *Queries) keepRevision(ctx context.Context, e Endpoint, version int64, deleted bool) error {
	return q.InsertEndpointRevision(ctx, InsertEndpointRevisionParams{
		TenantID: e.TenantID, EndpointID: e.ID, RoutingVersion: version, EventTypes: e.EventTypes, Filter: e.Filter,
		Channels: e.Channels, Status: e.Status, WhenHeld: e.WhenHeld, Deleted: deleted,
	})
}

// holdLane tells an endpoint's lane that the endpoint changed, and whether workers may send from it now: from a listener's
// they never may.
func (q *Queries) holdLane(ctx context.Context, e Endpoint) error {
	hold := HoldLaneParams{Held: e.Status != string(endpoint.Active) || e.Kind == string(endpoint.Listen), TenantID: e.TenantID, EndpointID: e.ID}
	if err := q.HoldLane(ctx, hold); err != nil {
		return err
	}
	return q.NotifyWake(ctx, WakePayload([]id.UUID{e.ID}, true))
}

// wakeLane tells a lane's owner that its rows changed.
func (q *Queries) wakeLane(ctx context.Context, tenant, u id.UUID) error {
	if err := q.BumpLane(ctx, BumpLaneParams{TenantID: tenant, EndpointID: u}); err != nil {
		return err
	}
	return q.NotifyWake(ctx, WakePayload([]id.UUID{u}, true))
}
