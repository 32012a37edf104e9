package dashboard

import (
	"context"
	"net/http"
	"net/url"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/handlers/mcp"
	"posthorn/views/pages"
)

// Tester connects to the receiver of an endpoint step by step.
type Tester interface {
	Test(ctx context.Context, settings endpoint.Settings, secret string) ([]show.ConnectionStep, error)
	mcp.Poster
}

// testNewConnection tests the connection of the form of a new endpoint.
func (a *dashboard) testNewConnection(c *handlers.Call) error {
	return a.tryConnection(c, func(q *db.Tx, in url.Values) (s endpoint.Settings, secret string, err error) {
		defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.EndpointsPerTenant)
		if err != nil {
			return s, "", err
		}
		if in.Has("kind") {
			defaults.Settings.Kind = endpoint.Kind(in.Get("kind"))
		}
		return defaults.Settings, in.Get("secret"), nil
	})
}

// testConnection tests the connection of the form of an endpoint's settings.
func (a *dashboard) testConnection(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	return a.tryConnection(c, func(q *db.Tx, _ url.Values) (endpoint.Settings, string, error) {
		return endpoints.ToTest(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID)
	})
}

// tryConnection lays the form over settings, and shows how connecting with them goes. Nothing is saved.
func (a *dashboard) tryConnection(c *handlers.Call, from func(*db.Tx, url.Values) (endpoint.Settings, string, error)) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	var s endpoint.Settings
	var secret string
	err = c.Tx(func(q *db.Tx) (err error) {
		if s, secret, err = from(q, in); err != nil {
			return err
		}
		if err := s.CheckConnection(); err != nil {
			return err
		}
		if s, err = settingsOf(in, s); err != nil {
			return err
		}
		s, err = s.Check(a.Egress)
		return err
	})
	if f := fault.As(err); f != nil && len(f.Fields) > 0 {
		form, err := filled(in, nil, err)
		if err != nil {
			return err
		}
		return c.Render(http.StatusOK, pages.Connection(pages.ConnectionView{Form: form}))
	}
	if err != nil {
		return err
	}
	steps, err := a.Tester.Test(c.Ctx(), s, secret)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Connection(pages.ConnectionView{Steps: steps}))
}
