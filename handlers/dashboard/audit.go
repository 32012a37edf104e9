package dashboard

import (
	"slices"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/pages"
)

func (a *dashboard) auditRoutes() []handlers.Route {
	return []handlers.Route{page("GET", "/audit-log", access.Read, a.listAudit)}
}

// auditActions are the suggestions of the filter. Other actions can be typed.
var auditActions = []string{
	"bulk_job.start", "delivery.archive", "delivery.cancel", "delivery.replay", "delivery.retry_now", "endpoint.create", "endpoint.delete", "endpoint.disabled",
	"endpoint.pause", "endpoint.resume", "endpoint.rotate_secret", "endpoint.update", "event.emitted", "event.expunge", "event.replay", "event_type.created",
	"key.created", "key.revoked", "member.role_changed", "sign_in.succeeded", "tenant.updated", "view_as.acting", "view_as.began", "view_as.page_viewed",
}

func (a *dashboard) listAudit(c *handlers.Call) error {
	found, err := handlers.ReadList(c, handlers.List{
		Name:    "audit-log",
		Of:      id.Audit,
		Rows:    rows,
		Filters: []handlers.Filter{handlers.BySince, handlers.ByUntil, handlers.ByAction},
	}, c.Tx, func(q *db.Tx, p handlers.Page) (show.Page[show.AuditEntry], error) {
		page, err := db.TenantAudit(c.Ctx(), q, c.Actor.Tenant, p.Action, p.Range)
		if err != nil {
			return page, err
		}
		return page, db.NameAudit(c.Ctx(), q, page.Rows)
	})
	if err != nil {
		return err
	}
	if c.Actor.Portal != nil {
		for i, e := range found.Rows {
			found.Rows[i] = e.ForPortal()
		}
	}
	return c.Render(found.Status(), pages.Audit(pages.AuditView{
		Shell:   c.Shell("Audit log", "audit-log"),
		Root:    path(c, ""),
		Actions: auditActions,
		Action:  found.Given.Get("action"),
		Since:   found.Given.Get("since"),
		Until:   found.Given.Get("until"),
		Wrong:   found.Wrong,
		Rows:    found.Rows,
		Newer:   found.Newer,
		Older:   found.Older,
		Short:   found.Short,
	}))
}

// notForPortals are the kinds whose names a person with a portal link doesn't see: the provider's people and keys.
var notForPortals = []string{"member", "invitation", "key", "portal_link"}

// auditNames are the names of objects and authors, by id, as far as the person is allowed to see them.
func auditNames(c *handlers.Call, q *db.Tx, refs []db.AuditRef) (map[string]string, error) {
	if c.Actor.Portal != nil {
		refs = slices.DeleteFunc(refs, func(r db.AuditRef) bool { return slices.Contains(notForPortals, r.Kind) })
	}
	return db.AuditNames(c.Ctx(), q, refs)
}
