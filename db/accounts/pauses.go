package accounts

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/pause"
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
			p := pause.Pause{Scope: pause.Scope(r.Scope), Host: r.Host}
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
func PauseDispatch(ctx context.Context, d *db.DB, p pause.Pause, reason string, by db.Author) (row sql.DispatchPause,
	made bool, err error,
) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		pauseID := db.NewID()
		in := sql.InsertPauseParams{
			ID: pauseID, Scope: string(p.Scope), Host: p.Host, Reason: reason,
			ActorKind: by.Kind, ActorID: by.ID, CreatedAt: pauseID.Time(),
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
		if row, err = q.FindPause(ctx, sql.FindPauseParams{
			Scope: in.Scope, TenantID: in.TenantID, Host: in.Host, EndpointID: in.EndpointID,
		}); err != nil || n == 0 {
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
		return db.Audit(ctx, q, by, audited(row, "dispatch.paused", reason))
	})
	return row, made && err == nil, err
}

// ResumeDispatch ends a pause. Its deliveries continue at the rate that their endpoints allow.
func ResumeDispatch(ctx context.Context, d *db.DB, pauseID id.UUID, reason string, by db.Author) (row sql.DispatchPause,
	err error,
) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		if row, err = q.EndPause(ctx, pauseID); err != nil {
			if db.IsNoRows(err) {
				return ErrPauseEnded
			}
			return err
		}
		// An operator who resumes one endpoint or one host means it, whatever the endpoints asked for before.
		if scope := pause.Scope(row.Scope); scope == pause.Endpoint || scope == pause.Host {
			of := sql.EndWaitsPausedByParams{EndpointID: row.EndpointID, Host: row.Host}
			if err := q.EndWaitsPausedBy(ctx, of); err != nil {
				return err
			}
		}
		if err := q.NotifyPauses(ctx); err != nil {
			return err
		}
		if pause.Scope(row.Scope) == pause.Tenant && row.TenantID != nil {
			if err := postHalt(ctx, q, *row.TenantID, notice.DispatchResumed, reason); err != nil {
				return err
			}
		}
		return db.Audit(ctx, q, by, audited(row, "dispatch.resumed", reason))
	})
	return row, err
}

// ErrPauseEnded is returned for a pause that has already ended.
var ErrPauseEnded = fault.New(fault.NotFound, fault.ErrNotFound.Code, "Pause not found. It has already ended, or never existed.")

// audited is the audit log's entry for a pause. If the pause concerns one tenant, the tenant sees it too.
func audited(p sql.DispatchPause, action, reason string) db.Audited {
	a := db.Audited{
		Tenant: p.TenantID, Action: action, Kind: p.Scope, Reason: reason,
		Details: map[string]any{"pause": id.Pause.Format(p.ID)},
	}
	switch {
	case p.EndpointID != nil:
		a.Object = id.Endpoint.Format(*p.EndpointID)
	case p.TenantID != nil:
		a.Object = id.Tenant.Format(*p.TenantID)
	case p.Host != "":
		a.Object = p.Host
	}
	return a
}
