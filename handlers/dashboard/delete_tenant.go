package dashboard

import (
	"net/http"
	"net/url"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/maintenance"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/show"
	"posthorn/domain/words"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// confirmDelete shows what deleting the tenant does, and asks for its name. Only a person who has just signed in gets
// here.
func (a *dashboard) confirmDelete(c *handlers.Call) error {
	v, err := a.deleteView(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.DeleteTenant(v))
}

func (a *dashboard) deleteView(c *handlers.Call) (v pages.DeleteTenantView, err error) {
	var has show.Holdings
	err = c.Tx(func(q *db.Tx) error {
		has, err = accounts.ReadHoldings(c.Ctx(), q, c.Actor.Tenant)
		return err
	})
	return pages.DeleteTenantView{
		Shell:    c.Shell("Delete tenant", "settings"),
		Root:     path(c, "/settings"),
		Holdings: has,
		Closed:   !c.Actor.May(access.DeleteTenant),
		Name:     components.FieldProps{Name: "name", Label: "Name of the tenant", Complete: "off", Required: true, Hint: "Enter the name exactly as shown: " + c.Actor.TenantName},
		Reason:   components.FieldProps{Name: "reason", Label: "Reason", Optional: true, MaxLength: words.MaxReason, Hint: "Recorded in the audit log."},
		ExportReason: components.FieldProps{
			ID:        "f-export-reason",
			Name:      "reason",
			Label:     "Reason",
			Required:  true,
			MaxLength: words.MaxReason,
			Hint:      "Recorded in the audit log.",
		},
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
			return c.Done("/tenants", c.Actor.TenantName+" was deleted.")
		}
		if e := fault.As(err); e == nil || e.Kind != fault.Conflict {
			return err
		}
		return a.refuseDelete(c, http.StatusConflict, form, func(v *pages.DeleteTenantView) { v.Wrong = fault.As(err).Detail })
	}
	return a.refuseDelete(c, http.StatusBadRequest, form, func(v *pages.DeleteTenantView) {
		if v.Reason.Error = wrong; !matches {
			v.Name.Error = "This isn't the tenant's name."
		}
	})
}

// exportTenant responds with the tenant's data as a file, and records the export and its reason in the audit log.
func (a *dashboard) exportTenant(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	reason, wrong := reasonOf(form, true)
	if wrong != "" {
		v, err := a.deleteView(c)
		if err != nil {
			return err
		}
		v.ExportReason.Value, v.ExportReason.Error = form.Get("reason"), wrong
		return c.Render(http.StatusBadRequest, pages.DeleteTenant(v))
	}
	return a.Export(c, c.Actor.Tenant, reason)
}

// refuseDelete shows the form as it was filled in, with its errors.
func (a *dashboard) refuseDelete(c *handlers.Call, status int, form url.Values, say func(*pages.DeleteTenantView)) error {
	v, err := a.deleteView(c)
	if err != nil {
		return err
	}
	v.Name.Value, v.Reason.Value = form.Get("name"), form.Get("reason")
	say(&v)
	return c.Render(status, pages.DeleteTenant(v))
}
