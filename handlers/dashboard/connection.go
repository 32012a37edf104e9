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
	Test(ctx context.Context, f endpoints.Facts) ([]show.ConnectionStep, error)
	handlers.Sampler
	mcp.Poster
}

// testNewConnection tests the connection of the form of a new endpoint.
func (a *dashboard) testNewConnection(c *handlers.Call) error {
	return a.tryConnection(c, func(q *db.Tx, in url.Values) (f endpoints.Facts, err error) {
		defaults, err := endpoints.Defaults(c.Ctx(), q, c.Actor.Tenant, a.EndpointsPerTenant)
		if err != nil {
			return f, err
		}
		if f.Settings = defaults.Settings; in.Has("kind") {
			f.Settings.Kind = endpoint.Kind(in.Get("kind"))
		}
		if secret := in.Get("secret"); secret != "" {
			f.Secrets = []endpoints.Secret{{Text: secret}}
		}
		return f, nil
	})
}

// testConnection tests the connection of the form of an endpoint's settings.
func (a *dashboard) testConnection(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	return a.tryConnection(c, func(q *db.Tx, _ url.Values) (endpoints.Facts, error) {
		return endpoints.ToTest(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID)
	})
}

// tryConnection lays the form over settings, and shows how connecting with them goes. Nothing is saved.
func (a *dashboard) tryConnection(c *handlers.Call, from func(*db.Tx, url.Values) (endpoints.Facts, error)) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	var f endpoints.Facts
	err = c.Tx(func(q *db.Tx) (err error) {
		if f, err = from(q, in); err != nil {
			return err
		}
		if err := f.Settings.CheckConnection(); err != nil {
			return err
		}
		if f.Settings, err = settingsOf(in, f.Settings); err != nil {
			return err
		}
		if err := presetOf(in, &f.Settings); err != nil {
			return err
		}
		if f.Settings, err = f.Settings.Check(a.Egress); err != nil {
			return err
		}
		return f.CheckSecrets()
	})
	if wrong := fault.As(err); wrong != nil && len(wrong.Fields) > 0 {
		form, err := filled(in, nil, err)
		if err != nil {
			return err
		}
		return c.Render(http.StatusOK, pages.Connection(pages.ConnectionView{Form: form}))
	}
	if err != nil {
		return err
	}
	if err := f.Complete(c.Ctx(), a.DB, a.Keys, c.Actor.Tenant, a.BaseURL); err != nil {
		return err
	}
	steps, err := a.Tester.Test(c.Ctx(), f)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Connection(pages.ConnectionView{Steps: steps}))
}
