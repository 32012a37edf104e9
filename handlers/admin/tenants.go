package admin

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
	"posthorn/domain/settings"
	"posthorn/domain/words"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

// tenants is the list with the filters of the address.
func (a *admin) tenants(c *handlers.Call) (v console.TenantsView, err error) {
	v = console.TenantsView{
		Part: strings.TrimSpace(c.Query("q")), State: word(c, "state", "active", "suspended"), Sort: word(c, "sort", "name", "waiting"),
		Name: components.FieldProps{Name: "name", Label: "Name", Required: true, MaxLength: account.MaxName},
	}
	var rows []sql.ConsoleTenantsRow
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		rows, err = q.ConsoleTenants(c.Ctx(), sql.ConsoleTenantsParams{
			Before: before(c, id.Tenant), Part: v.Part, State: v.State, Sort: v.Sort, Most: pageRows + 1,
			SilentSeconds: incidents.Silent.Seconds(),
		})
		return err
	})
	if err != nil {
		return v, err
	}
	rows, v.Next = older(c, id.Tenant, rows, func(r sql.ConsoleTenantsRow) id.UUID { return r.ID })
	if v.Sort == "waiting" {
		v.Most, v.Next = v.Next != "", ""
	}
	for _, r := range rows {
		waiting := components.Count(r.Waiting)
		if r.Waiting > 10_000 {
			waiting = components.Count(10_000) + "+"
		}
		v.Tenants = append(v.Tenants, console.TenantLine{
			Name: r.Name, Path: tenantPath(r.ID), Suspended: r.State == "suspended", Endpoints: r.Endpoints, Disabled: r.Disabled,
			Waiting: waiting, Created: r.CreatedAt,
		})
	}
	return v, nil
}

// listTenants shows the tenants. A search for an id redirects to its object.
func (a *admin) listTenants(c *handlers.Call) error {
	var missing error
	if text := strings.TrimSpace(c.Query("q")); strings.Contains(text, "_") {
		var to string
		to, missing = a.search(c, text)
		switch {
		case missing == nil:
			return c.Redirect(to)
		case !db.IsMissing(missing):
			return missing
		}
	}
	v, err := a.tenants(c)
	if err != nil {
		return err
	}
	if to := a.elsewhere(c, &v, missing); to != "" {
		return c.Redirect(to)
	}
	var made newKey
	if _, err := c.TakeOnce(tenantsPath, &made); err != nil {
		return err
	}
	v.NewKey, v.NewTenant, v.NewTenantURL = made.Text, made.Name, made.Path
	v.Shell = c.Shell("Tenants", "tenants")
	return c.Render(http.StatusOK, console.Tenants(v))
}

const tenantsPath = Root + "/tenants"

// createTenant creates a tenant. The next page shows the tenant's key once.
func (a *admin) createTenant(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	name, wrong := account.Name("name", form.Get("name"))
	if wrong != nil {
		v, err := a.tenants(c)
		if err != nil {
			return err
		}
		v.Name.Value, v.Name.Error = form.Get("name"), handlers.WrongFields(wrong)["name"]
		v.Shell = c.Shell("Tenants", "tenants")
		return c.Render(handlers.Status(wrong), console.Tenants(v))
	}
	made, text, err := accounts.CreateTenant(c.Ctx(), a.DB, accounts.NewTenant{Name: name}, c.Author())
	if err != nil {
		return err
	}
	if err := c.KeepOnce(tenantsPath, newKey{Name: made.Name, Text: text, Path: tenantPath(made.ID)}); err != nil {
		return err
	}
	return c.Redirect(tenantsPath)
}

const (
	tenantLedgerDays = 14
	tenantEndpoints  = 250
)

func (a *admin) tenant(c *handlers.Call) (v console.TenantView, err error) {
	tenantID, err := c.ID(id.Tenant, tenantParam)
	if err != nil {
		return v, err
	}
	var row sql.Tenant
	var endpoints []sql.ConsoleEndpointsRow
	var lines []console.EndpointLine
	var pages []sql.ConsoleLedgerRow
	var platform []byte
	var used accounts.Usage
	var exported *time.Time
	var suspended console.Suspension
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		if row, err = q.GetTenant(c.Ctx(), tenantID); err != nil {
			return err
		}
		if suspended, err = suspension(c, q, row); err != nil {
			return err
		}
		if endpoints, err = q.ConsoleEndpoints(c.Ctx(), sql.ConsoleEndpointsParams{
			Tenant: &tenantID,
			Most:   tenantEndpoints,
		}); err != nil {
			return err
		}
		if platform, err = q.PlatformSettings(c.Ctx()); err != nil {
			return err
		}
		if exported, err = deliveries.StandingExport(c.Ctx(), q, tenantID); err != nil {
			return err
		}
		if used, err = accounts.ReadUsage(c.Ctx(), q, tenantID, settings.Number(settings.MaxEndpoints),
			settings.Number(settings.MaxPayload), a.Now()); err != nil {
			return err
		}
		if lines, err = endpointLines(c, q, endpoints); err != nil {
			return err
		}
		pages, err = q.ConsoleLedger(c.Ctx(), sql.ConsoleLedgerParams{
			TenantID: &tenantID,
			Since:    a.Now().UTC().AddDate(0, 0, -tenantLedgerDays), Most: tenantLedgerDays + 1,
		})
		return err
	})
	if err != nil {
		return v, err
	}
	v = console.TenantView{
		ID: id.Tenant.Format(tenantID), Name: row.Name, Path: tenantPath(tenantID), Suspended: row.State == "suspended",
		Created: row.CreatedAt,
		Strict:  row.StrictTypes, Ledger: ledgerLines(pages), Suspension: suspended, Pause: pauseOfScope(pause.Tenant,
			id.Tenant.Format(tenantID)),
		Reason: components.FieldProps{Name: "reason", Label: "Reason", Required: true, MaxLength: words.MaxReason, Hint: "Recorded in the audit log, where the tenant sees it."},
		View:   viewForm(), Limits: tenantLimits(row, platform), End: endForms(exported), Usage: handlers.Usage(used, "Usage and limits. Change the limits below."),
	}
	v.Endpoints = lines
	return v, nil
}

// suspension is who suspended a tenant, why, and when, as in the audit log.
func suspension(c *handlers.Call, q *db.Tx, t sql.Tenant) (s console.Suspension, err error) {
	if t.State != "suspended" {
		return s, nil
	}
	last, err := q.LastOfTenant(c.Ctx(), sql.LastOfTenantParams{TenantID: &t.ID, Action: "tenant.suspended"})
	if db.IsMissing(err) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	names, err := operatorNames(c, q)
	return console.Suspension{By: doer(last.ActorKind, last.ActorID, names), Reason: last.Reason, At: last.At}, err
}

func (a *admin) showTenant(c *handlers.Call) error {
	v, err := a.tenant(c)
	if err != nil {
		return err
	}
	v.Shell = c.Shell(v.Name, "tenants")
	return c.Render(http.StatusOK, console.Tenant(v))
}

// refuseTenant shows a tenant's page again with errors, which mark sets.
func (a *admin) refuseTenant(c *handlers.Call, wrong error, mark func(v *console.TenantView, fields map[string]string),
) error {
	v, err := a.tenant(c)
	if err != nil {
		return gone(err)
	}
	mark(&v, handlers.WrongFields(wrong))
	v.Shell = c.Shell(v.Name, "tenants")
	return c.Render(handlers.Status(wrong), console.Tenant(v))
}

// gone explains what probably happened to an object that was not found.
func gone(err error) error {
	if fault.Is(err, fault.ErrNotFound.Code) {
		return fault.New(fault.NotFound, fault.ErrNotFound.Code, "This tenant was deleted.")
	}
	return err
}

func (a *admin) suspendTenant(c *handlers.Call) error { return a.setState(c, "suspended") }

func (a *admin) resumeTenant(c *handlers.Call) error { return a.setState(c, "active") }

// setState suspends or resumes a tenant. If two operators do it together, one does, and both see the result.
func (a *admin) setState(c *handlers.Call, state string) error {
	w, err := readTenantForm(c)
	if err != nil {
		return err
	}
	if w.reasonErr != nil {
		return a.refuseTenant(c, w.reasonErr, func(v *console.TenantView, fields map[string]string) {
			v.Reason.Value, v.Reason.Error = w.Get("reason"), fields["reason"]
		})
	}
	row, err := accounts.SetTenantState(c.Ctx(), a.DB, w.tenant, state, w.reason, c.Author())
	if err != nil {
		return gone(err)
	}
	done := "resumed"
	if state == "suspended" {
		done = "suspended"
	}
	c.Flash(fmt.Sprintf("%s is %s.", row.Name, done))
	return c.Redirect(tenantPath(w.tenant))
}
