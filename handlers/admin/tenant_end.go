package admin

import (
	"errors"
	"strings"
	"time"

	"posthorn/db/maintenance"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/words"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

// exportTenant sends all data of a tenant as a file.
func (a *admin) exportTenant(c *handlers.Call) error {
	w, err := readTenantForm(c)
	if err != nil {
		return err
	}
	if w.reasonErr != nil {
		return a.refuseTenant(c, w.reasonErr, func(v *console.TenantView, fields map[string]string) {
			v.End.Export.Value, v.End.Export.Error = w.Get("reason"), fields["reason"]
		})
	}
	return gone(a.Export(c, w.tenant, w.reason))
}

// endForms are the forms that export and delete a tenant. exported is when the export that permits the deletion was
// sent, or nil.
func endForms(exported *time.Time) console.EndForms {
	return console.EndForms{
		Exported: exported,
		Export:   components.FieldProps{ID: "export-reason", Name: "reason", Label: "Reason", Required: true, MaxLength: words.MaxReason, Hint: "Recorded in the audit log, where the tenant sees it."},
		Name:     components.FieldProps{ID: "delete-name", Name: "name", Label: "Name of the tenant", Required: true, MaxLength: account.MaxName, Hint: "Enter the name to confirm."},
		Reason:   components.FieldProps{ID: "delete-reason", Name: "reason", Label: "Reason", Required: true, MaxLength: words.MaxReason, Hint: "Recorded in the platform's audit log."},
	}
}

// deleteTenant deletes a tenant after its data was exported. If two operators delete it together, one does, and the
// other learns that it is deleted.
func (a *admin) deleteTenant(c *handlers.Call) error {
	w, err := readTenantForm(c)
	if err != nil {
		return err
	}
	t, err := a.findTenant(c, w.tenant)
	if err != nil {
		return gone(err)
	}
	wrong := w.reasonErr
	if strings.TrimSpace(w.Get("name")) != t.Name {
		wrong = fault.InvalidField("name", "out_of_range", "This isn't the tenant's name.")
	}
	if wrong == nil {
		if err := maintenance.DeleteExported(c.Ctx(), a.DB, w.tenant, w.reason, c.Author()); errors.Is(err, account.ErrNoExport) {
			wrong = account.ErrNoExport
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
	return c.Done(Root+"/tenants", t.Name+" is deleted. Its data is erased within minutes.")
}
