package db

import (
	"context"
	"slices"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/id"
)

// AuditRef is an object or an author in the audit log of a tenant.
type AuditRef struct {
	Tenant id.UUID
	Kind   string // as in the audit log: endpoint, member, ...
	ID     string // as people see it
}

// auditKinds are the kinds with known names, by the word of the audit log.
var auditKinds = map[string]id.Kind{
	"endpoint":    id.Endpoint,
	"event":       id.Event,
	"delivery":    id.Delivery,
	"bulk_job":    id.Job,
	"key":         id.Key,
	"member":      id.Member,
	"invitation":  id.Invitation,
	"portal_link": id.PortalLink,
	"source":      id.Source,
	"tenant":      id.Tenant,
}

// AuditNames finds what people call the objects and authors of audit log entries, by id: an endpoint's description or
// URL, an event's type, a person's name and address. A bulk job's name is its kind. Unknown ids are left out.
func AuditNames(ctx context.Context, q *sql.Queries, refs []AuditRef) (map[string]string, error) {
	names, texts := map[string]string{}, map[id.UUID]string{}
	var tenants, ids []id.UUID
	var typed sql.AuditEventTypesParams
	for _, r := range refs {
		kind, known := auditKinds[r.Kind]
		if !known {
			continue
		}
		u, err := kind.Parse(r.ID)
		if err != nil || texts[u] != "" {
			continue
		}
		texts[u] = r.ID
		if kind != id.Event && kind != id.Delivery {
			tenants = append(tenants, r.Tenant)
			ids = append(ids, u)
			continue
		}
		typed.Tenants = append(typed.Tenants, r.Tenant)
		typed.Ids = append(typed.Ids, u)
		typed.Created = append(typed.Created, u.Time())
	}
	if len(ids) > 0 {
		found, err := q.AuditNames(ctx, tenants, ids)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			names[texts[r.ID]] = r.Name
			if r.IsURL {
				names[texts[r.ID]] = egress.Mask(r.Name)
			}
		}
	}
	if len(typed.Ids) == 0 {
		return names, nil
	}
	typed.First = slices.MinFunc(typed.Created, time.Time.Compare)
	typed.Last = slices.MaxFunc(typed.Created, time.Time.Compare)
	if err := q.PlanByIndex(ctx); err != nil {
		return nil, err
	}
	found, err := q.AuditEventTypes(ctx, typed)
	for _, r := range found {
		names[texts[r.ID]] = r.Type
	}
	return names, err
}
