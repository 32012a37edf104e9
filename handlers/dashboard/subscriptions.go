package dashboard

import (
	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/subscriptions"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/handlers/mcp"
	"posthorn/views/pages"
)

func (a *dashboard) subscriptionRoutes() []handlers.Route {
	return []handlers.Route{
		page("GET", "/subscriptions", access.Read, a.listSubscriptions),
		fresh("GET", "/subscriptions/access", access.ManageSSO, a.showMCPAccess),
		fresh("POST", "/subscriptions/access", access.ManageSSO, a.changeMCPAccess),
		page("POST", "/subscriptions/:subscription_id/revoke", access.ChangeEndpoints, a.revokeSubscription),
	}
}

func (a *dashboard) subscriptions(c *handlers.Call) subscriptions.Store {
	return subscriptions.Store{Tenant: c.Actor.Tenant, Keys: a.Keys, By: c.Author(), Now: a.Now()}
}

func (a *dashboard) listSubscriptions(c *handlers.Call) error {
	found, err := handlers.ReadList(c, handlers.List{
		Name:    "subscriptions",
		Of:      id.Endpoint,
		Rows:    rows,
		Filters: []handlers.Filter{handlers.ByPrincipal},
	}, c.Tx, func(q *db.Tx, p handlers.Page) (show.Page[show.Subscription], error) {
		return a.subscriptions(c).List(c.Ctx(), q, p.Principal, p.Range)
	})
	if err != nil {
		return err
	}
	return c.Render(found.Status(), pages.Subscriptions(pages.SubscriptionsView{
		Shell:     c.Shell("AI clients", "subscriptions"),
		Root:      path(c, ""),
		Rows:      found.Rows,
		Principal: found.Given.Get("principal"),
		Wrong:     found.Wrong,
		Newer:     found.Newer,
		Older:     found.Older,
		MayChange: c.Actor.May(access.ChangeEndpoints),
		MayOpen:   c.Actor.May(access.ManageSSO),
	}))
}

// revokeSubscription ends a subscription and tells its client.
func (a *dashboard) revokeSubscription(c *handlers.Call) error {
	if _, err := c.Form(); err != nil {
		return err
	}
	var last endpoints.Facts
	err := c.Tx(func(q *db.Tx) (err error) {
		last, err = a.subscriptions(c).Remove(c.Ctx(), q, c.Param("subscription_id"))
		return err
	})
	if err != nil {
		return err
	}
	if err := last.Complete(c.Ctx(), a.DB, a.Keys, c.Actor.Tenant, a.BaseURL); err != nil {
		return err
	}
	mcp.Terminate(c.Ctx(), a.Tester, last)
	return c.Done(path(c, "/subscriptions"), "Revoked the subscription.")
}
