package api

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/fault"
	"posthorn/domain/settings"
	"posthorn/domain/show"
	"posthorn/handlers"
)

func (a *api) getTenantLimits(c *handlers.Call) error { return a.tenantLimits(c, nil) }

func (a *api) updateTenantLimits(c *handlers.Call) error {
	var in TenantLimitsPatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	change := map[string]string{}
	for _, l := range in.all() {
		if !l.given.IsSpecified() {
			continue
		}
		change[l.setting] = ""
		if n, err := l.given.Get(); err == nil {
			change[l.setting] = strconv.FormatInt(n, 10)
		}
	}
	return a.tenantLimits(c, change)
}

// givenLimit is a limit in a request, with its setting.
type givenLimit struct {
	field, setting string
	given          nullable.Nullable[int64]
}

func (in TenantLimitsPatch) all() []givenLimit {
	return []givenLimit{
		{"events_per_second", settings.EventsPerSecond, in.EventsPerSecond},
		{"events_per_month", settings.EventsPerMonth, in.EventsPerMonth},
		{"endpoints", settings.MaxEndpoints, in.Endpoints},
		{"payload_bytes", settings.MaxPayload, in.PayloadBytes},
	}
}

// tenantLimits changes a tenant's limits if any are given, and responds with the limits in effect.
func (a *api) tenantLimits(c *handlers.Call, change map[string]string) error {
	tenantID := c.PathID(handlers.TenantParam)
	var t show.Tenant
	var used accounts.Usage
	err := a.DB.Tenant(c.Ctx(), tenantID, func(q *db.Tx) (err error) {
		if len(change) > 0 {
			t, err = accounts.ChangeTenant(c.Ctx(), q, tenantID, accounts.TenantChange{Limits: change}, c.Author())
		} else {
			t, err = accounts.FindTenant(c.Ctx(), q, tenantID)
		}
		if err != nil {
			return err
		}
		used, err = accounts.ReadUsage(c.Ctx(), q, tenantID, a.Settings.EndpointsPerTenant, a.Settings.MaxPayload, a.Now())
		return err
	})
	if err != nil {
		return limitsFault(err)
	}
	own := map[string]nullable.Nullable[int64]{}
	for _, f := range settings.OfTenant() {
		own[f.Name] = nullable.NewNullNullable[int64]()
		if text, said := f.Own(t.Settings); said {
			n, _ := strconv.ParseInt(text, 10, 64) // validated: a number in its range, or absent
			own[f.Name] = nullable.NewNullableWithValue(n)
		}
	}
	return c.Answer(http.StatusOK, TenantLimits{
		Limits: limitsView(used.Limits),
		Own: OwnLimits{
			EventsPerSecond: own[settings.EventsPerSecond],
			EventsPerMonth:  own[settings.EventsPerMonth],
			Endpoints:       own[settings.MaxEndpoints],
			PayloadBytes:    own[settings.MaxPayload],
		},
	})
}

// limitsFault renames the fields of an error as the contract does.
func limitsFault(err error) error {
	e := fault.As(err)
	if e == nil || len(e.Fields) == 0 {
		return err
	}
	limits := TenantLimitsPatch{}.all()
	fields := slices.Clone(e.Fields)
	for i := range fields {
		if at := slices.IndexFunc(limits, func(l givenLimit) bool { return l.setting == fields[i].Name }); at >= 0 {
			fields[i].Name = limits[at].field
		}
	}
	return fault.InvalidFields(fields)
}
