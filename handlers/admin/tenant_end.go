package admin

import (
	"errors"
	"strings"
	"time"

	"posthorn/db/maintenance"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/export"
	"posthorn/domain/fault"
	"posthorn/domain/reason"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

// exportTenant answers with everything of a tenant as a file.
func (a *admin) exportTenant(c *handlers.Call) error {
	w, err := ofTenant(c)
	if err != nil {
		return err
	}
	if w.unsaid != nil {
		return a.refuseTenant(c, w.unsaid, func(v *console.TenantView, fields map[string]string) {
			v.End.Export.Value, v.End.Export.Error = w.Get("reason"), fields["reason"]
		})
	}
	return gone(a.Export(c, w.of, w.why))
}

// endForms are the forms that take a tenant's data along and delete it. exported is when the export was sent that stands for it; nil:
// none does.
func endForms(exported *time.Time) console.EndForms {
	return console.EndForms{
		Exported: exported,
		Export:   components.FieldProps{ID: "export-reason", Name: "reason", Label: "Reason", Required: true, MaxLength: reason.Max, Hint: "Kept in the audit log, where the tenant sees it."},
		Name:     components.FieldProps{ID: "delete-name", Name: "name", Label: "Name of the tenant", Required: true, MaxLength: account.MaxName, Hint: "Type it, so that it is the right one."},
		Reason:   components.FieldProps{ID: "delete-reason", Name: "reason", Label: "Reason", Required: true, MaxLength: reason.Max, Hint: "Kept in the audit log of the platform."},
	}
}

// deleteTenant ends a tenant for good, once its data was taken along. Of two operators who do it at once one does; the other hears that
// it is gone.
func (a *admin) deleteTenant(c *handlers.Call) error {
	w, err := ofTenant(c)
	if err != nil {
		return err
	}
	var row sql.Tenant
	err = a.DB.Console(c.Ctx(), func(q *sql.Queries) error {
		row, err = q.GetTenant(c.Ctx(), w.of)
		return err
	})
	if err != nil {
		return gone(err)
	}
	wrong := w.unsaid
	if strings.TrimSpace(w.Get("name")) != row.Name {
		wrong = fault.InvalidField("name", "out_of_range", "This is not its name.")
	}
	if wrong == nil {
		if err := maintenance.DeleteExported(c.Ctx(), a.DB, w.of, w.why, c.Author()); errors.Is(err, export.ErrNone) {
			wrong = export.ErrNone
		} else if err != nil {
			return gone(err)
		}
	}
	if wrong != nil {
		return a.refuseTenant(c, wrong, func(v *console.TenantView, fields map[string]string) {
			v.End.Name.Value, v.End.Name.Error = w.Get("name"), fields["name"]
			v.End.Reason.Value, v.End.Reason.Error = w.Get("reason"), fields["reason"]
		})
	}
	c.Flash(row.Name + " is deleted. What it had is erased within minutes.")
	return c.Redirect(Root + "/tenants")
}
