package dashboard

import (
	"net/url"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/feeds"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) feedRoutes() []handlers.Route {
	return []handlers.Route{
		page("POST", "/endpoints/:endpoint_id/consumers", access.ChangeEndpoints, a.createConsumer),
		page("POST", "/endpoints/:endpoint_id/consumers/:consumer/rewind", access.ChangeEndpoints, a.rewindConsumer),
		page("POST", "/endpoints/:endpoint_id/consumers/:consumer/rotate", access.ChangeEndpoints, a.rotateConsumer),
		page("POST", "/endpoints/:endpoint_id/consumers/:consumer/delete", access.ChangeEndpoints, a.deleteConsumer),
	}
}

// shownOnce is what a session keeps until the page of a feed shows it.
type shownOnce struct{ Secret, Public, Token, Of string }

// showConsumers is the first page of a feed.
func (a *dashboard) showConsumers(c *handlers.Call, e show.Endpoint, status int, form url.Values, wrong map[string]string) error {
	v := pages.ConsumersView{
		EndpointHead: a.head(c, e, "overview"),
		URL:          a.BaseURL + "/api/v1/feeds/" + id.Endpoint.Format(e.ID),
		Name:         form.Get("name"),
		Wrong:        wrong,
	}
	err := c.Tx(func(q *db.Tx) (err error) {
		v.Rows, err = a.consumers(c, e.ID).List(c.Ctx(), q)
		return err
	})
	if err != nil {
		return err
	}
	var once shownOnce
	if _, err := c.TakeOnce(endpointPath(c, e.ID), &once); err != nil {
		return err
	}
	v.Secret, v.Public, v.Token, v.Of = once.Secret, once.Public, once.Token, once.Of
	return c.Render(status, pages.Consumers(v))
}

func (a *dashboard) consumers(c *handlers.Call, endpointID id.UUID) feeds.Consumers {
	return feeds.Consumers{Tenant: c.Actor.Tenant, Feed: endpointID, By: c.Author(), Now: a.Now()}
}

// startOf reads where a consumer begins.
func startOf(form url.Values) (feed.Start, error) {
	if form.Get("start") != components.OtherTime {
		return feed.ParseStart(form.Get("start"))
	}
	at, err := time.Parse("2006-01-02T15:04:05", form.Get("at"))
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04", form.Get("at"))
	}
	if err != nil {
		return feed.ParseStart(components.OtherTime)
	}
	return feed.Start{At: at}, nil
}

// createConsumer creates a consumer. The next page shows its token once.
func (a *dashboard) createConsumer(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	endpointID := c.PathID("endpoint_id")
	var e show.Endpoint
	var token string
	start, err := startOf(form)
	if err == nil {
		err = c.Tx(func(q *db.Tx) error {
			_, token, err = a.consumers(c, endpointID).Create(c.Ctx(), q, form.Get("name"), start)
			return err
		})
	}
	if f := fault.As(err); f != nil && (f.Kind == fault.Invalid || f.Kind == fault.Conflict) {
		wrong := handlers.WrongFields(err)
		if f.Kind == fault.Conflict {
			wrong = map[string]string{"name": f.Detail}
		}
		if e, err = a.read(c); err != nil {
			return err
		}
		return a.showConsumers(c, e, handlers.Status(f), form, wrong)
	}
	if err != nil {
		return err
	}
	return a.showToken(c, endpointID, form.Get("name"), token)
}

// showToken redirects to the page of the feed, which shows the token once. Operators never see it.
func (a *dashboard) showToken(c *handlers.Call, endpointID id.UUID, name, token string) error {
	to := endpointPath(c, endpointID)
	if c.Actor.Viewing == nil {
		if err := c.KeepOnce(to, shownOnce{Token: token, Of: name}); err != nil {
			return err
		}
	}
	return c.Redirect(to)
}

func (a *dashboard) rewindConsumer(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	start, err := startOf(form)
	if err != nil {
		return err
	}
	endpointID := c.PathID("endpoint_id")
	err = c.Tx(func(q *db.Tx) error {
		_, err := a.consumers(c, endpointID).Rewind(c.Ctx(), q, c.Param("consumer"), start, nil)
		return err
	})
	if err != nil {
		return err
	}
	return c.Done(endpointPath(c, endpointID), "Rewound: "+c.Param("consumer")+".")
}

func (a *dashboard) rotateConsumer(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var token string
	err := c.Tx(func(q *db.Tx) (err error) {
		token, err = a.consumers(c, endpointID).Rotate(c.Ctx(), q, c.Param("consumer"))
		return err
	})
	if err != nil {
		return err
	}
	return a.showToken(c, endpointID, c.Param("consumer"), token)
}

func (a *dashboard) deleteConsumer(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	err := c.Tx(func(q *db.Tx) error {
		if _, err := endpoints.Status(c.Ctx(), q, c.Actor.Tenant, endpointID); err != nil {
			return err
		}
		return a.consumers(c, endpointID).Delete(c.Ctx(), q, c.Param("consumer"))
	})
	if err != nil {
		return err
	}
	return c.Done(endpointPath(c, endpointID), "Deleted: "+c.Param("consumer")+".")
}
