package admin

import (
	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/sources"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/console"
)

// listRejected shows rejected events of the outbox: counts by tenant and reason, and each one. Their data belongs to
// the tenant, which lists, retries, and discards them through the API.
func (a *admin) listRejected(c *handlers.Call) error {
	p, err := c.Page(handlers.List{
		Name:    "outbox-rejected",
		Rows:    pageRows,
		Of:      id.Event,
		Filters: []handlers.Filter{handlers.ByTenant, handlers.ByCode},
	})
	v := console.RejectedView{Root: Root + "/outbox", Tenant: p.Given.Get("tenant"), Code: p.Given.Get("code")}
	if v.Wrong, err = handlers.FormErrors(err); err != nil {
		return err
	}
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		var err error
		if v.Sources, err = sources.Counts(c.Ctx(), q); err != nil {
			return err
		}
		if v.Reasons, err = deliveries.RejectedReasons(c.Ctx(), q, pageRows); err != nil || v.Wrong != nil {
			return err
		}
		found, err := handlers.ReadPage(p, nil, func(r show.Range) (show.Page[show.Rejected], error) {
			return deliveries.ListRejected(c.Ctx(), q, deliveries.RejectedFilter{Tenant: p.Tenant, Code: p.Code}, r)
		})
		v.Rows, v.Newer, v.Older = found.Rows, found.Newer, found.Older
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Outbox", "outbox")
	return c.Render(filterStatus(v.Wrong), console.Rejected(v))
}
