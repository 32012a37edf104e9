package accounts

import (
	"cmp"
	"context"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/settings"
)

// NewView describes an operator's view of a tenant's dashboard.
type NewView struct {
	Session, Operator, Tenant id.UUID
	Reason                    string
	Life                      time.Duration // whole minutes, access.MaxView at most
}

// BeginView lets an operator's session view a tenant's dashboard. The tenant's audit log records it. A view of another
// tenant by the same session ends. A deleted tenant is fault.ErrNotFound.
func BeginView(ctx context.Context, d *db.DB, v NewView, by db.Author) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		if _, err := q.GetTenant(ctx, v.Tenant); err != nil {
			return err
		}
		if _, err := endView(ctx, q, v.Session, by); err != nil && !db.IsMissing(err) {
			return err
		}
		row, err := q.SetView(ctx, sql.SetViewParams{
			SessionID:  v.Session,
			TenantID:   v.Tenant,
			OperatorID: v.Operator,
			Reason:     v.Reason,
			Minutes:    int32(min(v.Life, access.MaxView).Minutes()),
		})
		if err != nil {
			return err
		}
		return db.Audit(ctx, q, by, db.Audited{
			Tenant:  &v.Tenant,
			Action:  "view_as.began",
			Kind:    "tenant",
			Object:  id.Tenant.Format(v.Tenant),
			Reason:  v.Reason,
			Details: map[string]any{"until": row.ExpiresAt.UTC()},
		})
	})
}

// EndView ends the view of an operator's session and returns its tenant. If there is none, or it has expired, it
// returns fault.ErrNotFound.
func EndView(ctx context.Context, d *db.DB, session id.UUID, by db.Author) (id.UUID, error) {
	return db.Read(ctx, d.Console, func(q *sql.Queries) (id.UUID, error) { return endView(ctx, q, session, by) })
}

func endView(ctx context.Context, q *sql.Queries, session id.UUID, by db.Author) (id.UUID, error) {
	row, err := q.LockView(ctx, session)
	if err != nil {
		return id.UUID{}, err
	}
	if err := q.DeleteView(ctx, session); err != nil {
		return id.UUID{}, err
	}
	if !row.Live {
		return id.UUID{}, fault.ErrNotFound
	}
	return row.TenantID, db.Audit(ctx, q, by, db.Audited{
		Tenant: &row.TenantID,
		Action: "view_as.ended",
		Kind:   "tenant",
		Object: id.Tenant.Format(row.TenantID),
	})
}

var errLookOnly = fault.New(fault.Forbidden, "view_as_look_only", "Operators have read-only access on this server: acting in tenants is turned off in the platform's settings.")

// ActInView allows changes during a view. The reason becomes the view's reason, so every change names it in the audit
// log. If the view allows changes already, nothing changes. If there is no view, or it has expired, ActInView returns
// fault.ErrNotFound.
func ActInView(ctx context.Context, d *db.DB, session, tenant id.UUID, reason string, by db.Author) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		if _, err := q.FindView(ctx, session, tenant); err != nil {
			return err
		}
		if platform, err := q.PlatformSettings(ctx); err != nil {
			return err
		} else if !settings.On(settings.ActAsOperator, platform) {
			return errLookOnly
		}
		n, err := q.ActInView(ctx, sql.ActInViewParams{SessionID: session, TenantID: tenant, Reason: reason})
		if err != nil || n == 0 {
			return err
		}
		return db.Audit(ctx, q, by, db.Audited{
			Tenant: &tenant,
			Action: "view_as.acting",
			Kind:   "tenant",
			Object: id.Tenant.Format(tenant),
			Reason: reason,
		})
	})
}

// SeenPage is a request of an operator who views a dashboard.
type SeenPage struct {
	Session, Tenant id.UUID
	Path, Query     string // within the tenant's pages
	Acts            bool   // a form was sent rather than a page opened
	Part            bool   // a page asks for a part of itself: one entry an hour
}

// pageOfPart is the page that a part belongs to: a page that renews a part of itself is one page view.
func pageOfPart(path string) string {
	for _, part := range []string{"/live", "/verification"} {
		path = strings.TrimSuffix(path, part)
	}
	return cmp.Or(path, "/")
}

// SeePage records in the tenant's audit log what an operator is about to see or do. The page can be shown only after
// this has committed. If the session has no view of this tenant, or the view has expired, SeePage returns
// fault.ErrNotFound.
func SeePage(ctx context.Context, d *db.DB, p SeenPage, by db.Author) (v account.View, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		row, err := q.FindView(ctx, p.Session, p.Tenant)
		if err != nil {
			return err
		}
		v = account.View{
			TenantName:  row.TenantName,
			TenantState: row.TenantState,
			Until:       row.OperatorView.ExpiresAt,
			Reason:      row.OperatorView.Reason,
			Acting:      row.OperatorView.Acting,
		}
		action := "view_as.page_viewed"
		if p.Acts {
			action = "view_as.form_sent"
		}
		if p.Part && !p.Acts {
			p.Path = pageOfPart(p.Path)
			seen, err := q.SeenLately(ctx, sql.SeenLatelyParams{
				TenantID: &p.Tenant,
				ActorID:  by.ID,
				Action:   action,
				ObjectID: p.Path,
			})
			if err != nil || seen {
				return err
			}
		}
		what := db.Audited{Tenant: &p.Tenant, Action: action, Kind: "page", Object: p.Path, Reason: v.Reason}
		if p.Query != "" {
			what.Details = map[string]string{"query": p.Query}
		}
		return db.Audit(ctx, q, by, what)
	})
	return v, err
}
