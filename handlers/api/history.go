package api

import (
	"maps"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/domain/fault"
	"posthorn/domain/history"
	"posthorn/domain/show"
	"posthorn/handlers"
)

func (a *api) listHistory(c *handlers.Call) error {
	if _, err := c.Page(handlers.List{Name: "history", Whole: true}); err != nil {
		return err
	}
	var found show.Page[history.Day]
	err := c.Tx(func(q *db.Tx) (err error) {
		found, err = days.List(c.Ctx(), q, c.Actor.Tenant, show.Range{Limit: history.MaxDays})
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, HistoryList{Data: views(found.Rows, historyView)})
}

func (a *api) restoreHistory(c *handlers.Call) error {
	at, malformed := time.Parse(time.DateOnly, c.Param("day"))
	if err := c.NoBody(); err != nil {
		return err
	}
	if malformed != nil {
		return fault.ErrNotFound
	}
	return respond(c, http.StatusAccepted, func(q *db.Tx) (history.Day, error) {
		return days.Ask(c.Ctx(), q, c.Actor.Tenant, at, c.Author())
	}, historyView)
}

func historyView(d history.Day) HistoryDay {
	states := map[string]int64{} // never null
	maps.Copy(states, d.Counts.States)
	return HistoryDay{
		Day:         d.At.Format(time.DateOnly),
		State:       HistoryState(d.State),
		Events:      d.Counts.Events,
		Deliveries:  d.Counts.Deliveries,
		Attempts:    d.Counts.Attempts,
		ByStatus:    states,
		Bytes:       d.Bytes,
		StoredAt:    orNullTime(d.StoredAt),
		RequestedAt: orNullTime(d.AskedAt),
		Delayed:     d.Delayed,
		Expunging:   d.Expunging,
	}
}
