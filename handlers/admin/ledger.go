package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/maintenance"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/reconcile"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

const (
	ledgerPath         = Root + "/books"
	platformLedgerDays = 30
)

func (a *admin) showLedger(c *handlers.Call) error {
	v, err := a.ledger(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, console.Ledger(v))
}

func (a *admin) ledger(c *handlers.Call) (v console.LedgerView, err error) {
	var rows []sql.ConsoleLedgerRow
	var names map[string]string
	var found []sql.ListDiscrepanciesRow
	var checks []sql.ReconcileRow
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		if names, err = operatorNames(c, q); err != nil {
			return err
		}
		if found, err = q.ListDiscrepancies(c.Ctx(), sql.ListDiscrepanciesParams{Most: pageRows}); err != nil {
			return err
		}
		if checks, err = q.ListReconcileProgress(c.Ctx()); err != nil {
			return err
		}
		rows, err = q.ConsoleLedger(c.Ctx(), sql.ConsoleLedgerParams{Since: a.Now().UTC().AddDate(0, 0,
			-platformLedgerDays), Most: 4*pageRows + 1})
		return err
	})
	if err != nil {
		return v, err
	}
	v = console.LedgerView{
		Days: platformLedgerDays, Most: len(rows) > 4*pageRows, Lines: ledgerLines(rows), Found: findings(found, names),
	}
	v.Shell = c.Shell("Books", "books")
	for _, k := range checks {
		v.Checks = append(v.Checks, console.ReconcileLine{
			Name: k.Name, Day: k.Day.In(time.UTC), Pages: k.Checked, Since: k.RoundAt,
		})
	}
	v.Lines = v.Lines[:min(len(v.Lines), 4*pageRows)]
	// Discrepancies that the job found count too, even if the sums of the table agree.
	differs := map[string]int64{}
	for _, f := range v.Found {
		if f.Ended == nil {
			differs[f.TenantPath+f.Day.Format(time.DateOnly)] += f.Amount
		}
	}
	for i := range v.Lines {
		l := &v.Lines[i]
		l.FromTables = differs[l.TenantPath+l.Day.Format(time.DateOnly)]
		if l.Difference != 0 {
			v.Differences++
		}
	}
	return v, nil
}

// acceptDiscrepancy records that a discrepancy can't be fixed, so that it alerts nobody. If two operators accept it
// together, one does, and both see who.
func (a *admin) acceptDiscrepancy(c *handlers.Call) error {
	w, err := readTenantForm(c)
	if err != nil {
		return err
	}
	day, _ := time.Parse(time.DateOnly, w.Get("day")) // a malformed day has no page
	if w.reasonErr != nil {
		return a.refuseAcceptance(c, w, day)
	}
	err = maintenance.AcceptDiscrepancy(c.Ctx(), a.DB, w.tenant, day, w.Get("gap"), c.Author().Because(w.reason))
	switch {
	case errors.Is(err, maintenance.ErrDiscrepancyChanged):
		return differenceChanged(c)
	case err != nil:
		return gone(err)
	}
	c.Flash("Discrepancy accepted. It stays on record and raises no alert unless something else differs.")
	return c.Redirect(ledgerPath)
}

func differenceChanged(c *handlers.Call) error {
	c.Flash(maintenance.ErrDiscrepancyChanged.Error())
	return c.Redirect(ledgerPath)
}

// refuseAcceptance shows the page again with what is wrong with the reason.
func (a *admin) refuseAcceptance(c *handlers.Call, w adminForm, day time.Time) error {
	v, err := a.ledger(c)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(v.Found, func(f console.Discrepancy) bool {
		return f.Open && f.TenantPath == tenantPath(w.tenant) && f.Day.Equal(day)
	})
	if i < 0 {
		return differenceChanged(c)
	}
	v.Found[i].ReasonInput = components.ReasonInput{Reason: w.Get("reason"), Wrong: handlers.WrongFields(w.reasonErr)["reason"]}
	return c.Render(http.StatusBadRequest, console.Ledger(v))
}

// findings are the discrepancies that the job found, with the rows that it recorded.
func findings(rows []sql.ListDiscrepanciesRow, names map[string]string) []console.Discrepancy {
	out := make([]console.Discrepancy, len(rows))
	for i, r := range rows {
		var f reconcile.Finding
		_ = json.Unmarshal(r.Details, &f) // written by the job alone
		out[i] = console.Discrepancy{
			Tenant: r.TenantName, TenantPath: tenantPath(r.TenantID), Day: r.Day.In(time.UTC), Amount: r.Amount,
			Found: r.FoundAt, Ended: r.EndedAt, Finding: f,
			ID: id.Tenant.Format(r.TenantID) + "-" + r.Day.Format(time.DateOnly), Gap: r.Gap, Open: r.Open,
			Accept: ledgerPath + "/" + id.Tenant.Format(r.TenantID) + "/accept",
		}
		if r.EndedAt == nil && !r.Open {
			out[i].Accepted, out[i].By, out[i].Reason = *r.AcceptedAt, doer("operator", *r.AcceptedBy, names), *r.AcceptedReason
		}
	}
	return out
}

func ledgerLines(rows []sql.ConsoleLedgerRow) []console.LedgerLine {
	lines := make([]console.LedgerLine, len(rows))
	for i, r := range rows {
		lines[i] = console.LedgerLine{
			Tenant: r.TenantName, TenantPath: tenantPath(r.TenantID), Day: r.Day.In(time.UTC), Accepted: r.Accepted,
			Delivered: r.Delivered, Failed: r.Failed,
			Canceled: r.Canceled, Waiting: r.Waiting, Held: r.Held, Expunged: r.Expunged, Difference: r.Difference,
		}
	}
	return lines
}
