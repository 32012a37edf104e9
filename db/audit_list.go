package db

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// maxAuditScan bounds how many entries a page of an audit log with a filter examines.
const maxAuditScan = 10_000

// TenantAudit reads a page of a tenant's audit log; an action narrows it. A page with few entries can have a next one:
// not all entries were examined.
func TenantAudit(ctx context.Context, q *sql.Queries, tenant id.UUID, action string, r show.Range) (show.Page[show.AuditEntry], error) {
	low, high := Bounds(r)
	scan := Limit(r)
	if action != "" {
		scan = maxAuditScan
	}
	rows, err := q.ScanAudit(ctx, sql.ScanAuditParams{
		TenantID: &tenant,
		Low:      low,
		High:     high,
		Newest:   !r.Ascending,
		Action:   action,
		Scan:     scan,
		Limit:    Limit(r),
	})
	page := show.Scanned(rows, r.Limit, int(scan), func(row sql.ScanAuditRow) (id.UUID, int64, bool) {
		return row.AuditLog.ID, row.Place, row.Matches
	})
	return show.Each(page, func(row sql.ScanAuditRow) show.AuditEntry { return entryOf(row.AuditLog) }), err
}

// PlatformAudit narrows the audit log of the whole platform. Zero fields narrow nothing.
type PlatformAudit struct {
	Tenant *id.UUID
	Action string // a prefix
	Actor  string // a kind of actors
}

// List reads a page of the platform's audit log, the newest entries first, with names.
func (a PlatformAudit) List(ctx context.Context, q *sql.Queries, r show.Range) (show.Page[show.AuditEntry], error) {
	rows, err := q.ConsoleAudit(ctx, sql.ConsoleAuditParams{
		Before: r.Edge(),
		Action: a.Action,
		Actor:  a.Actor,
		Tenant: a.Tenant,
		Limit:  Limit(r),
	})
	if err != nil {
		return show.Page[show.AuditEntry]{}, err
	}
	page := show.Each(
		show.CutByID(rows, r.Limit, func(row sql.ConsoleAuditRow) id.UUID { return row.AuditLog.ID }),
		func(row sql.ConsoleAuditRow) show.AuditEntry {
			e := entryOf(row.AuditLog)
			e.TenantName = row.TenantName
			return e
		},
	)
	return page, NameAudit(ctx, q, page.Rows)
}

func entryOf(row sql.AuditLog) show.AuditEntry {
	return show.AuditEntry{
		ID:         row.ID,
		Tenant:     row.TenantID,
		At:         row.At,
		ActorKind:  row.ActorKind,
		ActorID:    row.ActorID,
		ActorName:  row.ActorName,
		Action:     row.Action,
		ObjectKind: row.ObjectKind,
		ObjectID:   row.ObjectID,
		Address:    row.Address,
		Reason:     row.Reason,
		Details:    row.Details,
	}
}

// selfNamed are the kinds of objects whose id in the audit log is their name.
var selfNamed = []string{"event_type", "page", "domain", "books"}

// NameAudit adds the present names of authors and objects.
func NameAudit(ctx context.Context, q *sql.Queries, entries []show.AuditEntry) error {
	var refs []AuditRef
	for _, e := range entries {
		if e.Tenant != nil {
			refs = append(refs, AuditRef{*e.Tenant, e.ObjectKind, e.ObjectID}, AuditRef{*e.Tenant, e.ActorKind, e.ActorID})
		}
	}
	names, err := AuditNames(ctx, q, refs)
	for i := range entries {
		e := &entries[i]
		e.Actor, e.Object = names[e.ActorID], names[e.ObjectID]
		if slices.Contains(selfNamed, e.ObjectKind) {
			e.Object = e.ObjectID
		}
		if e.Object == "" {
			var said struct{ Name, Email string }
			_ = json.Unmarshal(e.Details, &said) // an entry without a name
			e.Object = cmp.Or(said.Name, said.Email)
		}
	}
	return err
}
