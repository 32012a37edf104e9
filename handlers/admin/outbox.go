package admin

import (
	"strings"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/console"
)

// listRejected shows rejected events of the outbox: counts by tenant and reason, and each one. Their data belongs to
// the tenant, which lists, retries, and discards them through the API.
func (a *admin) listRejected(c *handlers.Call) error {
	e := readCrossTenant(c, id.Event)
	v := console.RejectedView{
		Root: Root + "/outbox", Tenant: e.filter.Tenant, Code: strings.TrimSpace(c.Query("code")),
		Wrong: e.wrong["tenant"],
	}
	var rows []sql.RejectedCrossTenantRow
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		reasons, err := q.RejectedByReason(c.Ctx(), pageRows)
		if err != nil {
			return err
		}
		for _, r := range reasons {
			v.Reasons = append(v.Reasons, console.RejectedReason{
				RejectedTenant: rejectedTenant(r.TenantID, r.Tenant),
				Code:           r.Code, Count: r.N, Oldest: r.Oldest, Newest: r.Newest,
			})
		}
		if v.Wrong != "" {
			return nil
		}
		rows, err = q.RejectedCrossTenant(c.Ctx(), sql.RejectedCrossTenantParams{
			Before: before(c, id.Event),
			Tenant: e.tenant, Code: v.Code, Most: pageRows + 1,
		})
		return err
	})
	if err != nil {
		return err
	}
	rows, v.Next = older(c, id.Event, rows, func(r sql.RejectedCrossTenantRow) id.UUID { return r.ID })
	for _, r := range rows {
		v.Lines = append(v.Lines, console.RejectedLine{
			RejectedTenant: rejectedTenant(r.TenantID, r.Tenant), ID: id.Event.Format(r.ID), Type: r.Type,
			Size: int(r.Size), Code: r.Code, Detail: r.Detail, Rejected: r.RejectedAt,
		})
	}
	v.Shell = c.Shell("Outbox", "outbox")
	return c.Render(statusOf(v.Wrong), console.Rejected(v))
}

// rejectedTenant is the tenant for which an event was emitted. It does not always exist.
func rejectedTenant(tenantID id.UUID, name string) console.RejectedTenant {
	t := console.RejectedTenant{TenantID: id.Tenant.Format(tenantID), Name: name}
	if name != "" {
		t.Path = tenantPath(tenantID)
	}
	return t
}
