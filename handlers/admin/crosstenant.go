package admin

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/egress"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

// crossTenant is the query of a list: its filters, and their errors by field.
type crossTenant struct {
	filter console.CrossTenantFilter
	wrong  map[string]string
	tenant *id.UUID
	since  time.Time
	until  time.Time
	after  id.UUID
}

func readCrossTenant(c *handlers.Call, kind id.Kind) crossTenant {
	get := func(name string) string { return strings.TrimSpace(c.Query(name)) }
	e := crossTenant{wrong: map[string]string{}, filter: console.CrossTenantFilter{
		Search: get("q"), Tenant: get("tenant"), Endpoint: get("endpoint"), Host: get("host"), Status: get("status"), Type: get("type"),
		Since: handlers.FormTime(get("since")), Until: handlers.FormTime(get("until")),
	}}
	e.after, _ = kind.Parse(get("before"))
	if text := e.filter.Tenant; text != "" {
		tenantID, err := id.Tenant.Parse(text)
		if err != nil {
			e.wrong["tenant"] = "A tenant id starts with ten_. Copy it from the tenant's page."
		}
		e.tenant = &tenantID
	}
	e.time("since", e.filter.Since, &e.since)
	e.time("until", e.filter.Until, &e.until)
	if e.filter.Type != "" && !event.ValidType(strings.TrimSuffix(e.filter.Type, ".*")) {
		e.wrong["type"] = "Write an event type, such as order.completed, or a prefix, such as order.*."
	}
	return e
}

func (e *crossTenant) time(name, text string, into *time.Time) {
	if text == "" {
		return
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		e.wrong[name] = "Enter a date and a time in UTC."
	}
	*into = at.UTC()
}

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
			found, err := q.LabelEndpoints(c.Ctx(), []id.UUID{ep})
			if err == nil && len(found) == 0 {
				err = fault.ErrNotFound
			}
			to = Root + "/deliveries?" + url.Values{"endpoint": {text}}.Encode()
			return err
		case isTenant == nil:
			to = tenantPath(ten)
			_, err := q.GetTenant(c.Ctx(), ten)
			return err
		}
		to, err = ownedPath(c, q, text)
		return err
	})
	return to, err
}

// ownedPath finds the page of the tenant with an external id, or else the deliveries of the newest endpoint with it.
func ownedPath(c *handlers.Call, q *db.Tx, text string) (string, error) {
	t, err := q.TenantOfExternalID(c.Ctx(), text)
	if err == nil || !db.IsMissing(err) {
		return tenantPath(t.ID), err
	}
	ep, err := q.AnyEndpointOfExternalID(c.Ctx(), text)
	return Root + "/deliveries?" + url.Values{"endpoint": {id.Endpoint.Format(ep)}}.Encode(), err
}

var waitingStatuses = []string{"pending", "retrying", "held", "delivered", "failed", delivery.DeadLetter, "canceled"}

// listDeliveries shows the deliveries of all tenants. A search for an id redirects to its object.
func (a *admin) listDeliveries(c *handlers.Call) error {
	e := readCrossTenant(c, id.Delivery)
	v := console.DeliveriesView{Filter: e.filter, Wrong: e.wrong}
	if e.filter.Search != "" {
		to, err := a.search(c, e.filter.Search)
		switch {
		case err == nil:
			return c.Redirect(to)
		case !db.IsMissing(err):
			return err
		}
		v.Wrong["q"] = "No object has this id. Enter a complete id (dlv_, evt_, ep_, or ten_ and 26 characters), or the external id of a tenant or an endpoint. Data older than the tenant's retention period has been deleted."
	}
	list := deliveries.CrossTenant{
		Tenant: e.tenant, Host: e.filter.Host, EventType: e.filter.Type, Since: e.since,
		Until: e.until, After: e.after, Most: pageRows,
	}
	if word := word(c, "status", waitingStatuses...); word != "" {
		s, known := delivery.ParseStatus(word)
		if !known {
			s = deliveries.DeadLetters
		}
		list.Status = &s
	}
	if text := e.filter.Endpoint; text != "" {
		endpointID, err := id.Endpoint.Parse(text)
		if err != nil {
			v.Wrong["endpoint"] = "An endpoint id starts with ep_."
		}
		list.Endpoint = &endpointID
	}
	status := http.StatusBadRequest
	if len(v.Wrong) == 0 {
		status = http.StatusOK
		var page deliveries.CrossTenantPage
		err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
			page, err = deliveries.ListCrossTenant(c.Ctx(), q, list)
			return err
		})
		if err != nil {
			return err
		}
		for _, d := range page.Rows {
			v.Rows = append(v.Rows, deliveryLine(d, page.Labels[d.EndpointID]))
		}
		v.Next, v.Short = further(c, id.Delivery, page.Next), page.Next != nil && len(page.Rows) < pageRows
	}
	v.Shell = c.Shell("Deliveries", "deliveries")
	return c.Render(status, console.Deliveries(v))
}

// further is the address of the next page.
func further(c *handlers.Call, kind id.Kind, next *id.UUID) string {
	if next == nil {
		return ""
	}
	query := c.Request.URL.Query()
	query.Set("before", kind.Format(*next))
	return c.Request.URL.Path + "?" + query.Encode()
}

func deliveryLine(d deliveries.State, of sql.LabelEndpointsRow) console.DeliveryLine {
	l := console.DeliveryLine{
		ID: id.Delivery.Format(d.ID), Type: d.EventType, Status: d.Shown, Reason: d.Reason, Attempts: int(d.Attempts),
		LastStatus:  int(d.LastStatus),
		LastFailure: d.LastFailure, Created: d.CreatedAt, Tenant: of.TenantName, TenantPath: tenantPath(d.TenantID),
		Endpoint: id.Endpoint.Format(d.EndpointID), URL: egress.Mask(of.URL), Event: id.Event.Format(d.EventID),
	}
	l.Path = l.TenantPath + "/deliveries/" + l.ID
	if d.NextAt != nil {
		l.Next = *d.NextAt
	}
	if d.Wait != nil {
		l.Wait = *d.Wait
	}
	if d.SettledAt != nil {
		l.Settled = *d.SettledAt
	}
	return l
}

// attemptsShown is how many attempts of a delivery an operator sees.
const attemptsShown = 50

// showDelivery shows the history of a delivery. Requests and responses belong to the tenant. They are shown only in its
// dashboard, where the audit log records the visit.
func (a *admin) showDelivery(c *handlers.Call) error {
	tenant, err := c.ID(id.Tenant, tenantParam)
	if err != nil {
		return err
	}
	deliveryID, err := c.ID(id.Delivery, "delivery_id")
	if err != nil {
		return err
	}
	var d deliveries.State
	var ep sql.Endpoint
	var attempts []sql.Attempt
	var owner sql.Tenant
	var state condition.State
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		if owner, err = q.GetTenant(c.Ctx(), tenant); err != nil {
			return err
		}
		if d, err = deliveries.Read(c.Ctx(), q, tenant, deliveryID); err != nil {
			return err
		}
		if ep, err = q.AnyEndpoint(c.Ctx(), sql.AnyEndpointParams{TenantID: tenant, ID: d.EndpointID}); err != nil {
			return err
		}
		if ep.DeletedAt == nil {
			is, err := endpoints.Conditions(c.Ctx(), q, tenant, []sql.Endpoint{ep}, a.Now())
			if err != nil {
				return err
			}
			state = is[ep.ID].State
		}
		attempts, err = deliveries.Attempts(c.Ctx(), q, d.Delivery, attemptsShown)
		return err
	})
	if err != nil {
		return err
	}
	v := console.DeliveryView{
		Line: deliveryLine(d, sql.LabelEndpointsRow{TenantName: owner.Name, URL: ep.URL}), Condition: state,
		Diagnosis: diagnosis.Of(diagnosis.Facts{
			Status: d.Shown, Reason: d.Reason, Attempts: int(d.Attempts), LastStatus: int(d.LastStatus),
			LastFailure:    d.LastFailure,
			AcceptConflict: ep.AcceptConflict, Timeout: time.Duration(ep.TimeoutSeconds) * time.Second, Wait: d.Wait,
		}),
	}
	for i := len(attempts) - 1; i >= 0; i-- {
		v.Attempts = append(v.Attempts, attemptLine(attempts[i]))
	}
	v.Shell = c.Shell(d.EventType, "deliveries")
	return c.Render(http.StatusOK, console.Delivery(v))
}

func attemptLine(t sql.Attempt) console.AttemptLine {
	us := func(n int32) time.Duration { return time.Duration(n) * time.Microsecond }
	l := console.AttemptLine{
		Number: int(t.Number), At: t.CreatedAt, Late: t.Late, Status: int(t.Status), Failure: t.Failure, URL: t.URL,
		Total: us(t.TotalUs),
		Phases: components.PhaseProps{
			DNS: us(t.DNSUs), Connect: us(t.ConnectUs), TLS: us(t.TLSUs), Wait: us(t.WaitUs),
			Read: us(t.ReadUs), Scale: us(t.TotalUs),
		},
	}
	if t.Error != nil {
		l.Error = *t.Error
	}
	return l
}

// eventList is the list of the events of all tenants.
var eventList = handlers.List{Name: "events", Rows: pageRows, Of: id.Event, Filters: []handlers.Filter{
	handlers.ByTenant,
	handlers.ByType,
	handlers.BySince,
	handlers.ByUntil,
}}

// listEvents shows the events of all tenants.
func (a *admin) listEvents(c *handlers.Call) error {
	p, err := c.Page(eventList)
	v := console.EventsView{Filter: console.CrossTenantFilter{
		Tenant: p.Given.Get("tenant"),
		Type:   p.Given.Get("type"),
		Since:  p.Given.Get("since"),
		Until:  p.Given.Get("until"),
	}}
	if v.Wrong, err = handlers.FormErrors(err); err != nil {
		return err
	}
	if v.Wrong == nil {
		err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
			found, err := handlers.ReadPage(p, nil, func(r show.Range) (show.Page[show.Event], error) {
				return deliveries.ListCrossTenantEvents(c.Ctx(), q, deliveries.CrossTenantEvents{Tenant: p.Tenant, Type: p.Type}, r)
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
	tenant, err := c.ID(id.Tenant, tenantParam)
	if err != nil {
		return err
	}
	eventID, err := c.ID(id.Event, "event_id")
	if err != nil {
		return err
	}
	var v console.EventView
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		if v.Event, err = deliveries.ReadEventOfTenant(c.Ctx(), q, tenant, eventID); err != nil {
			return err
		}
		page, err := deliveries.DeliveriesOf(c.Ctx(), q, tenant, eventID, pageRows)
		v.More = page.Next != nil
		for _, d := range page.Rows {
			v.Rows = append(v.Rows, deliveryLine(d, page.Labels[d.EndpointID]))
		}
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell(v.Event.Type, "events")
	return c.Render(http.StatusOK, console.Event(v))
}
