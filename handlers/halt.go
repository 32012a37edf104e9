package handlers

import (
	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/pause"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// halts add to every page of a tenant that operators have suspended it or paused its deliveries, since when, and why. A
// failed read shows nothing, so that no page fails because of it.
func (c *Call) halts() []layout.Warning {
	if c.Fragment() {
		return nil
	}
	var out []layout.Warning
	err := c.kit.sessions.db.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Tx) error {
		if c.Actor.Suspended {
			w, err := c.suspension(q)
			if err != nil {
				return err
			}
			out = append(out, w)
		}
		rows, err := q.PauseOfTenant(c.Ctx(), c.Actor.Tenant)
		for _, r := range rows {
			title := "Deliveries of this tenant are paused by the operator"
			if pause.Scope(r.Scope) == pause.Platform {
				title = "Deliveries are paused for all tenants"
			}
			out = append(out, layout.Warning{
				Title: title, Text: c.haltText("Events are accepted and kept. They are delivered when the pause ends. Paused since "+components.Stamp(r.Since)+".", r.Reason),
			})
		}
		return err
	})
	if err != nil {
		c.kit.log.Debug("pauses of a tenant not read", "error", err)
	}
	return out
}

// suspension is the warning on the pages of a suspended tenant.
func (c *Call) suspension(q *db.Tx) (layout.Warning, error) {
	w := layout.Warning{Title: "This tenant is suspended", Tone: components.Bad}
	text, reason := "Your data is read-only, and events are rejected. Deliveries wait.", ""
	last, err := q.LastOfTenant(c.Ctx(), sql.LastOfTenantParams{TenantID: &c.Actor.Tenant, Action: "tenant.suspended"})
	if db.IsMissing(err) {
		err = nil
	} else if err == nil {
		text, reason = text+" Suspended since "+components.Stamp(last.At)+".", last.Reason
	}
	w.Text = c.haltText(text, reason) + " Contact the operator of this server."
	return w, err
}

// haltText adds the reason, which operators wrote for the tenant and not for its portal links.
func (c *Call) haltText(text, reason string) string {
	if reason == "" || c.Actor.Portal != nil {
		return text
	}
	return text + " Reason: " + reason
}

// typed is the content of a rejected form, for its sender to copy. It leaves out secrets.
func (c *Call) typed(e *fault.Error) []layout.Typed {
	if e != errSuspended {
		return nil
	}
	form, err := c.Form()
	if err != nil {
		return nil
	}
	var out []layout.Typed
	for _, name := range sortedNames(form) {
		if secretFields[name] || form.Get(name) == "" || len(out) == maxTyped {
			continue
		}
		out = append(out, layout.Typed{Name: name, Value: shortenTo(maxTypedValue, form.Get(name))})
	}
	return out
}

const (
	maxTyped      = 30
	maxTypedValue = 4000 // bytes
)

// secretFields are shown on no page.
var secretFields = map[string]bool{"password": true, "secret": true, "code": true, "token": true, "headers": true, "header_value": true, "kafka_password": true}
