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
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

// everywhere is a list's address: what narrows it down, and what of that can't be read, by field.
type everywhere struct {
	filter console.EverywhereFilter
	wrong  map[string]string
	tenant *id.UUID
	since  time.Time
	until  time.Time
	after  id.UUID
}

func readEverywhere(c *handlers.Call, kind id.Kind) everywhere {
	get := func(name string) string { return strings.TrimSpace(c.Query(name)) }
	e := everywhere{wrong: map[string]string{}, filter: console.EverywhereFilter{
		Search: get("q"), Tenant: get("tenant"), Endpoint: get("endpoint"), Host: get("host"), Status: get("status"), Type: get("type"),
		Since: handlers.FormTime(get("since")), Until: handlers.FormTime(get("until")),
	}}
	e.after, _ = kind.Parse(get("before"))
	if text := e.filter.Tenant; text != "" {
		u, err := id.Tenant.Parse(text)
		if err != nil {
			e.wrong["tenant"] = "A tenant's id begins with ten_. Copy it from the tenant's page."
		}
		e.tenant = &u
	}
	e.time("since", e.filter.Since, &e.since)
	e.time("until", e.filter.Until, &e.until)
	if e.filter.Type != "" && !event.ValidType(e.filter.Type) {
		e.wrong["type"] = "An event type is one whole name, such as order.completed."
	}
	return e
}

func (e *everywhere) time(name, text string, into *time.Time) {
	if text == "" {
		return
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		e.wrong[name] = "Write a date and a time, in UTC."
	}
	*into = at.UTC()
}

// search leads to the delivery, event, endpoint or tenant whose id was typed.
func (a *admin) search(c *handlers.Call, text string) (to string, err error) {
	dlv, isDelivery := id.Delivery.Parse(text)
	evt, isEvent := id.Event.Parse(text)
	ep, isEndpoint := id.Endpoint.Parse(text)
	ten, isTenant := id.Tenant.Parse(text)
	err = a.DB.Console(c.Ctx(), func(q *sql.Queries) error {
		if err := q.PlanByIndex(c.Ctx()); err != nil {
			return err
		}
		switch {
		case isDelivery == nil:
			u, err := q.TenantOfDelivery(c.Ctx(), sql.TenantOfDeliveryParams{CreatedAt: dlv.Time(), ID: dlv})
			to = tenantPath(u) + "/deliveries/" + text
			return err
		case isEvent == nil:
			u, err := q.TenantOfEvent(c.Ctx(), sql.TenantOfEventParams{CreatedAt: evt.Time(), ID: evt})
			to = tenantPath(u) + "/events/" + text
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
		return fault.ErrNotFound
	})
	return to, err
}

var waitingStatuses = []string{"pending", "retrying", "held", "delivered", "failed", delivery.DeadLetter, "canceled"}

// listDeliveries shows the deliveries of all tenants, or goes to the thing whose id is searched for.
func (a *admin) listDeliveries(c *handlers.Call) error {
	e := readEverywhere(c, id.Delivery)
	v := console.DeliveriesView{Filter: e.filter, Wrong: e.wrong}
	if e.filter.Search != "" {
		to, err := a.search(c, e.filter.Search)
		switch {
		case err == nil:
			return c.Redirect(to)
		case !db.IsMissing(err):
			return err
		}
		v.Wrong["q"] = "Nothing has this id. Type a whole one: dlv_, evt_, ep_ or ten_ and 26 characters; what is older than the tenant's retention is gone."
	}
	list := deliveries.Everywhere{Tenant: e.tenant, Host: e.filter.Host, EventType: e.filter.Type, Since: e.since, Until: e.until, After: e.after, Most: pageRows}
	if word := word(c, "status", waitingStatuses...); word != "" {
		s, known := delivery.ParseStatus(word)
		if !known {
			s = deliveries.DeadLetters
		}
		list.Status = &s
	}
	if text := e.filter.Endpoint; text != "" {
		u, err := id.Endpoint.Parse(text)
		if err != nil {
			v.Wrong["endpoint"] = "An endpoint's id begins with ep_."
		}
		list.Endpoint = &u
	}
	status := http.StatusBadRequest
	if len(v.Wrong) == 0 {
		status = http.StatusOK
		var page deliveries.EverywherePage
		err := a.DB.Console(c.Ctx(), func(q *sql.Queries) (err error) {
			page, err = deliveries.ListEverywhere(c.Ctx(), q, list)
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

// further is the address of the page beyond a row.
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
		ID: id.Delivery.Format(d.ID), Type: d.EventType, Status: d.Shown, Reason: d.Reason, Attempts: int(d.Attempts), LastStatus: int(d.LastStatus),
		LastFailure: d.LastFailure, Created: d.CreatedAt, Tenant: of.TenantName, TenantPath: tenantPath(d.TenantID), Endpoint: id.Endpoint.Format(d.EndpointID), URL: egress.Mask(of.URL),
		Event: id.Event.Format(d.EventID),
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

// attemptsShown is how many attempts an operator is shown of a delivery.
const attemptsShown = 50

// showDelivery tells what happened to a delivery. What was sent and answered is the tenant's: it is shown in its dashboard alone,
// where the tenant is told of the look.
func (a *admin) showDelivery(c *handlers.Call) error {
	tenant, err := c.ID(id.Tenant, tenantParam)
	if err != nil {
		return err
	}
	u, err := c.ID(id.Delivery, "delivery_id")
	if err != nil {
		return err
	}
	var d deliveries.State
	var ep sql.Endpoint
	var attempts []sql.Attempt
	var owner sql.Tenant
	var state condition.State
	err = a.DB.Console(c.Ctx(), func(q *sql.Queries) error {
		if owner, err = q.GetTenant(c.Ctx(), tenant); err != nil {
			return err
		}
		if d, err = deliveries.Read(c.Ctx(), q, tenant, u); err != nil {
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
			Status: d.Shown, Reason: d.Reason, Attempts: int(d.Attempts), LastStatus: int(d.LastStatus), LastFailure: d.LastFailure,
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
		Number: int(t.Number), At: t.CreatedAt, Late: t.Late, Status: int(t.Status), Failure: t.Failure, URL: t.URL, Total: us(t.TotalUs),
		Phases: components.PhaseProps{DNS: us(t.DNSUs), Connect: us(t.ConnectUs), TLS: us(t.TLSUs), Wait: us(t.WaitUs), Read: us(t.ReadUs), Scale: us(t.TotalUs)},
	}
	if t.Error != nil {
		l.Error = *t.Error
	}
	return l
}

// listEvents shows the events of all tenants.
func (a *admin) listEvents(c *handlers.Call) error {
	e := readEverywhere(c, id.Event)
	v := console.EventsView{Filter: e.filter, Wrong: e.wrong}
	status := http.StatusBadRequest
	if len(v.Wrong) == 0 {
		status = http.StatusOK
		var rows []sql.ScanAllEventsRow
		var next *id.UUID
		err := a.DB.Console(c.Ctx(), func(q *sql.Queries) (err error) {
			rows, next, err = deliveries.ListEventsEverywhere(c.Ctx(), q, deliveries.EventsEverywhere{Tenant: e.tenant, Type: e.filter.Type, Since: e.since, Until: e.until, After: e.after, Most: pageRows})
			return err
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			l := console.EventLine{ID: id.Event.Format(r.ID), Type: r.Type, Channels: r.Channels, Created: r.ID.Time(), Tenant: r.TenantName, TenantPath: tenantPath(r.TenantID)}
			l.Path = l.TenantPath + "/events/" + l.ID
			if r.DeliverAt != nil {
				l.Due = *r.DeliverAt
			}
			v.Rows = append(v.Rows, l)
		}
		v.Next, v.Short = further(c, id.Event, next), next != nil && len(rows) < pageRows
	}
	v.Shell = c.Shell("Events", "events")
	return c.Render(status, console.Events(v))
}

// showEvent tells where an event went, without its data.
func (a *admin) showEvent(c *handlers.Call) error {
	tenant, err := c.ID(id.Tenant, tenantParam)
	if err != nil {
		return err
	}
	u, err := c.ID(id.Event, "event_id")
	if err != nil {
		return err
	}
	var e sql.Event
	var owner sql.Tenant
	var page deliveries.EverywherePage
	err = a.DB.Console(c.Ctx(), func(q *sql.Queries) error {
		if owner, err = q.GetTenant(c.Ctx(), tenant); err != nil {
			return err
		}
		if e, err = endpoints.ReadEvent(c.Ctx(), q, tenant, u); err != nil {
			return err
		}
		page, err = deliveries.DeliveriesOf(c.Ctx(), q, tenant, u, pageRows)
		return err
	})
	if err != nil {
		return err
	}
	v := console.EventView{
		Line: console.EventLine{ID: id.Event.Format(u), Type: e.Type, Channels: e.Channels, Created: e.CreatedAt, Tenant: owner.Name, TenantPath: tenantPath(tenant)},
		Size: len(e.Data), Gone: e.Data == nil, More: page.Next != nil,
	}
	if e.DeliverAt != nil {
		v.Line.Due = *e.DeliverAt
	}
	for _, d := range page.Rows {
		v.Rows = append(v.Rows, deliveryLine(d, page.Labels[d.EndpointID]))
	}
	v.Shell = c.Shell(e.Type, "events")
	return c.Render(http.StatusOK, console.Event(v))
}
