package handlers

import (
	"net/http"

	"posthorn/db/accounts"
	"posthorn/domain/pause"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// halts add to every page of a tenant that operators have suspended it or paused its deliveries, since when, and why. A
// failed read shows nothing, so that no page fails because of it.
func (c *Call) halts() []layout.Warning {
	if c.Fragment() {
		return nil
	}
	halts, err := accounts.Halts(c.Ctx(), c.kit.sessions.db, c.Actor.Tenant, c.Actor.Suspended)
	if err != nil {
		c.kit.log.Debug("pauses of a tenant not read", "error", err)
	}
	var out []layout.Warning
	for _, h := range halts {
		out = append(out, c.haltWarning(h))
	}
	return out
}

func (c *Call) haltWarning(h show.Halt) layout.Warning {
	w := layout.Warning{Title: "Deliveries of this tenant are paused by the operator"}
	switch h.Scope {
	case pause.Suspended:
		w.Title, w.Tone = "This tenant is suspended", components.Bad
		text := "Your data is read-only, and events are rejected. Deliveries wait."
		if !h.Since.IsZero() {
			text += " Suspended since " + components.Stamp(h.Since) + "."
		}
		w.Text = c.haltText(text, h.Reason) + " Contact the operator of this server."
		return w
	case pause.Platform:
		w.Title = "Deliveries are paused for all tenants"
	}
	w.Text = c.haltText("Events are accepted and kept. They are delivered when the pause ends. Paused since "+components.Stamp(h.Since)+".", h.Reason)
	return w
}

// haltText adds the reason, which operators wrote for the tenant and not for its portal links.
func (c *Call) haltText(text, reason string) string {
	if reason == "" || c.Actor.Portal != nil {
		return text
	}
	return text + " Reason: " + reason
}

// keepTyped keeps the content of a rejected form for the error page, where its sender can copy it. It leaves out
// secrets.
func (c *Call) keepTyped() {
	if c.Request.Method != http.MethodGet && !c.Fragment() {
		c.typed = c.readTyped()
	}
}

func (c *Call) readTyped() []layout.Typed {
	body, err := c.kit.count(c)
	if err != nil {
		return nil
	}
	if body != nil {
		defer body.release()
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
var secretFields = map[string]bool{"password": true, "secret": true, "code": true, "token": true, "headers": true, "header_value": true, "kafka_password": true, "auth_token": true, "auth_password": true, "auth_key": true, "auth_client_secret": true, "auth_private_key": true, "tls_private_key": true}
