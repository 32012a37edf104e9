package api

import (
	"net/http"
	"strconv"

	"github.com/oapi-codegen/nullable"

	"posthorn/db/accounts"
	"posthorn/domain/fault"
	"posthorn/domain/health"
	"posthorn/domain/settings"
	"posthorn/handlers"
)

// parts are the given parts of a policy; null becomes nil.
func (p *HealthPolicyPatch) parts() map[string]any {
	if p == nil {
		return nil
	}
	out := map[string]any{}
	part(out, "gone", p.Gone)
	part(out, "auth_failures", p.AuthFailures)
	part(out, "auth_minutes", p.AuthMinutes)
	part(out, "unhealthy_hours", p.UnhealthyHours)
	part(out, "unhealthy_failures", p.UnhealthyFailures)
	part(out, "failures_over", p.FailuresOver)
	part(out, "failures_hours", p.FailuresHours)
	part(out, "tls_hours", p.TLSHours)
	part(out, "exhausted", p.Exhausted)
	return out
}

func part[T any](into map[string]any, name string, given nullable.Nullable[T]) {
	if !given.IsSpecified() {
		return
	}
	into[name] = nil
	if value, err := given.Get(); err == nil {
		into[name] = value
	}
}

func policyView(p health.Policy) HealthPolicy {
	return HealthPolicy{
		Gone:              p.Gone,
		AuthFailures:      p.AuthFailures,
		AuthMinutes:       p.AuthMinutes,
		UnhealthyHours:    p.UnhealthyHours,
		UnhealthyFailures: p.UnhealthyFailures,
		FailuresOver:      p.FailuresOver,
		FailuresHours:     p.FailuresHours,
		TLSHours:          p.TLSHours,
		Exhausted:         p.Exhausted,
	}
}

func platformView(all []byte) Platform {
	v := Platform{
		HealthPolicy:   policyView(health.ReadPolicy(all, nil)),
		OverdueMinutes: settings.Number(settings.OverdueMinutes, all),
		Settings:       map[string]string{},
	}
	for _, f := range settings.Fields() {
		if text, said := f.Own(all); said {
			v.Settings[f.Name] = text
		}
	}
	return v
}

func (a *api) getPlatform(c *handlers.Call) error {
	all, err := accounts.Platform(c.Ctx(), a.DB)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, platformView(all))
}

func (a *api) updatePlatform(c *handlers.Call) error {
	var in PlatformPatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	texts := in.texts()
	if in.OverdueMinutes.IsSpecified() {
		texts[settings.OverdueMinutes] = ""
	}
	if minutes, err := in.OverdueMinutes.Get(); err == nil {
		texts[settings.OverdueMinutes] = strconv.Itoa(minutes)
	}
	all, err := accounts.ChangePlatform(c.Ctx(), a.DB, accounts.PlatformChange{
		Health: in.HealthPolicy.parts(),
		Texts:  texts,
	}, c.Author())
	if e := fault.As(err); e != nil && in.OverdueMinutes.IsSpecified() && len(e.Fields) == 1 &&
		e.Fields[0].Name == settings.OverdueMinutes {
		return fault.InvalidField("overdue_minutes", e.Code, e.Detail)
	}
	if e := fault.As(err); e != nil {
		for i, f := range e.Fields {
			if _, given := texts[f.Name]; given {
				e.Fields[i].Name = "settings." + f.Name
			}
		}
	}
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, platformView(all))
}

// texts are the settings that a change names; an empty text takes one out.
func (p PlatformPatch) texts() map[string]string {
	texts := map[string]string{}
	if p.Settings == nil {
		return texts
	}
	for name, text := range *p.Settings {
		texts[name] = ""
		if text != nil {
			texts[name] = *text
		}
	}
	return texts
}
