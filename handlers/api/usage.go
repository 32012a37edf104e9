package api

import (
	"net/http"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/quota"
	"posthorn/handlers"
)

func (a *api) getUsage(c *handlers.Call) error {
	if _, err := c.Page(handlers.List{Name: "usage", Whole: true}); err != nil {
		return err
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (accounts.Usage, error) {
		return accounts.ReadUsage(c.Ctx(), q, c.Actor.Tenant, a.Settings.EndpointsPerTenant, a.Settings.MaxPayload, a.Now())
	}, usageView)
}

func usageView(u accounts.Usage) Usage {
	return Usage{
		Month:           u.Month.Format("2006-01"),
		ResetsAt:        Time(quota.Resets(u.Month)),
		EventsThisMonth: u.Events,
		Endpoints:       u.Endpoints,
		Limits:          limitsView(u.Limits),
	}
}

func limitsView(l quota.Limits) Limits {
	return Limits{
		EventsPerSecond: limitOrNull(int64(l.EventsPerSecond)),
		EventsPerMonth:  limitOrNull(int64(l.EventsPerMonth)),
		Endpoints:       limitOrNull(int64(l.Endpoints)),
		PayloadBytes:    limitOrNull(int64(l.MaxPayload)),
	}
}

func limitOrNull(n int64) nullable.Nullable[int64] {
	if n == 0 {
		return nullable.NewNullNullable[int64]()
	}
	return nullable.NewNullableWithValue(n)
}
