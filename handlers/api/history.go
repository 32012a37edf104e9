package api

import (
	"encoding/json"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/history"
	"posthorn/handlers"
)

func (a *api) listHistory(c *handlers.Call) error {
	if _, err := c.Page(handlers.List{Name: "history", Whole: true}); err != nil {
		return err
	}
	out := HistoryList{Data: []HistoryDay{}}
	if err := c.Tx(func(q *db.Tx) error {
		rows, err := q.ListHistory(c.Ctx(), sql.ListHistoryParams{
			TenantID: c.Actor.Tenant, Before: a.Now().AddDate(1, 0, 0), Most: history.MostDays,
		})
		for _, r := range rows {
			out.Data = append(out.Data, historyView(r))
		}
		return err
	}); err != nil {
		return err
	}
	return c.Answer(http.StatusOK, out)
}

func (a *api) restoreHistory(c *handlers.Call) error {
	day, malformed := time.Parse(time.DateOnly, c.Param("day"))
	if err := c.NoBody(); err != nil {
		return err
	}
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
	return c.Answer(http.StatusAccepted, historyView(row))
}

func historyView(r sql.HistoryDay) HistoryDay {
	var counts history.Counts
	_ = json.Unmarshal(r.Counts, &counts) // written by Posthorn
	if counts.States == nil {
		counts.States = map[string]int64{}
	}
	return HistoryDay{
		Day: r.Day.Format(time.DateOnly), State: HistoryState(r.State), Events: counts.Events,
		Deliveries: counts.Deliveries, Attempts: counts.Attempts,
		ByStatus: counts.States, Bytes: r.Bytes, StoredAt: orNullAt(r.StoredAt), RequestedAt: orNullAt(r.BackAt),
		Delayed: r.FailedAt != nil,
	}
}
