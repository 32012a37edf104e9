package api

import (
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/handlers"
)

func (a *api) listAuditLog(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "audit-log", Filters: []handlers.Filter{
		handlers.BySince, handlers.ByUntil,
		handlers.ByAction,
	}})
	if err != nil {
		return err
	}
	low, high := p.Between(time.Unix(0, 0), a.Now())
	ask := sql.ScanAuditDownParams{
		TenantID: &c.Actor.Tenant, Low: low, High: high, Action: p.Action, Scan: int32(p.Limit + 1),
		Most: int32(p.Limit + 1),
	}
	if p.Action != "" {
		ask.Scan = 10_000
	}
	var rows []sql.ScanAuditDownRow
	err = c.Tx(func(q *db.Tx) error {
		if !p.Ascending {
			rows, err = q.ScanAuditDown(c.Ctx(), ask)
			return err
		}
		up, err := q.ScanAuditUp(c.Ctx(), sql.ScanAuditUpParams(ask))
		for _, r := range up {
			rows = append(rows, sql.ScanAuditDownRow(r))
		}
		return err
	})
	if err != nil {
		return err
	}
	found, next := looked(rows, p, ask.Scan, func(r sql.ScanAuditDownRow) (id.UUID, int64, bool) {
		return r.ID, r.Place,
			r.Matches
	})
	return c.Answer(http.StatusOK, AuditPage{Data: views(found, auditView), NextCursor: cursorOrNull(next)})
}

func auditView(r sql.ScanAuditDownRow) AuditEntry {
	return AuditEntry{
		ID: id.Audit.Format(r.ID), At: Time(r.At), ActorKind: AuditEntryActorKind(r.ActorKind), ActorID: r.ActorID,
		ActorName: r.ActorName, Action: r.Action,
		ObjectKind: r.ObjectKind, ObjectID: r.ObjectID, Address: r.Address, Reason: r.Reason, Details: r.Details,
	}
}
