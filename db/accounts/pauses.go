package accounts

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/pause"
	"posthorn/domain/show"
)

// ChannelPauses notifies workers that operators paused or resumed something.
const ChannelPauses = "posthorn_pauses"

// ReadPauses returns what operators have paused, for workers, and how many pauses there are. The set includes suspended
// tenants.
func ReadPauses(ctx context.Context, d *db.DB) (*pause.Set, int, error) {
	var list []pause.Pause
	asked := 0
	err := d.Worker(ctx, func(q *sql.Queries) error {
		rows, err := q.DispatchPauses(ctx)
		for _, r := range rows {
			p := pause.Pause{Scope: r.Scope, Host: r.Host}
			if r.TenantID != nil {
				p.Tenant = *r.TenantID
			}
			if r.EndpointID != nil {
				p.Endpoint = *r.EndpointID
			}
			list = append(list, p)
			if !r.Suspended {
				asked++
			}
		}
		return err
	})
	return pause.NewSet(list), asked, err
}

// PauseDispatch keeps deliveries from being sent until the pause ends. Workers follow within a second. If two operators
// pause the same thing concurrently, made is false for the second, who gets the existing pause.
func PauseDispatch(ctx context.Context, d *db.DB, p pause.Pause, reason string, by db.Author) (is show.Pause, made bool, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		pauseID := db.NewID()
		in := sql.InsertPauseParams{
			ID:        pauseID,
			Scope:     p.Scope,
			Host:      p.Host,
			Reason:    reason,
			ActorKind: by.Kind,
			ActorID:   by.ID,
			CreatedAt: pauseID.Time(),
		}
		switch p.Scope {
		case pause.Tenant:
			if _, err := q.GetTenant(ctx, p.Tenant); err != nil {
				return err
			}
			in.TenantID = &p.Tenant
		case pause.Endpoint:
			tenant, err := q.TenantOfEndpoint(ctx, p.Endpoint)
			if err != nil {
				return err
			}
			in.TenantID, in.EndpointID = &tenant, &p.Endpoint
		}
		n, err := q.InsertPause(ctx, in)
		if err != nil {
			return err
		}
		row, err := q.FindPause(ctx, sql.FindPauseParams{
			Scope:      in.Scope,
			TenantID:   in.TenantID,
			Host:       in.Host,
			EndpointID: in.EndpointID,
		})
		if is = pauseOf(row); err != nil || n == 0 {
			return err
		}
		made = true
		if err := q.NotifyPauses(ctx); err != nil {
			return err
		}
		if p.Scope == pause.Tenant {
			if err := postHalt(ctx, q, p.Tenant, notice.DispatchPaused, reason); err != nil {
				return err
			}
		}
		return db.Audit(ctx, q, by, audited(is, "dispatch.paused", reason))
	})
	return is, made && err == nil, err
}

// ResumeDispatch ends a pause. Its deliveries continue at the rate that their endpoints allow.
func ResumeDispatch(ctx context.Context, d *db.DB, pauseID id.UUID, reason string, by db.Author) (was show.Pause, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		row, err := q.EndPause(ctx, pauseID)
		if db.IsNoRows(err) {
			return errPauseEnded
		}
		if was = pauseOf(row); err != nil {
			return err
		}
		// An operator who resumes one endpoint or one host means it, whatever the endpoints asked for before.
		if was.Scope == pause.Endpoint || was.Scope == pause.Host {
			if err := q.EndWaitsPausedBy(ctx, row.EndpointID, row.Host); err != nil {
				return err
			}
		}
		if err := q.NotifyPauses(ctx); err != nil {
			return err
		}
		if was.Scope == pause.Tenant {
			if err := postHalt(ctx, q, was.Tenant, notice.DispatchResumed, reason); err != nil {
				return err
			}
		}
		return db.Audit(ctx, q, by, audited(was, "dispatch.resumed", reason))
	})
	return was, err
}

// errPauseEnded is returned for a pause that has already ended.
var errPauseEnded = fault.New(fault.NotFound, fault.ErrNotFound.Code, "Pause not found. It has already ended, or never existed.")

// audited is the audit log's entry for a pause. If the pause concerns one tenant, the tenant sees it too.
func audited(p show.Pause, action, reason string) db.Audited {
	a := db.Audited{
		Action:  action,
		Kind:    string(p.Scope),
		Object:  p.Host,
		Reason:  reason,
		Details: map[string]any{"pause": id.Pause.Format(p.ID)},
	}
	if !p.Tenant.IsZero() {
		a.Tenant, a.Object = &p.Tenant, id.Tenant.Format(p.Tenant)
	}
	if !p.Endpoint.IsZero() {
		a.Object = id.Endpoint.Format(p.Endpoint)
	}
	return a
}

// pauseOf is a pause without the names of what it concerns.
func pauseOf(row sql.DispatchPause) show.Pause {
	return show.Pause{
		ID: row.ID,
		Pause: pause.Pause{
			Scope:    row.Scope,
			Tenant:   db.TenantOrZero(row.TenantID),
			Host:     row.Host,
			Endpoint: db.TenantOrZero(row.EndpointID),
		},
		Reason:    row.Reason,
		ActorKind: row.ActorKind,
		ActorID:   row.ActorID,
		CreatedAt: row.CreatedAt,
	}
}

// ListPauses reads the operators' pauses, the widest first.
func ListPauses(ctx context.Context, q *sql.Queries) ([]show.Pause, error) {
	rows, err := q.ListPauses(ctx)
	pauses := make([]show.Pause, len(rows))
	for i, row := range rows {
		pauses[i] = pauseOf(row.DispatchPause)
		pauses[i].TenantName, pauses[i].URL = row.TenantName, row.URL
	}
	return pauses, err
}

// Suspension is who suspended a tenant, why, and when, as in the audit log. It is zero if that is not known.
func Suspension(ctx context.Context, q *sql.Queries, tenant id.UUID) (show.Halt, error) {
	row, err := q.LastOfTenant(ctx, &tenant, string(notice.TenantSuspended))
	if db.IsMissing(err) {
		err = nil
	}
	return show.Halt{
		Scope:     pause.Suspended,
		ActorKind: row.ActorKind,
		ActorID:   row.ActorID,
		Reason:    row.Reason,
		Since:     row.At,
	}, err
}

// Halts are what operators stopped all deliveries of a tenant with, as its pages say.
func Halts(ctx context.Context, d *db.DB, tenant id.UUID, suspended bool) (halts []show.Halt, err error) {
	err = d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		if suspended {
			s, err := Suspension(ctx, q, tenant)
			if err != nil {
				return err
			}
			halts = append(halts, s)
		}
		rows, err := q.PauseOfTenant(ctx, tenant)
		for _, r := range rows {
			halts = append(halts, show.Halt{Scope: pause.Scope(r.Scope), Reason: r.Reason, Since: r.Since})
		}
		return err
	})
	return halts, err
}
