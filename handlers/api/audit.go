package api

import (
	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

func (a *api) listAuditLog(c *handlers.Call) error {
	l := handlers.List{
		Name:    "audit-log",
		Filters: []handlers.Filter{handlers.BySince, handlers.ByUntil, handlers.ByAction},
	}
	return list(c, l, func(q *db.Tx, p handlers.Page) (show.Page[show.AuditEntry], error) {
		return db.TenantAudit(c.Ctx(), q, c.Actor.Tenant, p.Action, p.Range)
	}, encodeAuditEntry)
}

func encodeAuditEntry(e show.AuditEntry) AuditEntry {
	return AuditEntry{
		ID:         id.Audit.Format(e.ID),
		At:         Time(e.At),
		ActorKind:  AuditEntryActorKind(e.ActorKind),
		ActorID:    e.ActorID,
		ActorName:  e.ActorName,
		Action:     e.Action,
		ObjectKind: e.ObjectKind,
		ObjectID:   e.ObjectID,
		Address:    e.Address,
		Reason:     e.Reason,
		Details:    e.Details,
	}
}
