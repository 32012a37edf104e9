package dashboard

import (
	"time"

	"posthorn/db"
	"posthorn/db/days"
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
	at, malformed := time.Parse(time.DateOnly, c.Param("day"))
	if malformed != nil {
		return fault.ErrNotFound
	}
	var day history.Day
	err = c.Tx(func(q *db.Tx) error {
		day, err = days.Ask(c.Ctx(), q, c.Actor.Tenant, at, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	name := at.Format("2 January 2006")
	if day.State == history.Back {
		c.Flash("The history of " + name + " is back already.")
	} else {
		c.Flash("The history of " + name + " is being brought back. This can take some minutes.")
	}
	return c.Redirect(handlers.Next(form.Get("next"), path(c, "/deliveries")))
}

// storedDays are the days in storage that a list leaves out, within what its filter asks for.
func (a *dashboard) storedDays(c *handlers.Call, q *db.Tx, p handlers.Page) (pages.StoredDays, error) {
	v := pages.StoredDays{Root: path(c, ""), Restores: c.Actor.May(access.ActOnDeliveries)}
	until := a.Now()
	if !p.Until.IsZero() && p.Until.Before(until) {
		until = p.Until.Add(-1) // the end of a filter is not part of it
	}
	var err error
	v.Days, err = days.InStorage(c.Ctx(), q, c.Actor.Tenant, p.Since, until)
	return v, err
}
