package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
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
	ask := readListQuery(c, id.Audit)
	v := pages.AuditView{
		Root: path(c, ""), Actions: auditActions, Action: ask.filter.Get("action"), Since: ask.filter.Get("since"),
		Until: ask.filter.Get("until"),
	}
	status := http.StatusOK
	p, err := c.Page(handlers.List{Name: "audit-log", Filters: []handlers.Filter{
		handlers.BySince, handlers.ByUntil,
		handlers.ByAction,
	}})
	if err != nil {
		if v.Wrong, err = wrongQuery(err); err != nil {
			return err
		}
		status = http.StatusBadRequest
	} else if err := a.fillAudit(c, p, ask, &v); err != nil {
		return err
	}
	v.Shell = c.Shell("Audit log", "audit-log")
	return c.Render(status, pages.Audit(v))
}

func (a *dashboard) fillAudit(c *handlers.Call, p handlers.Page, ask listQuery, v *pages.AuditView) error {
	if !ask.after.IsZero() {
		p.After, v.Newer = ask.after[:], ask.at(v.Root+"/audit-log", "", "")
	}
	low, high := p.Between(time.Unix(0, 0), a.Now())
	scan := int32(rows + 1)
	if p.Action != "" {
		scan = 10_000
	}
	var found []sql.ScanAuditDownRow
	var names map[string]string
	err := c.Tx(func(q *db.Tx) (err error) {
		found, err = q.ScanAuditDown(c.Ctx(), sql.ScanAuditDownParams{
			TenantID: &c.Actor.Tenant, Low: low, High: high,
			Action: p.Action, Scan: scan, Most: rows + 1,
		})
		if err == nil {
			names, err = auditNames(c, q, auditRefs(c, found))
		}
		return err
	})
	if err != nil {
		return err
	}
	page := show.Scanned(found, rows, int(scan), func(r sql.ScanAuditDownRow) (id.UUID, int64, bool) {
		return r.ID, r.Place, r.Matches
	})
	for _, r := range page.Rows {
		row := auditRow(r, v.Root)
		row.Name = pages.ObjectName(r.ObjectKind, r.ObjectID, names, r.Details)
		if name := pages.ActorName(r.ActorKind, names[r.ActorID]); name != "" {
			row.Who = name
		} else if r.ActorName != "" && c.Actor.Portal == nil {
			row.Who = operatorName(r.ActorName)
		}
		if c.Actor.Portal != nil && r.ActorKind != "portal" {
			row.Address = "" // the provider's customers do not see where its people are
		}
		v.Rows = append(v.Rows, row)
	}
	if page.Next != nil {
		v.Older, v.Short = ask.at(v.Root+"/audit-log", "after", id.Audit.Format(id.UUID(page.Next))), len(page.Rows) < rows
	}
	return nil
}

// operatorName is an operator's name on a tenant's pages.
func operatorName(email string) string { return "Operator " + email }

// auditRefs are the objects and authors of a page of the audit log.
func auditRefs(c *handlers.Call, rows []sql.ScanAuditDownRow) (refs []db.AuditRef) {
	for _, r := range rows {
		refs = append(refs, db.AuditRef{Tenant: c.Actor.Tenant, Kind: r.ObjectKind, ID: r.ObjectID},
			db.AuditRef{Tenant: c.Actor.Tenant, Kind: r.ActorKind, ID: r.ActorID})
	}
	return refs
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

// objectPages are the paths of objects by kind.
var objectPages = map[string]string{"delivery": "/deliveries/", "event": "/events/", "endpoint": "/endpoints/", "bulk_job": "/bulk-jobs/"}

func auditRow(r sql.ScanAuditDownRow, root string) pages.AuditRow {
	v := pages.AuditRow{
		ID: id.Audit.Format(r.ID), At: r.At, Action: r.Action, Who: components.Sentence(r.ActorKind), WhoID: r.ActorID,
		ObjectKind: r.ObjectKind, Object: r.ObjectID,
		Address: r.Address, Reason: r.Reason, Details: details(r.Details),
	}
	if to := objectPages[r.ObjectKind]; to != "" && r.ObjectID != "" && r.Action != "endpoint.deleted" {
		v.Link = root + to + r.ObjectID
	}
	return v
}

// detailShown bounds how many characters of one detail a row shows.
const detailShown = 200

// details are the other fields of an entry, by name.
func details(raw json.RawMessage) []pages.Fact {
	var in map[string]any
	if json.Unmarshal(raw, &in) != nil {
		return nil
	}
	var out []pages.Fact
	for name, value := range in {
		text, ok := value.(string)
		if !ok {
			encoded, err := json.Marshal(value)
			if err != nil || value == nil {
				continue
			}
			text = string(encoded)
		}
		if text == "" {
			continue
		}
		if cut := []rune(text); len(cut) > detailShown {
			text = fmt.Sprintf("%s…", string(cut[:detailShown]))
		}
		out = append(out, pages.Fact{Label: strings.ReplaceAll(name, "_", " "), Value: text})
	}
	slices.SortFunc(out, func(a, b pages.Fact) int { return strings.Compare(a.Label, b.Label) })
	return out
}
