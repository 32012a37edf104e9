package db

import (
	"context"

	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/pause"
)

// ChannelPauses tells workers that operators paused something, or let it go on.
const ChannelPauses = "posthorn_pauses"

// ReadPauses is what operators have paused, as workers follow it, with how many pauses there are. What concerns suspended tenants is in
// the set too.
func (d *DB) ReadPauses(ctx context.Context) (*pause.Set, int, error) {
	var list []pause.Pause
	asked := 0
	err := d.Worker(ctx, func(q *Queries) error {
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

// PauseDispatch keeps deliveries from being sent until somebody ends the pause; workers follow within a second. Of two who pause the
// same at once one does: made is false for the other, who gets the pause that is on.
func (d *DB) PauseDispatch(ctx context.Context, p pause.Pause, reason string, by Author) (row DispatchPause, made bool, err error) {
	err = d.Console(ctx, func(q *Queries) error {
		u := NewID()
		in := InsertPauseParams{ID: u, Scope: string(p.Scope), Host: p.Host, Reason: reason, ActorKind: by.Kind, ActorID: by.ID, CreatedAt: u.Time()}
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
		if row, err = q.FindPause(ctx, FindPauseParams{Scope: in.Scope, TenantID: in.TenantID, Host: in.Host, EndpointID: in.EndpointID}); err != nil || n == 0 {
			return err
		}
		made = true
		if err := q.NotifyPauses(ctx); err != nil {
			return err
		}
		if p.Scope == pause.Tenant {
			if err := q.postHalt(ctx, p.Tenant, notice.DispatchPaused, reason); err != nil {
				return err
			}
		}
		return q.Audit(ctx, by, row.audited("dispatch.paused", reason))
	})
	return row, made && err == nil, err
}

// ResumeDispatch ends a pause. What waited goes on at the pace that its endpoints allow.
func (d *DB) ResumeDispatch(ctx context.Context, u id.UUID, reason string, by Author) (row DispatchPause, err error) {
	err = d.Console(ctx, func(q *Queries) error {
		if row, err = q.EndPause(ctx, u); err != nil {
			if noRows(err) {
				return ErrPauseEnded
			}
			return err
		}
		if err := q.NotifyPauses(ctx); err != nil {
			return err
		}
		if pause.Scope(row.Scope) == pause.Tenant && row.TenantID != nil {
			if err := q.postHalt(ctx, *row.TenantID, notice.DispatchResumed, reason); err != nil {
				return err
			}
		}
		return q.Audit(ctx, by, row.audited("dispatch.resumed", reason))
	})
	return row, err
}

// ErrPauseEnded is the answer to who ends a pause that is over.
var ErrPauseEnded = fault.New(fault.NotFound, fault.ErrNotFound.Code, "There is no such pause: it has ended, or never was.")

// audited is a pause as the audit log tells of it: where it concerns one tenant, to that tenant too.
func (p DispatchPause) audited(action, reason string) Audited {
	a := Audited{Tenant: p.TenantID, Action: action, Kind: p.Scope, Reason: reason, Details: map[string]any{"pause": id.Pause.Format(p.ID)}}
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
