package dashboard

import (
	"net/http"

	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/pages"
)

func (a *dashboard) pauseEndpoint(c *handlers.Call) error {
	return a.setState(c, "endpoint.pause", "The endpoint is paused. Its deliveries are held.", endpoint.Pause, nil)
}

// resumeEndpoint lets what was held be delivered, unless the member chose to drop it.
func (a *dashboard) resumeEndpoint(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	if in.Get("held") != "drop" {
		return a.setState(c, "endpoint.resume", "The endpoint is being resumed.", endpoint.Resume, nil)
	}
	return a.setState(c, "endpoint.resume", "The endpoint is being resumed, and what was held is being canceled.", endpoint.Resume, func(q *sql.Queries, u id.UUID) error {
		_, err := deliveries.DropHeld(c.Ctx(), q, c.Actor.Tenant, u, c.Author(), "")
		return err
	})
}

// setState does what a rule says about an endpoint's state, audits what it changed, and returns to the endpoint; also is what
// else belongs to the change.
func (a *dashboard) setState(c *handlers.Call, action, done string, rule func(endpoint.Status) (endpoint.Change, error), also func(*sql.Queries, id.UUID) error) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		var from endpoint.Status
		var change endpoint.Change
		_, changed, err := endpoints.SetState(c.Ctx(), q, a.Keys, c.Actor.Tenant, u, func(s endpoint.Status) (endpoint.Change, error) {
			var refused error
			from = s
			change, refused = rule(s)
			return change, refused
		})
		if err != nil || !changed {
			return err
		}
		if err := auditEndpoint(c, q, action, u, map[string]any{"from": from, "to": change.To}); err != nil || also == nil {
			return err
		}
		return also(q, u)
	})
	if err != nil {
		return err
	}
	c.Flash(done)
	return c.Redirect(endpointPath(c, u))
}

func (a *dashboard) verifyEndpoint(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		if _, err := endpoints.Verify(c.Ctx(), q, c.Actor.Tenant, u); err != nil {
			return err
		}
		return auditEndpoint(c, q, "endpoint.verify", u, nil)
	})
	if err != nil {
		return err
	}
	if c.Fragment() {
		return a.showVerification(c) // the page stays, with the secret that it may show
	}
	c.Flash("The verification is being sent.")
	return c.Redirect(endpointPath(c, u))
}

func (a *dashboard) deleteEndpoint(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		e, err := endpoints.Remove(c.Ctx(), q, c.Actor.Tenant, u)
		if err != nil {
			return err
		}
		return auditEndpoint(c, q, "endpoint.delete", u, map[string]any{"url": egress.Mask(e.URL), "status": e.Status})
	})
	if err != nil {
		return err
	}
	c.Flash("The endpoint was deleted. Deliveries that still waited for it fail permanently.")
	return c.Redirect(root(c) + "/endpoints")
}

// showEndpointSettings answers the form of an endpoint's settings. Who may not change them reads them there, the URL as lists show it.
func (a *dashboard) showEndpointSettings(c *handlers.Call) error {
	e, err := a.read(c)
	if err != nil {
		return err
	}
	names, err := a.readCatalogue(c)
	if err != nil {
		return err
	}
	v := pages.EndpointSettingsView{EndpointHead: a.head(c, e, "settings"), Form: formOf(e.Settings, names)}
	if !v.MayChange {
		v.Form.URL = v.URL
	}
	return c.Render(http.StatusOK, pages.EndpointSettings(v))
}

// saveEndpointSettings changes an endpoint. What changes nothing is not audited.
func (a *dashboard) saveEndpointSettings(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	in, err := c.Form()
	if err != nil {
		return err
	}
	err = a.changeEndpoint(c, u, func(s endpoint.Settings) (endpoint.Settings, error) {
		s, err := settingsOf(in, s)
		if err != nil {
			return s, err
		}
		return s.Check(a.Egress)
	})
	if err == nil {
		c.Flash("The settings were saved.")
		return c.Redirect(endpointPath(c, u) + "/settings")
	}
	cause := err
	e, err := a.read(c)
	if err != nil {
		return err
	}
	names, err := a.readCatalogue(c)
	if err != nil {
		return err
	}
	form, err := filled(in, names, cause)
	if err != nil {
		return err
	}
	form.Kind = string(e.Settings.Kind) // the form does not hold it: it stays
	return c.Render(handlers.Status(cause), pages.EndpointSettings(pages.EndpointSettingsView{EndpointHead: a.head(c, e, "settings"), Form: form}))
}

// changeEndpoint gives an endpoint other settings, and audits which.
func (a *dashboard) changeEndpoint(c *handlers.Call, u id.UUID, to func(endpoint.Settings) (endpoint.Settings, error)) error {
	return a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		_, err := endpoints.Edit(c.Ctx(), q, a.Keys, c.Actor.Tenant, u, to, c.Author())
		return err
	})
}
