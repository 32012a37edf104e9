package handlers

import (
	"net/http"
	"net/url"

	"posthorn/db/accounts"
	"posthorn/domain/endpoint"
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

// isSecret reports whether what is typed into a form's field of a name is shown to nobody.
func isSecret(name string) bool { return secretFields[name] || endpoint.IsConnectionSecret(name) }

// again is the button that sends a form again whose page failed for a moment, so that nothing has to be typed twice. A
// form with a secret gets none: its page would hold the secret.
func (c *Call) again(status int) *layout.Act {
	if status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests || c.Request.Method != http.MethodPost || c.Fragment() {
		return nil
	}
	form, ok := c.sent()
	act := &layout.Act{Action: c.Request.URL.RequestURI(), Label: "Send again"}
	for _, name := range sortedNames(form) {
		for _, value := range form[name] {
			if isSecret(name) && value != "" {
				return nil
			}
			act.Again = append(act.Again, layout.Typed{Name: name, Value: value})
		}
	}
	if !ok {
		return nil
	}
	return act
}

// sent is the form of the request, if it can be read.
func (c *Call) sent() (url.Values, bool) {
	body, err := c.kit.count(c)
	if err != nil {
		return nil, false
	}
	if body != nil {
		defer body.release()
	}
	form, err := c.Form()
	return form, err == nil
}

func (c *Call) readTyped() []layout.Typed {
	form, _ := c.sent()
	var out []layout.Typed
	for _, name := range sortedNames(form) {
		if isSecret(name) || form.Get(name) == "" || len(out) == maxTyped {
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

// secretFields are shown on no page, as secrets of connections.
var secretFields = map[string]bool{
	"password":           true,
	"secret":             true,
	"client_secret":      true,
	"code":               true,
	"token":              true,
	"headers":            true,
	"header_value":       true,
	"auth_token":         true,
	"auth_password":      true,
	"auth_key":           true,
	"auth_client_secret": true,
	"auth_private_key":   true,
	"tls_private_key":    true,
}
