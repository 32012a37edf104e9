package admin

import (
	"net/http"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/ledger"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/pause"
	"posthorn/domain/settings"
	"posthorn/domain/show"
	"posthorn/domain/words"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

// tenants is the list with the filters of the address.
func (a *admin) tenants(c *handlers.Call) (v console.TenantsView, err error) {
	found, err := handlers.ReadList(c, handlers.List{
		Name:    "tenants",
		Of:      id.Tenant,
		Rows:    pageRows,
		Filters: []handlers.Filter{handlers.BySearch},
		Choices: []handlers.Choice{
			{Name: "state", Words: []string{"", string(account.TenantActive), string(account.TenantSuspended)}},
			{Name: "sort", Words: []string{"", "newest", "name", "waiting"}},
		},
	}, a.console(c), func(q *db.Tx, p handlers.Page) (show.Page[show.TenantLine], error) {
		l := accounts.TenantLines{Part: p.Search, State: account.TenantState(p.Chosen["state"]), Sort: p.Chosen["sort"]}
		return l.List(c.Ctx(), q, p.Range)
	})
	v = console.TenantsView{
		Part:    found.Given.Get("q"),
		State:   found.Given.Get("state"),
		Sort:    found.Given.Get("sort"),
		Wrong:   found.Wrong,
		Tenants: found.Rows,
		Next:    found.Older,
		Name:    components.FieldProps{Name: "name", Label: "Name", Required: true, MaxLength: account.MaxName},
	}
	if v.Sort == "waiting" {
		v.Most, v.Next = v.Next != "", ""
	}
	return v, err
}

// listTenants shows the tenants. A search for an id redirects to its object.
func (a *admin) listTenants(c *handlers.Call) error {
	if text := strings.TrimSpace(c.Query("q")); strings.Contains(text, "_") {
		to, err := a.search(c, text)
		switch {
		case err == nil:
			return c.Redirect(to)
		case !db.IsMissing(err):
			return err
		}
	}
	v, err := a.tenants(c)
	if err != nil {
		return err
	}
	var made newKey
	if _, err := c.TakeOnce(tenantsPath, &made); err != nil {
		return err
	}
	v.NewKey, v.NewTenant, v.NewTenantURL = made.Text, made.Name, made.Path
	v.Shell = c.Shell("Tenants", "tenants")
	status := http.StatusOK
	if len(v.Wrong) > 0 {
		status = http.StatusBadRequest
	}
	return c.Render(status, console.Tenants(v))
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
	tenantID := c.PathID(handlers.ConsoleTenantParam)
	var t show.Tenant
	var found []show.PlatformEndpoint
	var books []show.Books
	var platform []byte
	var used accounts.Usage
	var exported *time.Time
	var suspended console.Suspension
	var activity show.Activity
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		if t, platform, err = accounts.ReadTenant(c.Ctx(), q, tenantID); err != nil {
			return err
		}
		if suspended, err = suspension(c, q, t); err != nil {
			return err
		}
		if activity, err = accounts.ReadActivity(c.Ctx(), q, tenantID); err != nil {
			return err
		}
		if found, err = endpoints.ListPlatform(c.Ctx(), q, &tenantID, "", tenantEndpoints); err != nil {
			return err
		}
		if exported, err = deliveries.StandingExport(c.Ctx(), q, tenantID); err != nil {
			return err
		}
		if used, err = accounts.ReadUsage(c.Ctx(), q, tenantID, settings.Number(settings.MaxEndpoints),
			settings.Number(settings.MaxPayload), a.Now()); err != nil {
			return err
		}
		since := a.Now().UTC().AddDate(0, 0, -tenantLedgerDays)
		books, err = ledger.ListBooks(c.Ctx(), q, &tenantID, since, tenantLedgerDays+1)
		return err
	})
	if err != nil {
		return v, err
	}
	v = console.TenantView{
		Tenant:     t,
		Path:       tenantPath(tenantID),
		Ledger:     books,
		Suspension: suspended,
		Activity:   activity,
		Open:       c.Query("open"),
		Pause:      pauseOfScope(pause.Tenant, id.Tenant.Format(tenantID)),
		Proxy:      egressOf(tenantID),
		Reason:     components.FieldProps{ID: "state-reason", Name: "reason", Label: "Reason", Required: true, MaxLength: words.MaxReason, Hint: "Recorded in the audit log, where the tenant sees it."},
		View:       viewForm(),
		Limits:     tenantLimits(t, platform),
		End:        endForms(exported),
		Usage:      handlers.Usage(used, "Usage and limits. Change the limits below."),
	}
	v.Endpoints = endpointLines(found)
	return v, nil
}

// suspension is who suspended a tenant, why, and when.
func suspension(c *handlers.Call, q *db.Tx, t show.Tenant) (s console.Suspension, err error) {
	if !t.Suspended() {
		return s, nil
	}
	last, err := accounts.Suspension(c.Ctx(), q, t.ID)
	if err != nil || last.Since.IsZero() {
		return s, err
	}
	names, err := accounts.OperatorNames(c.Ctx(), q)
	return console.Suspension{By: doer(last.ActorKind, last.ActorID, names), Reason: last.Reason, At: last.Since}, err
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

func (a *admin) suspendTenant(c *handlers.Call) error {
	return a.setState(c, account.TenantSuspended, "suspended")
}

func (a *admin) resumeTenant(c *handlers.Call) error {
	return a.setState(c, account.TenantActive, "resumed")
}

// setState suspends or resumes a tenant. If two operators do it together, one does, and both see the result.
func (a *admin) setState(c *handlers.Call, state account.TenantState, done string) error {
	w, err := readTenantForm(c)
	if err != nil {
		return err
	}
	if w.reasonErr != nil {
		return a.refuseTenant(c, w.reasonErr, func(v *console.TenantView, fields map[string]string) {
			v.Reason.Value, v.Reason.Error = w.Get("reason"), fields["reason"]
		})
	}
	t, err := accounts.SetTenantState(c.Ctx(), a.DB, w.tenant, state, w.reason, c.Author())
	if err != nil {
		return gone(err)
	}
	return c.Done(tenantPath(w.tenant), t.Name+" is "+done+".")
}
