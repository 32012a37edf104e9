package api

import (
	"net/http"
	"strconv"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/health"
	"posthorn/domain/id"
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

func (a *api) listEgressProxies(c *handlers.Call) error {
	if _, err := c.Page(handlers.List{Name: "egress-proxies", Whole: true}); err != nil {
		return err
	}
	var list []egress.ProxyStatus
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		list, err = endpoints.Proxies(c.Ctx(), q)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, EgressProxyList{Data: views(list, encodeEgressProxy)})
}

func (a *api) setEgressProxy(c *handlers.Call) error {
	owner, err := egress.ParseProxyOwner("owner", c.Param("owner"))
	if err != nil {
		return err
	}
	var in EgressProxyInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	p := egress.Proxy{Owner: owner, Type: egress.ProxyType(in.Type)}
	set(&p.Address, in.Address)
	set(&p.Username, in.Username)
	set(&p.Password, in.Password)
	set(&p.ResolveNames, in.ResolveNames)
	set(&p.Published, in.PublishedAddresses)
	var is egress.ProxyStatus
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		is, err = a.editor(c).SetProxy(c.Ctx(), q, a.Egress, p)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, encodeEgressProxy(is))
}

func (a *api) removeEgressProxy(c *handlers.Call) error {
	owner, err := egress.ParseProxyOwner("owner", c.Param("owner"))
	if err != nil {
		return err
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error { return a.editor(c).RemoveProxy(c.Ctx(), q, owner) })
	if err != nil {
		return err
	}
	return c.AnswerNothing()
}

func encodeEgressProxy(p egress.ProxyStatus) EgressProxy {
	v := EgressProxy{
		TenantID:           idOrNull(id.Tenant, p.Owner),
		Type:               EgressProxyType(p.Type),
		Address:            p.Address,
		Username:           p.Username,
		HasPassword:        p.HasPassword,
		ResolveNames:       p.ResolveNames,
		PublishedAddresses: p.Published,
		FailedAt:           orNullTime(p.FailedAt),
		Failure:            orNullText(p.Failure),
		ChangedAt:          Time(p.ChangedAt),
	}
	if v.PublishedAddresses == nil {
		v.PublishedAddresses = []string{}
	}
	return v
}
