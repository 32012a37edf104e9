package endpoints

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// muteOf is the mute of an endpoint's alerts.
func muteOf(row sql.Endpoint) health.Mute {
	return health.Mute{At: db.OrZero(row.MutedAt), Until: db.OrZero(row.MutedUntil)}
}

// Mute mutes the alerts of an endpoint until a time; zero: until it recovers.
func (ed Editor) Mute(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, until, now time.Time) (show.Endpoint, error) {
	if _, err := q.LockEndpoint(ctx, tenant, endpointID); err != nil {
		return show.Endpoint{}, err
	}
	e, err := Read(ctx, q, ed.Keys, tenant, endpointID)
	if err != nil {
		return e, err
	}
	if !e.Mutable() {
		return e, endpoint.ErrListener
	}
	if err := health.CheckMute(until, e.Troubled(now), now); err != nil {
		return e, err
	}
	e.Mute = health.Mute{At: now, Until: until}
	row, err := q.MuteEndpoint(ctx, sql.MuteEndpointParams{
		MutedAt:    &now,
		MutedUntil: db.OrNull(until),
		TenantID:   tenant,
		ID:         endpointID,
	})
	if err != nil {
		return e, err
	}
	e.Mute, e.UpdatedAt = muteOf(row), row.UpdatedAt
	return e, ed.audit(ctx, q, tenant, endpointID, "endpoint.mute", map[string]any{"until": db.OrNull(until)})
}

// Unmute ends the mute of an endpoint's alerts, and records it if there was one.
func (ed Editor) Unmute(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (show.Endpoint, error) {
	was, err := q.LockEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return show.Endpoint{}, err
	}
	if was.MutedAt != nil {
		if _, err := q.MuteEndpoint(ctx, sql.MuteEndpointParams{TenantID: tenant, ID: endpointID}); err != nil {
			return show.Endpoint{}, err
		}
		if err := ed.audit(ctx, q, tenant, endpointID, "endpoint.unmute", nil); err != nil {
			return show.Endpoint{}, err
		}
	}
	return Read(ctx, q, ed.Keys, tenant, endpointID)
}

// mutedPage is how many muted endpoints are read at a time.
const mutedPage = 500

// UnmuteRecovered ends the mutes of endpoints that were muted until they recover, and have recovered.
func UnmuteRecovered(ctx context.Context, d *db.DB, now time.Time) error {
	after := id.UUID{}
	for {
		var muted []sql.MutedUntilRecoveryRow
		err := d.Worker(ctx, func(q *sql.Queries) (err error) {
			muted, err = q.MutedUntilRecovery(ctx, after, mutedPage)
			return err
		})
		if err != nil {
			return err
		}
		for _, m := range muted {
			after = m.ID
			err := d.Worker(ctx, func(q *sql.Queries) error {
				e, err := Read(ctx, q, nil, m.TenantID, m.ID)
				if err != nil || !e.Mute.Recovered(e.Counters, e.Record, now) {
					return err
				}
				return q.UnmuteRecovered(ctx, m.TenantID, m.ID)
			})
			if err != nil && !db.IsNotFound(err) {
				return err
			}
		}
		if len(muted) < mutedPage {
			return nil
		}
	}
}

// ResumeDue resumes paused endpoints whose pause ends by itself, at most `most`, and returns those that it resumed. The
// audit log says who had paused them.
func ResumeDue(ctx context.Context, d *db.DB, now time.Time, most int) (resumed []id.UUID, err error) {
	var due []sql.ResumeDueRow
	err = d.Worker(ctx, func(q *sql.Queries) (err error) {
		due, err = q.ResumeDue(ctx, now, int32(most))
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, one := range due {
		changed := false
		err := d.Worker(ctx, func(q *sql.Queries) (err error) {
			changed, err = resumePaused(ctx, q, one.TenantID, one.ID, now)
			return err
		})
		if err != nil && !db.IsNotFound(err) {
			return resumed, err
		}
		if changed {
			resumed = append(resumed, one.ID)
		}
	}
	return resumed, nil
}

// resumePaused resumes one endpoint, unless its pause was ended, or its end moved, in the meantime.
func resumePaused(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, now time.Time) (bool, error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return false, err
	}
	was, err := q.LockEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return false, err
	}
	if was.Status != string(endpoint.Paused) || was.ResumeAt == nil || was.ResumeAt.After(now) {
		return false, nil
	}
	details := map[string]any{"from": endpoint.Paused, "to": endpoint.Active, "until": was.ResumeAt}
	by, err := q.PausedBy(ctx, sql.PausedByParams{
		TenantID: &tenant,
		Since:    was.StatusAt.Add(-time.Minute),
		Object:   id.Endpoint.Format(endpointID),
	})
	switch {
	case err == nil:
		details["paused_by"] = map[string]string{"kind": by.ActorKind, "id": by.ActorID, "name": by.ActorName}
	case !db.IsNoRows(err):
		return false, err
	}
	_, changed, err := SetState(ctx, q, nil, tenant, endpointID, endpoint.Resume)
	if err != nil || !changed {
		return false, err
	}
	return true, db.Audit(ctx, q, db.Author{Kind: "system"}, db.Audited{
		Tenant:  &tenant,
		Action:  "endpoint.resume",
		Kind:    "endpoint",
		Object:  id.Endpoint.Format(endpointID),
		Reason:  "The pause ended by itself.",
		Details: details,
	})
}
