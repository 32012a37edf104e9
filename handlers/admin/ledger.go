package admin

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/ledger"
	"posthorn/db/maintenance"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

const (
	ledgerPath         = Root + "/books"
	platformLedgerDays = 30
	booksShown         = 200
)

func (a *admin) showLedger(c *handlers.Call) error {
	p, err := c.Page(handlers.List{
		Name:    "books",
		Rows:    booksShown,
		Whole:   true,
		Choices: []handlers.Choice{{Name: "show", Words: []string{"", "all"}}},
	})
	if err != nil {
		return err
	}
	v, err := a.ledger(c)
	if err != nil {
		return err
	}
	if v.All = p.Chosen["show"] == "all"; !v.All {
		v.Lines = slices.DeleteFunc(v.Lines, func(l show.Books) bool { return l.Difference == 0 && l.FromTables == 0 })
	}
	return c.Render(http.StatusOK, console.Ledger(v))
}

func (a *admin) ledger(c *handlers.Call) (v console.LedgerView, err error) {
	total := int64(0)
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		if v.Operators, err = accounts.OperatorNames(c.Ctx(), q); err != nil {
			return err
		}
		if v.Found, err = ledger.ListDiscrepancies(c.Ctx(), q, pageRows); err != nil {
			return err
		}
		if v.Checks, err = ledger.Reconciliations(c.Ctx(), q); err != nil {
			return err
		}
		since := a.Now().UTC().AddDate(0, 0, -platformLedgerDays)
		if v.Lines, err = ledger.ListBooks(c.Ctx(), q, nil, since, booksShown+1); err != nil {
			return err
		}
		total, err = ledger.CountBooks(c.Ctx(), q, since)
		return err
	})
	if err != nil {
		return v, err
	}
	v.Days, v.Most = platformLedgerDays, len(v.Lines) > booksShown
	v.Lines = v.Lines[:min(len(v.Lines), booksShown)]
	v.Shell = c.Shell("Books", "books")
	// Discrepancies that the job found count too, even if the sums of the table agree.
	type page struct {
		tenant id.UUID
		day    time.Time
	}
	differs := map[page]int64{}
	for _, d := range v.Found {
		if d.EndedAt == nil {
			differs[page{d.Tenant, d.Day}] += d.Amount
		}
	}
	for i := range v.Lines {
		l := &v.Lines[i]
		l.FromTables = differs[page{l.Tenant, l.Day}]
		if l.Difference != 0 {
			v.Differences++
		}
		if l.Difference != 0 || l.FromTables != 0 {
			v.Balanced--
		}
	}
	v.Total = max(total, int64(len(v.Lines)))
	v.Balanced += int(v.Total)
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
	return c.Done(ledgerPath, "Discrepancy accepted. It stays on record and raises no alert unless something else differs.")
}

func differenceChanged(c *handlers.Call) error {
	return c.Done(ledgerPath, maintenance.ErrDiscrepancyChanged.Error())
}

// refuseAcceptance shows the page again with what is wrong with the reason.
func (a *admin) refuseAcceptance(c *handlers.Call, w adminForm, day time.Time) error {
	v, err := a.ledger(c)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(v.Found, func(d show.Discrepancy) bool {
		return d.Open && d.Tenant == w.tenant && d.Day.Equal(day)
	})
	if i < 0 {
		return differenceChanged(c)
	}
	v.Rejected = i
	v.ReasonInput = components.ReasonInput{Reason: w.Get("reason"), Wrong: handlers.WrongFields(w.reasonErr)["reason"]}
	return c.Render(http.StatusBadRequest, console.Ledger(v))
}
