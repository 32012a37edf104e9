package dashboard

import (
	"time"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/history"
	"posthorn/handlers"
	"posthorn/views/pages"
)

func (a *dashboard) historyRoutes() []handlers.Route {
	return []handlers.Route{page("POST", "/history/:day/restore", access.ActOnDeliveries, a.restoreDay)}
}

// restoreDay asks for a day to be brought back from storage, and returns to the page of the button.
func (a *dashboard) restoreDay(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	day, malformed := time.Parse(time.DateOnly, c.Param("day"))
	if malformed != nil {
		return fault.ErrNotFound
	}
	var row sql.HistoryDay
	if err := c.Tx(func(q *db.Tx) (err error) {
		row, err = days.Ask(c.Ctx(), q, c.Actor.Tenant, day, c.Author())
		return err
	}); err != nil {
		return err
	}
	if said := " " + day.Format("2 January 2006"); history.State(row.State) == history.Back {
		c.Flash("The history of" + said + " is back already.")
	} else {
		c.Flash("The history of" + said + " is being brought back. This can take some minutes.")
	}
	return c.Redirect(handlers.Next(form.Get("next"), path(c, "/deliveries")))
}

// storedDays are the days in storage that a list leaves out, within what its filter asks for.
func (a *dashboard) storedDays(c *handlers.Call, q *db.Tx, p handlers.Page) (pages.StoredDays, error) {
	v := pages.StoredDays{Root: path(c, ""), Restores: c.Actor.May(access.ActOnDeliveries)}
	floor, err := q.VisibleSince(c.Ctx(), c.Actor.Tenant)
	if err != nil {
		return v, err
	}
	since, until := floor, a.Now()
	if p.Since.After(since) {
		since = p.Since
	}
	if !p.Until.IsZero() && p.Until.Before(until) {
		until = p.Until.Add(-1) // the end of a filter is not part of it
	}
	found, err := q.DaysInStorage(c.Ctx(), sql.DaysInStorageParams{
		TenantID: c.Actor.Tenant, Since: since.UTC(), Until: until.UTC(), Most: history.MostDays,
	})
	for _, d := range found {
		v.Days = append(v.Days, pages.StoredDay{
			Day: d.Day, State: history.State(d.State), Delayed: d.Delayed, Events: d.Events, Deliveries: d.Deliveries,
		})
	}
	return v, err
}
