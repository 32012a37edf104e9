package admin

import (
	"time"

	"github.com/a-h/templ"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/console"
)

// waitingMost is up to how many waiting deliveries are counted (queries/console.sql).
const waitingMost = 200_000

func (a *admin) overviewView(c *handlers.Call) (templ.Component, error) {
	var totals db.ConsoleTotalsRow
	var oldest []db.ConsoleOldestDueRow
	err := a.DB.Console(c.Ctx(), func(q *db.Queries) (err error) {
		if totals, err = q.ConsoleTotals(c.Ctx()); err != nil {
			return err
		}
		oldest, err = q.ConsoleOldestDue(c.Ctx(), 20)
		return err
	})
	if err != nil {
		return nil, err
	}
	v := console.OverviewView{
		Shell: c.Shell("Overview", "overview"), Tenants: totals.Tenants, Suspended: totals.Suspended, Endpoints: totals.Endpoints,
		DisabledToday: totals.DisabledToday, BreakersOpen: totals.BreakersOpen, Workers: totals.Workers, Waiting: totals.Waiting,
		WaitingMost: totals.Waiting >= waitingMost, DeadLetters: totals.DeadLetters, MailsFailed: totals.MailsFailed,
	}
	for _, o := range oldest {
		v.Oldest = append(v.Oldest, console.OldestLine{
			Tenant: o.Name, Path: tenantPath(o.ID), ReadyFor: max(a.Now().Sub(o.ReadyAt), 0).Round(time.Millisecond), Lanes: o.Lanes,
		})
	}
	return console.Overview(v), nil
}

func tenantPath(u id.UUID) string { return Root + "/tenants/" + id.Tenant.Format(u) }
