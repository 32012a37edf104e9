package dashboard

import (
	"net/http"
	"net/url"
	"strings"

	"posthorn/db/maintenance"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/reason"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// confirmDelete says what deleting the tenant does, and asks for its name. Whoever gets here has just signed in.
func (a *dashboard) confirmDelete(c *handlers.Call) error {
	v, err := a.deleteView(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.DeleteTenant(v))
}

func (a *dashboard) deleteView(c *handlers.Call) (v pages.DeleteTenantView, err error) {
	var has sql.TenantHoldingsRow
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		has, err = q.TenantHoldings(c.Ctx(), c.Actor.Tenant)
		return err
	})
	return pages.DeleteTenantView{
		Shell: c.Shell("Delete the tenant", "settings"), Root: path(c, "/settings"),
		Endpoints: has.Endpoints, Keys: has.Keys, Members: has.Members, Waits: has.Waiting, Closed: !c.Actor.May(access.DeleteTenant),
		Name:   components.FieldProps{Name: "name", Label: "Name of the tenant", Complete: "off", Required: true, Hint: "Type it as it stands here: " + c.Actor.TenantName},
		Reason: components.FieldProps{Name: "reason", Label: "Reason", Optional: true, MaxLength: reason.Max, Hint: "Kept in the audit log."},
	}, err
}

func (a *dashboard) deleteTenant(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	reason, wrong := reasonOf(form, false)
	matches := strings.TrimSpace(form.Get("name")) == c.Actor.TenantName
	if wrong == "" && matches {
		err := maintenance.DeleteTenant(c.Ctx(), a.DB, c.Actor.Tenant, reason, c.Author())
		if err == nil {
			c.Flash(c.Actor.TenantName + " is deleted.")
			return c.Redirect("/tenants")
		}
		if e := fault.As(err); e == nil || e.Kind != fault.Conflict {
			return err
		}
		return a.refuseDelete(c, http.StatusConflict, form, func(v *pages.DeleteTenantView) { v.Wrong = fault.As(err).Detail })
	}
	return a.refuseDelete(c, http.StatusBadRequest, form, func(v *pages.DeleteTenantView) {
		if v.Reason.Error = wrong; !matches {
			v.Name.Error = "This is not the tenant's name."
		}
	})
}

// refuseDelete shows the form as it was filled in, with what is wrong with it.
func (a *dashboard) refuseDelete(c *handlers.Call, status int, form url.Values, say func(*pages.DeleteTenantView)) error {
	v, err := a.deleteView(c)
	if err != nil {
		return err
	}
	v.Name.Value, v.Reason.Value = form.Get("name"), form.Get("reason")
	say(&v)
	return c.Render(status, pages.DeleteTenant(v))
}
