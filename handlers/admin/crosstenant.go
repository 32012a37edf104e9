package admin

import (
	"net/http"
	"net/url"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/console"
)

// search finds the page of the delivery, event, endpoint, or tenant whose id was typed.
func (a *admin) search(c *handlers.Call, text string) (to string, err error) {
	dlv, isDelivery := id.Delivery.Parse(text)
	evt, isEvent := id.Event.Parse(text)
	ep, isEndpoint := id.Endpoint.Parse(text)
	ten, isTenant := id.Tenant.Parse(text)
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		switch {
		case isDelivery == nil:
			tenantID, err := deliveries.TenantOfDelivery(c.Ctx(), q, dlv)
			to = tenantPath(tenantID) + "/deliveries/" + text
			return err
		case isEvent == nil:
			tenantID, err := deliveries.TenantOfEvent(c.Ctx(), q, evt)
			to = tenantPath(tenantID) + "/events/" + text
			return err
		case isEndpoint == nil:
			to = Root + "/deliveries?" + url.Values{"endpoint": {text}}.Encode()
			return deliveries.FindEndpoint(c.Ctx(), q, ep)
		case isTenant == nil:
			to = tenantPath(ten)
			_, err := accounts.FindTenant(c.Ctx(), q, ten)
			return err
		}
		to, err = ownedPath(c, q, text)
		return err
	})
	return to, err
}

// ownedPath finds the page of the tenant with an external id, or else the deliveries of the newest endpoint with it.
func ownedPath(c *handlers.Call, q *db.Tx, text string) (string, error) {
	tenant, endpoint, err := deliveries.OfExternalID(c.Ctx(), q, text)
	if !tenant.IsZero() {
		return tenantPath(tenant), err
	}
	return Root + "/deliveries?" + url.Values{"endpoint": {id.Endpoint.Format(endpoint)}}.Encode(), err
}

// allDeliveries is the list of the deliveries of all tenants.
var allDeliveries = handlers.List{
	Name:     "all-deliveries",
	Of:       id.Delivery,
	Rows:     pageRows,
	Statuses: delivery.Selections(),
	Filters: []handlers.Filter{
		handlers.BySearch, handlers.BySince, handlers.ByUntil, handlers.ByType, handlers.ByTenant, handlers.ByEndpoint, handlers.ByHost,
		handlers.ByWait,
	},
}

// listDeliveries shows the deliveries of all tenants. A search for an id redirects to its object.
func (a *admin) listDeliveries(c *handlers.Call) error {
	p, err := c.Page(allDeliveries)
	v := console.DeliveriesView{Filter: console.FilterOf(p.Given)}
	if v.Wrong, err = handlers.FormErrors(err); err != nil {
		return err
	}
	if v.Wrong == nil && p.Search != "" {
		to, err := a.search(c, p.Search)
		switch {
		case err == nil:
			return c.Redirect(to)
		case !db.IsMissing(err):
			return err
		}
		v.Wrong = map[string]string{"q": "No object has this id. Enter a complete id (dlv_, evt_, ep_, or ten_ and 26 characters), or the external id of a tenant or an endpoint. Data older than the tenant's retention period has been deleted."}
	}
	if v.Wrong == nil {
		var found handlers.Listed[show.Delivery]
		err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
			found, err = handlers.ReadPage(p, nil, func(r show.Range) (deliveries.Page, error) {
				return deliveries.ListCrossTenant(c.Ctx(), q, p.Deliveries())
			})
			return err
		})
		if err != nil {
			return err
		}
		v.Rows, v.Next, v.Short = found.Rows, found.Older, found.Short
	}
	v.Shell = c.Shell("Deliveries", "deliveries")
	return c.Render(filterStatus(v.Wrong), console.Deliveries(v))
}

// attemptsShown is how many attempts of a delivery an operator sees.
const attemptsShown = 50

// showDelivery shows the history of a delivery. Requests and responses belong to the tenant. They are shown only in its
// dashboard, where the audit log records the visit.
func (a *admin) showDelivery(c *handlers.Call) error {
	tenant := c.PathID(handlers.ConsoleTenantParam)
	deliveryID := c.PathID("delivery_id")
	var v console.DeliveryView
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		v.DeliveryDetail, err = deliveries.ReadDetail(c.Ctx(), q, tenant, deliveryID, attemptsShown)
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell(v.EventType, "deliveries")
	return c.Render(http.StatusOK, console.Delivery(v))
}

// eventList is the list of the events of all tenants.
var eventList = handlers.List{
	Name: "events",
	Rows: pageRows,
	Of:   id.Event,
	Filters: []handlers.Filter{
		handlers.ByTenant,
		handlers.ByType,
		handlers.BySince,
		handlers.ByUntil,
	},
	Choices: []handlers.Choice{handlers.ByOutcome},
}

// listEvents shows the events of all tenants.
func (a *admin) listEvents(c *handlers.Call) error {
	p, err := c.Page(eventList)
	v := console.EventsView{Filter: console.FilterOf(p.Given)}
	if v.Wrong, err = handlers.FormErrors(err); err != nil {
		return err
	}
	if v.Wrong == nil {
		err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
			found, err := handlers.ReadPage(p, nil, func(r show.Range) (show.Page[show.Event], error) {
				return deliveries.ListCrossTenantEvents(c.Ctx(), q, deliveries.CrossTenantEvents{
					Tenant:  p.Tenant,
					Type:    p.Type,
					Outcome: p.Chosen[handlers.ByOutcome.Name],
				}, r)
			})
			v.Rows, v.Newer, v.Older, v.Short = found.Rows, found.Newer, found.Older, found.Short
			return err
		})
		if err != nil {
			return err
		}
	}
	v.Shell = c.Shell("Events", "events")
	return c.Render(filterStatus(v.Wrong), console.Events(v))
}

// filterStatus is the HTTP status of a list: 400 if its filter is invalid.
func filterStatus(wrong map[string]string) int {
	if wrong != nil {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// showEvent shows the deliveries of an event, without its data.
func (a *admin) showEvent(c *handlers.Call) error {
	tenant := c.PathID(handlers.ConsoleTenantParam)
	eventID := c.PathID("event_id")
	var v console.EventView
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		if v.Event, err = deliveries.ReadEventOfTenant(c.Ctx(), q, tenant, eventID); err != nil {
			return err
		}
		list := deliveries.ListOptions{Event: eventID, Range: show.Range{Limit: pageRows}}
		page, err := deliveries.List(c.Ctx(), q, tenant, list)
		v.Rows, v.More = page.Rows, page.Next != nil
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell(v.Event.Type, "events")
	return c.Render(http.StatusOK, console.Event(v))
}
