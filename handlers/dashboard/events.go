package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/events"
	"posthorn/domain/access"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) eventRoutes() []handlers.Route {
	emission := page("POST", "/events", access.ChangeEndpoints, a.emit)
	emission.MaxBody = 2 << 20 // the data of an event, as forms encode it
	data := page("GET", "/events/:event_id/data", access.Read, a.downloadData)
	data.Timeout = handlers.DataTimeout
	return []handlers.Route{
		page("GET", "/events", access.Read, a.listEvents),
		page("GET", "/events/new", access.ChangeEndpoints, a.newEvent),
		emission,
		page("GET", "/events/:event_id", access.Read, a.showEvent),
		data,
		page("POST", "/events/:event_id/replay", access.ActOnDeliveries, a.replayEvent).Replaying(),
		page("POST", "/events/:event_id/expunge", access.Expunge, a.expungeEvent).Expunging(),
	}
}

var eventList = handlers.List{
	Name: "events",
	Rows: rows,
	Of:   id.Event,
	Filters: []handlers.Filter{
		handlers.BySince,
		handlers.ByUntil,
		handlers.ByType,
		handlers.ByChannel,
		handlers.ByStoredDay,
	},
	Choices: []handlers.Choice{handlers.ByOutcome},
}

func (a *dashboard) listEvents(c *handlers.Call) error {
	p, err := c.Page(eventList)
	v := pages.EventsView{
		Root:  path(c, ""),
		Emits: c.Actor.May(access.ChangeEndpoints),
		Filter: pages.EventFilter{
			Type:    p.Given.Get("type"),
			Channel: p.Given.Get("channel"),
			Since:   p.Given.Get("since"),
			Until:   p.Given.Get("until"),
			Outcome: p.Given.Get("outcome"),
		},
	}
	if v.Wrong, err = handlers.FormErrors(err); err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		var err error
		if _, v.Types, err = a.filterChoices(c, q); err != nil || len(v.Wrong) > 0 {
			return err
		}
		filter := events.Filter{Type: p.Type, Channel: p.Channel, Outcome: p.Chosen[handlers.ByOutcome.Name]}
		if filter.Values, err = a.readsPayloads(c, q); err != nil {
			return err
		}
		v.Values = filter.Values
		found, err := handlers.ReadPage(p, nil, func(r show.Range) (show.Page[show.Event], error) {
			return events.List(c.Ctx(), q, c.Actor.Tenant, filter, r, a.Now())
		})
		v.Rows, v.Newer, v.Older, v.Short = found.Rows, found.Newer, found.Older, found.Short
		if err != nil || v.Older != "" || !p.StoredDay.IsZero() {
			return err
		}
		v.Stored, err = a.storedDays(c, q, p)
		v.Stored.Noun, v.Stored.Here = pages.StoredEvents, p.Here()+pages.StoredAnchor
		return err
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

func (a *dashboard) showEvent(c *handlers.Call) error {
	v, err := a.eventView(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.EventPage(v))
}

func (a *dashboard) eventView(c *handlers.Call) (v pages.EventView, err error) {
	eventID := c.PathID("event_id")
	v = pages.EventView{
		Root:     path(c, ""),
		Acts:     c.Actor.May(access.ActOnDeliveries),
		Expunges: c.Actor.May(access.Expunge),
	}
	err = c.Tx(func(q *db.Tx) error {
		if v.Routed, err = events.ReadRouting(c.Ctx(), q, c.Actor.Tenant, eventID); err != nil {
			return err
		}
		payloads, err := a.readsPayloads(c, q)
		if err != nil {
			return err
		}
		v.Hidden = !payloads
		if v.Pretty = pretty(v.Routed.Data); v.Hidden {
			v.Pretty.Text = ""
		}
		if v.Routed.ContentType == event.ReferenceType {
			v.Large, _ = event.ParseReference(v.Routed.Data) // of expunged data: nothing
		}
		if v.Routed.Data == nil {
			if v.Expunged, err = a.expunged(c, q, eventID); err != nil {
				return err
			}
		}
		list := deliveries.ListOptions{Event: eventID, Range: show.Range{Limit: rows}}
		page, err := deliveries.List(c.Ctx(), q, c.Actor.Tenant, list)
		v.Deliveries, v.More = page.Rows, page.Next != nil
		if err != nil || len(page.Rows) == 0 {
			return err
		}
		v.Durations, err = deliveries.LastDurations(c.Ctx(), q, c.Actor.Tenant, page.Rows, a.Now())
		return err
	})
	v.Shell = c.Shell(v.Routed.Type, "events")
	return v, err
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
	eventID := c.PathID("event_id")
	var e show.Event
	var large deliveries.Whole
	payloads := false
	err := c.Tx(func(q *db.Tx) (err error) {
		if e, err = events.Read(c.Ctx(), q, c.Actor.Tenant, eventID); err != nil {
			return err
		}
		if payloads, err = a.readsPayloads(c, q); err == nil && e.ContentType == event.ReferenceType && e.Data != nil {
			large, err = deliveries.ReadWhole(c.Ctx(), q, c.Actor.Tenant, eventID)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !payloads:
		return errPayloads
	case e.Data == nil:
		return event.ErrDataDeleted
	case large.Object != "":
		c.Writer.Header().Set("Content-Disposition", `attachment; filename="`+id.Event.Format(eventID)+`"`)
		return c.AnswerData(a.Large, large)
	}
	return download(c, id.Event.Format(eventID)+".json", e.Data)
}

// expunged says when and why an event's data was destroyed, if that was requested for this event alone.
func (a *dashboard) expunged(c *handlers.Call, q *db.Tx, eventID id.UUID) (string, error) {
	said, found, err := deliveries.ReadExpunge(c.Ctx(), q, c.Actor.Tenant, eventID)
	if err != nil || !found {
		return "", err
	}
	names, err := auditNames(c, q, []db.AuditRef{{Tenant: c.Actor.Tenant, Kind: said.By.Kind, ID: said.By.ID}})
	if err != nil {
		return "", err
	}
	by := cmp.Or(pages.ActorName(said.By.Kind, names[said.By.ID]), strings.TrimSpace(said.By.Kind+" "+said.By.ID))
	text := "Deleted on " + components.Stamp(said.At) + " by " + by
	if said.By.Reason != "" {
		text += ": " + said.By.Reason
	}
	return text + ".", nil
}

// expungeEvent destroys the data of one event.
func (a *dashboard) expungeEvent(c *handlers.Call) error {
	eventID := c.PathID("event_id")
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
	switch {
	case len(done.Stored) > 0:
		c.Flash("Event data deleted. Its files in storage are rewritten without it, usually within a minute.")
	case len(done.Events) > 0:
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
	eventID := c.PathID("event_id")
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
	return c.Done(path(c, "/events/"+id.Event.Format(eventID)), components.Many(int64(len(made.Deliveries)), "new delivery sends it again.", "new deliveries send it again."))
}
