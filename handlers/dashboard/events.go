package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/trace"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) eventRoutes() []handlers.Route {
	emission := page("POST", "/events", access.ChangeEndpoints, a.emit)
	emission.MaxBody = 2 << 20 // the data of an event, as forms encode it
	return []handlers.Route{
		page("GET", "/events", access.Read, a.listEvents),
		page("GET", "/events/new", access.ChangeEndpoints, a.newEvent),
		emission,
		page("GET", "/events/:event_id", access.Read, a.showEvent),
		page("GET", "/events/:event_id/data", access.Read, a.downloadData),
		page("POST", "/events/:event_id/replay", access.ActOnDeliveries, a.replayEvent),
		page("POST", "/events/:event_id/expunge", access.Expunge, a.expungeEvent),
	}
}

// maxScan bounds how many rows a filtered page examines.
const maxScan = 10_000

var eventFilters = handlers.List{Name: "events", Filters: []handlers.Filter{
	handlers.BySince, handlers.ByUntil, handlers.ByType,
	handlers.ByChannel,
}}

func (a *dashboard) listEvents(c *handlers.Call) error {
	ask := readListQuery(c, id.Event)
	v := pages.EventsView{
		Root: path(c, ""), Emits: c.Actor.May(access.ChangeEndpoints),
		Filter: pages.EventFilter{
			Type: ask.filter.Get("type"), Channel: ask.filter.Get("channel"), Since: ask.filter.Get("since"),
			Until: ask.filter.Get("until"),
		},
	}
	p, err := c.Page(eventFilters)
	if err != nil {
		if v.Wrong, err = wrongQuery(err); err != nil {
			return err
		}
	}
	err = c.Tx(func(q *db.Tx) error {
		var err error
		if _, v.Types, err = a.filterChoices(c, q); err != nil || len(v.Wrong) > 0 {
			return err
		}
		return a.fillEvents(c, q, p, ask, &v)
	})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if len(v.Wrong) > 0 {
		status = http.StatusBadRequest
	}
	v.Shell = c.Shell("Events", "events")
	return c.Render(status, pages.Events(v))
}

func (a *dashboard) fillEvents(c *handlers.Call, q *db.Tx, p handlers.Page, ask listQuery,
	v *pages.EventsView,
) error {
	floor, err := q.VisibleSince(c.Ctx(), c.Actor.Tenant)
	if err != nil {
		return err
	}
	if !ask.after.IsZero() {
		p.After = ask.after[:]
		v.Newer = ask.at(v.Root+"/events", "", "")
	}
	low, high := p.Between(floor, a.Now())
	scan := int32(rows + 1)
	if p.Type != "" || p.Channel != "" {
		scan = maxScan
	}
	found, err := deliveries.ScanEvents(c.Ctx(), q, sql.ScanEventsDownParams{
		TenantID: c.Actor.Tenant, Low: low, LowAt: low.Time(), High: high, HighAt: high.Time(),
		Type: p.Type, Channel: p.Channel, Scan: scan, Most: rows + 1,
	}, false)
	if err != nil {
		return err
	}
	page, next := looked(found, scan, func(r sql.ScanEventsDownRow) (id.UUID, int64, bool) {
		return r.ID, r.Place,
			r.Matches
	})
	for _, e := range page {
		v.Rows = append(v.Rows, eventRow(sql.Event{
			ID: e.ID, Type: e.Type, CreatedAt: e.CreatedAt, Key: e.Key,
			Channels: e.Channels, DeliverAt: e.DeliverAt,
		}))
	}
	if !next.IsZero() {
		v.Older, v.Short = ask.at(v.Root+"/events", "after", id.Event.Format(next)), len(page) < rows
		return nil
	}
	v.Stored, err = a.storedDays(c, q, p)
	v.Stored.Noun, v.Stored.Here = pages.StoredEvents, ask.here(v.Root+"/events", id.Event)
	return err
}

// looked converts the result of a bounded scan to a page: the matching rows, and the last row that it examined. next is
// where the next page starts, or zero at the end.
func looked[T any](found []T, scan int32, of func(T) (eventID id.UUID, place int64, matches bool)) (page []T,
	next id.UUID,
) {
	for _, r := range found {
		eventID, place, matches := of(r)
		if matches && len(page) == rows {
			last, _, _ := of(page[rows-1])
			return page, last
		}
		if matches {
			page = append(page, r)
		}
		if place == int64(scan) {
			return page, eventID
		}
	}
	return page, id.UUID{}
}

func eventRow(e sql.Event) pages.EventRow {
	r := pages.EventRow{
		ID: id.Event.Format(e.ID), Type: e.Type, Channels: e.Channels, Created: e.CreatedAt, Due: orZero(e.DeliverAt),
	}
	if e.Key != nil {
		r.Key = *e.Key
	}
	return r
}

func (a *dashboard) showEvent(c *handlers.Call) error {
	v, err := a.eventView(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.EventPage(v))
}

// verdictsShown bounds the endpoints on an event's page.
const verdictsShown = 100

func (a *dashboard) eventView(c *handlers.Call) (v pages.EventView, err error) {
	eventID, err := c.ID(id.Event, "event_id")
	if err != nil {
		return v, err
	}
	v = pages.EventView{
		Root: path(c, ""), Acts: c.Actor.May(access.ActOnDeliveries), Expunges: c.Actor.May(access.Expunge),
	}
	err = c.Tx(func(q *db.Tx) error {
		routed, err := endpoints.ReadRouting(c.Ctx(), q, c.Actor.Tenant, eventID)
		if err != nil {
			return err
		}
		payloads, err := a.readsPayloads(c, q)
		if err != nil {
			return err
		}
		fillEvent(&v, routed, payloads)
		if routed.Data == nil {
			if v.Expunged, err = a.expunged(c, q, eventID); err != nil {
				return err
			}
		}
		page, err := deliveries.List(c.Ctx(), q, c.Actor.Tenant, deliveries.ListOptions{Event: &eventID, Most: rows})
		if err != nil {
			return err
		}
		v.More = page.Next != nil
		ids := make([]id.UUID, len(page.Rows))
		for i, d := range page.Rows {
			ids[i] = d.EndpointID
		}
		labels, err := a.labels(c, q, ids)
		for _, d := range page.Rows {
			v.Deliveries = append(v.Deliveries, deliveryRow(d, labels))
		}
		return err
	})
	v.Shell = c.Shell(v.Row.Type, "events")
	return v, err
}

func fillEvent(v *pages.EventView, r endpoints.RoutedEvent, payloads bool) {
	v.Row, v.Occurred, v.Hidden = eventRow(r.Event), orZero(r.OccurredAt), !payloads
	v.TraceID = trace.ID(r.Traceparent)
	if r.Version != nil {
		v.Version = *r.Version
	}
	if v.Pretty = pretty(r.Data); v.Hidden {
		v.Pretty.Text = ""
	}
	v.Routing, v.Truncated = r.Explain(), r.More
	v.Endpoints = []components.Option{{Value: "", Label: "Every endpoint that received it"}}
	for i, verdict := range v.Routing.Verdicts {
		e := r.Endpoints[i]
		label := pages.EndpointLabel{
			ID: id.Endpoint.Format(e.ID), URL: maskedURL(e.URL), Description: e.Description, Gone: e.Gone,
		}
		if i == verdictsShown {
			v.Truncated = true
			break
		}
		row := pages.VerdictRow{Verdict: verdict, Endpoint: label}
		if e.Delivery != nil {
			row.Delivery = id.Delivery.Format(*e.Delivery)
		}
		v.Verdicts = append(v.Verdicts, row)
		if !e.Gone {
			v.Endpoints = append(v.Endpoints, components.Option{Value: label.ID, Label: label.Name()})
		}
	}
}

// prettyShown bounds the indented data on a page.
const prettyShown = 12 << 10

// pretty is an event's data, indented unless it is too long.
func pretty(data []byte) pages.Excerpt {
	if data == nil {
		return pages.Excerpt{Gone: "The event's data has been deleted."}
	}
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		b.Reset()
		b.Write(data)
	}
	e := excerpt(b.Bytes(), prettyShown)
	e.Size = len(data)
	return e
}

// downloadData sends an event's data as it was received.
func (a *dashboard) downloadData(c *handlers.Call) error {
	eventID, err := c.ID(id.Event, "event_id")
	if err != nil {
		return err
	}
	var e sql.Event
	payloads := false
	err = c.Tx(func(q *db.Tx) error {
		if e, err = endpoints.ReadEvent(c.Ctx(), q, c.Actor.Tenant, eventID); err != nil {
			return err
		}
		payloads, err = a.readsPayloads(c, q)
		return err
	})
	switch {
	case err != nil:
		return err
	case !payloads:
		return errPayloads
	case e.Data == nil:
		return delivery.ErrEventExpired
	}
	return download(c, id.Event.Format(eventID)+".json", e.Data)
}

// expunged says when and why an event's data was destroyed, if that was requested for this event alone.
func (a *dashboard) expunged(c *handlers.Call, q *db.Tx, eventID id.UUID) (string, error) {
	said, err := q.ExpungeSaid(c.Ctx(), sql.ExpungeSaidParams{
		TenantID: &c.Actor.Tenant,
		Object:   id.Event.Format(eventID),
	})
	if db.IsMissing(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	names, err := auditNames(c, q, []db.AuditRef{{Tenant: c.Actor.Tenant, Kind: said.ActorKind, ID: said.ActorID}})
	if err != nil {
		return "", err
	}
	by := cmp.Or(pages.ActorName(said.ActorKind, names[said.ActorID]), strings.TrimSpace(said.ActorKind+" "+said.ActorID))
	text := "Deleted on " + components.Stamp(said.At) + " by " + by
	if said.Reason != "" {
		text += ": " + said.Reason
	}
	return text + ".", nil
}

// expungeEvent destroys the data of one event.
func (a *dashboard) expungeEvent(c *handlers.Call) error {
	eventID, err := c.ID(id.Event, "event_id")
	if err != nil {
		return err
	}
	form, err := c.Form()
	if err != nil {
		return err
	}
	reason, refused := reasonIn(form, "expunge-event", true)
	if refused != nil {
		return a.refuseOnEvent(c, *refused)
	}
	var done deliveries.Expunged
	err = c.Tx(func(q *db.Tx) error {
		done, err = deliveries.ExpungeEvent(c.Ctx(), q, c.Actor.Tenant, eventID, reason, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	if len(done.Events) > 0 {
		c.Flash("Event data deleted.")
	}
	return c.Redirect(path(c, "/events/"+id.Event.Format(eventID)))
}

// refuseOnEvent shows an event with the error of the action.
func (a *dashboard) refuseOnEvent(c *handlers.Call, r pages.Refused) error {
	v, err := a.eventView(c)
	if err != nil {
		return err
	}
	v.Refused = r
	return c.Render(http.StatusBadRequest, pages.EventPage(v))
}

// replayEvent sends an event again: to one endpoint, or to each that it went to.
func (a *dashboard) replayEvent(c *handlers.Call) error {
	eventID, err := c.ID(id.Event, "event_id")
	if err != nil {
		return err
	}
	form, err := c.Form()
	if err != nil {
		return err
	}
	reason, refused := reasonIn(form, "replay-event", false)
	if refused != nil {
		return a.refuseOnEvent(c, *refused)
	}
	var only *id.UUID
	if text := form.Get("endpoint"); text != "" {
		ep, err := id.Endpoint.Parse(text)
		if err != nil {
			ep = id.None
		}
		only = &ep
	}
	var made deliveries.EventReplay
	err = c.Tx(func(q *db.Tx) error {
		made, err = deliveries.ReplayEventBy(c.Ctx(), q, c.Actor.Tenant, eventID, only, c.Author().Because(reason))
		return err
	})
	e := fault.As(err)
	if e != nil && e.Kind == fault.Conflict || err == nil && len(made.Deliveries) == 0 {
		v, err := a.eventView(c)
		if err != nil {
			return err
		}
		if v.Wrong = "There is no endpoint to send it to: no endpoint received it, or each one was deleted or still has a delivery in progress. Select one endpoint."; e != nil {
			v.Wrong = e.Detail
		}
		return c.Render(http.StatusConflict, pages.EventPage(v))
	}
	if err != nil {
		return err
	}
	c.Flash(components.Many(int64(len(made.Deliveries)), "new delivery sends it again.", "new deliveries send it again."))
	return c.Redirect(path(c, "/events/"+id.Event.Format(eventID)))
}
