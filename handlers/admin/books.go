package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"posthorn/db/maintenance"
	"posthorn/db/sql"
	"posthorn/domain/books"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

const (
	booksPath        = Root + "/books"
	platformBookDays = 30
)

func (a *admin) showBooks(c *handlers.Call) error {
	v, err := a.books(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, console.Books(v))
}

func (a *admin) books(c *handlers.Call) (v console.BooksView, err error) {
	var rows []sql.ConsoleBooksRow
	var names map[string]string
	var found []sql.ListDifferencesRow
	var checks []sql.BookCheckRow
	err = a.DB.Console(c.Ctx(), func(q *sql.Queries) (err error) {
		if names, err = operatorNames(c, q); err != nil {
			return err
		}
		if found, err = q.ListDifferences(c.Ctx(), sql.ListDifferencesParams{Most: pageRows}); err != nil {
			return err
		}
		if checks, err = q.ListBookChecks(c.Ctx()); err != nil {
			return err
		}
		rows, err = q.ConsoleBooks(c.Ctx(), sql.ConsoleBooksParams{Since: a.Now().UTC().AddDate(0, 0, -platformBookDays), Most: 4*pageRows + 1})
		return err
	})
	if err != nil {
		return v, err
	}
	v = console.BooksView{Days: platformBookDays, Most: len(rows) > 4*pageRows, Lines: bookLines(rows), Found: findings(found, names)}
	v.Shell = c.Shell("Books", "books")
	for _, k := range checks {
		v.Checks = append(v.Checks, console.BookCheckLine{Name: k.Name, Day: k.Day.In(time.UTC), Pages: k.Checked, Since: k.RoundAt})
	}
	v.Lines = v.Lines[:min(len(v.Lines), 4*pageRows)]
	// What the job found counts too: a line that differs from the tables does not say that nothing differs.
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

// acceptDifference keeps a difference that can't be mended on record and has it alert nobody. Of two who do it at once one does, and both
// see who.
func (a *admin) acceptDifference(c *handlers.Call) error {
	w, err := ofTenant(c)
	if err != nil {
		return err
	}
	day, _ := time.Parse(time.DateOnly, w.Get("day")) // of what is no day there is no page
	if w.unsaid != nil {
		return a.refuseAcceptance(c, w, day)
	}
	err = maintenance.AcceptDifference(c.Ctx(), a.DB, w.of, day, w.Get("gap"), w.why, c.Author())
	switch {
	case errors.Is(err, maintenance.ErrDifferenceChanged):
		return differenceChanged(c)
	case err != nil:
		return gone(err)
	}
	c.Flash("Accepted. It stays on record and alerts nobody, until something else differs.")
	return c.Redirect(booksPath)
}

func differenceChanged(c *handlers.Call) error {
	c.Flash(maintenance.ErrDifferenceChanged.Error())
	return c.Redirect(booksPath)
}

// refuseAcceptance shows the books with what is wrong with the reason why a difference was to be accepted.
func (a *admin) refuseAcceptance(c *handlers.Call, w wish, day time.Time) error {
	v, err := a.books(c)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(v.Found, func(f console.BookFinding) bool {
		return f.Open && f.TenantPath == tenantPath(w.of) && f.Day.Equal(day)
	})
	if i < 0 {
		return differenceChanged(c)
	}
	v.Found[i].Said = components.Said{Reason: w.Get("reason"), Wrong: handlers.WrongFields(w.unsaid)["reason"]}
	return c.Render(http.StatusBadRequest, console.Books(v))
}

// findings are the pages that the check found to differ, with what it knows of the rows.
func findings(rows []sql.ListDifferencesRow, names map[string]string) []console.BookFinding {
	out := make([]console.BookFinding, len(rows))
	for i, r := range rows {
		var f books.Finding
		_ = json.Unmarshal(r.Details, &f) // written by the check alone
		out[i] = console.BookFinding{
			Tenant: r.TenantName, TenantPath: tenantPath(r.TenantID), Day: r.Day.In(time.UTC), Amount: r.Amount, Found: r.FoundAt, Ended: r.EndedAt, Finding: f,
			ID: id.Tenant.Format(r.TenantID) + "-" + r.Day.Format(time.DateOnly), Gap: r.Gap, Open: r.Open, Accept: booksPath + "/" + id.Tenant.Format(r.TenantID) + "/accept",
		}
		if r.EndedAt == nil && !r.Open {
			out[i].Accepted, out[i].By, out[i].Reason = *r.AcceptedAt, doer("operator", *r.AcceptedBy, names), *r.AcceptedReason
		}
	}
	return out
}

func bookLines(rows []sql.ConsoleBooksRow) []console.BookLine {
	lines := make([]console.BookLine, len(rows))
	for i, r := range rows {
		lines[i] = console.BookLine{
			Tenant: r.TenantName, TenantPath: tenantPath(r.TenantID), Day: r.Day.In(time.UTC), Accepted: r.Accepted, Delivered: r.Delivered, Failed: r.Failed,
			Canceled: r.Canceled, Waiting: r.Waiting, Held: r.Held, Expunged: r.Expunged, Difference: r.Difference,
		}
	}
	return lines
}
