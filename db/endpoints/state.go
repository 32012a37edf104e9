package endpoints

import (
	"context"
	"crypto/rand"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// SetState pauses or resumes an endpoint by the rule. changed is false if the endpoint was in that state already, or is
// on its way to it.
func SetState(
	ctx context.Context,
	q *sql.Queries,
	ring *seal.Ring,
	tenant, endpointID id.UUID,
	rule func(endpoint.Status) (endpoint.Change, error),
) (e show.Endpoint, changed bool, err error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return e, false, err
	}
	row, err := q.LockEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return e, false, err
	}
	change, err := rule(endpoint.Status(row.Status))
	if err != nil {
		return e, false, err
	}
	changed = string(change.To) != row.Status
	ends := change.To == endpoint.Paused && !change.ResumeAt.IsZero()
	if changed {
		set := sql.SetEndpointStatusParams{Status: string(change.To), TenantID: tenant, ID: endpointID}
		if row, err = q.SetEndpointStatus(ctx, set); err != nil {
			return e, false, err
		}
		if err := reroute(ctx, q, row, false); err != nil {
			return e, false, err
		}
		if err := holdLane(ctx, q, row); err != nil {
			return e, false, err
		}
		if change.To == endpoint.Active {
			if err := clearHealth(ctx, q, tenant, endpointID); err != nil {
				return e, false, err
			}
		}
	}
	if ends && !change.ResumeAt.Equal(db.OrZero(row.ResumeAt)) {
		changed = true
		row, err = q.SetResumeAt(ctx, sql.SetResumeAtParams{ResumeAt: &change.ResumeAt, TenantID: tenant, ID: endpointID})
		if err != nil {
			return e, false, err
		}
	}
	asked := false
	if change.Verify {
		if asked, err = askOnce(ctx, q, row); err != nil {
			return e, false, err
		}
	}
	e, err = complete(ctx, q, ring, row)
	return e, changed || asked, err
}

// SetState is SetState with an entry in the audit log if the state changed.
func (ed Editor) SetState(
	ctx context.Context,
	q *sql.Queries,
	tenant, endpointID id.UUID,
	action string,
	rule func(endpoint.Status) (endpoint.Change, error),
) (e show.Endpoint, change endpoint.Change, changed bool, err error) {
	var from endpoint.Status
	e, changed, err = SetState(ctx, q, ed.Keys, tenant, endpointID, func(s endpoint.Status) (endpoint.Change, error) {
		var err error
		from = s
		change, err = rule(s)
		return change, err
	})
	if err != nil || !changed && change.To != endpoint.Active {
		return e, change, false, err
	}
	details := map[string]any{"from": from, "to": change.To}
	if !change.ResumeAt.IsZero() {
		details["until"] = change.ResumeAt
	}
	if !changed {
		// Who resumes an endpoint that waits is obeyed at once.
		ended, err := EndWait(ctx, q, tenant, endpointID)
		if err != nil || !ended {
			return e, change, false, err
		}
		if err := WakeLane(ctx, q, tenant, endpointID); err != nil {
			return e, change, false, err
		}
		if e, err = Read(ctx, q, ed.Keys, tenant, endpointID); err != nil {
			return e, change, false, err
		}
		details["ended_wait"] = true
	}
	return e, change, changed, ed.audit(ctx, q, tenant, endpointID, action, details)
}

// SetListening makes a listener that gets no new deliveries, since its program is away, or one that gets them. The
// caller has locked the tenant.
func SetListening(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, connected bool) error {
	set := sql.SetListeningParams{
		Status:       string(endpoint.Paused),
		StatusReason: endpoint.Disconnected,
		WhenHeld:     endpoint.Drop,
		TenantID:     tenant,
		ID:           endpointID,
	}
	if connected {
		set.Status, set.StatusReason, set.WhenHeld = string(endpoint.Active), "", endpoint.Hold
	}
	row, err := q.SetListening(ctx, set)
	if err != nil {
		return err
	}
	return reroute(ctx, q, row, false)
}

// Verify requests a verification of an endpoint in any state. It changes no state itself.
func (ed Editor) Verify(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (*show.Verification, error) {
	v, err := RequestVerification(ctx, q, tenant, endpointID)
	if err != nil {
		return nil, err
	}
	return verificationOf(v), ed.audit(ctx, q, tenant, endpointID, "endpoint.verify", nil)
}

// RequestVerification is Verify without an author.
func RequestVerification(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (sql.Verification, error) {
	e, err := q.LockEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return sql.Verification{}, err
	}
	if e.Kind == string(endpoint.Listen) {
		return sql.Verification{}, endpoint.ErrListener
	}
	if endpoint.Kind(e.Kind).Pulls() {
		return sql.Verification{}, endpoint.ErrFeed
	}
	return requestVerification(ctx, q, tenant, endpointID)
}

// askOnce requests a verification unless one was requested since the endpoint's state changed, so that two resumes send
// one. The tenant is locked.
func askOnce(ctx context.Context, q *sql.Queries, e sql.Endpoint) (bool, error) {
	n, err := q.HastenVerification(ctx, sql.HastenVerificationParams{
		TenantID:   e.TenantID,
		EndpointID: e.ID,
		Since:      e.StatusAt,
	})
	if err != nil {
		return false, err
	}
	if n > 0 {
		return false, q.NotifyJobs(ctx)
	}
	_, err = requestVerification(ctx, q, e.TenantID, e.ID)
	return err == nil, err
}

// requestVerification asks the jobs to verify an endpoint. The request supersedes one that is still pending.
func requestVerification(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (sql.Verification, error) {
	err := q.SupersedeVerifications(ctx, tenant, endpointID)
	if err != nil {
		return sql.Verification{}, err
	}
	v, err := q.InsertVerification(ctx, sql.InsertVerificationParams{
		TenantID:   tenant,
		ID:         db.NewID(),
		EndpointID: endpointID,
		Challenge:  rand.Text(),
	})
	if err != nil {
		return sql.Verification{}, err
	}
	return v, q.NotifyJobs(ctx)
}

// reroute creates a new routing version of a tenant, and records what the endpoint routes under it.
func reroute(ctx context.Context, q *sql.Queries, e sql.Endpoint, deleted bool) error {
	_, err := newRoutes(ctx, q, e, deleted)
	return err
}

// newRoutes is reroute, and returns the new version.
func newRoutes(ctx context.Context, q *sql.Queries, e sql.Endpoint, deleted bool) (version int64, err error) {
	if version, err = q.BumpRouting(ctx, e.TenantID); err != nil {
		return 0, err
	}
	return version, keepRevision(ctx, q, e, version, deleted)
}

// routeNew makes a new endpoint a part of its tenant's routes.
func routeNew(ctx context.Context, q *sql.Queries, ring *seal.Ring, e sql.Endpoint, s endpoint.Settings) error {
	version, err := newRoutes(ctx, q, e, false)
	if err != nil || s.Transformation == nil {
		return err
	}
	return keepTransformation(ctx, q, ring, e, version, s.Transformation)
}

func keepRevision(ctx context.Context, q *sql.Queries, e sql.Endpoint, version int64, deleted bool) error {
	return q.InsertEndpointRevision(ctx, sql.InsertEndpointRevisionParams{
		TenantID:       e.TenantID,
		EndpointID:     e.ID,
		RoutingVersion: version,
		EventTypes:     e.EventTypes,
		Filter:         e.Filter,
		Channels:       e.Channels,
		Status:         e.Status,
		WhenHeld:       e.WhenHeld,
		Deleted:        deleted,
	})
}

// holdLane records in an endpoint's lane that the endpoint changed, and whether workers can send from the lane now.
// Workers never send from the lane of a listener or a feed.
func holdLane(ctx context.Context, q *sql.Queries, e sql.Endpoint) error {
	hold := sql.HoldLaneParams{
		Held:       e.Status != string(endpoint.Active) || e.Kind == string(endpoint.Listen) || endpoint.Kind(e.Kind).Pulls(),
		TenantID:   e.TenantID,
		EndpointID: e.ID,
	}
	if err := q.HoldLane(ctx, hold); err != nil {
		return err
	}
	return q.NotifyWake(ctx, db.WakePayload([]id.UUID{e.ID}, true))
}

// WakeLane notifies a lane's owner that its rows changed.
func WakeLane(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) error {
	if err := q.BumpLane(ctx, tenant, endpointID); err != nil {
		return err
	}
	return q.NotifyWake(ctx, db.WakePayload([]id.UUID{endpointID}, true))
}
