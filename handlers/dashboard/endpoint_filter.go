package dashboard

import (
	"net/http"
	"net/url"
	"time"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/routing"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// How many past events a filter is tried on, and for how long. One event takes a millisecond or two at most
// (domain/filter).
const (
	tryEvents = 50
	tryTime   = 2 * time.Second
	tryShown  = 2000 // bytes of each event's data
)

func (a *dashboard) showFilter(c *handlers.Call) error {
	e, err := a.read(c)
	if err != nil {
		return err
	}
	v, err := a.filterView(c, e, e.Settings)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.FilterEditor(v))
}

// filterView is the editor of a filter. The events that a filter matches reveal their content, so trying one needs
// the permission to read events.
func (a *dashboard) filterView(c *handlers.Call, e show.Endpoint, s endpoint.Settings) (v pages.FilterView, err error) {
	v = pages.FilterView{EndpointHead: a.head(c, e, "filter"), Form: formOf(s, nil)}
	err = c.Tx(func(q *db.Tx) error {
		v.Tries, err = a.readsPayloads(c, q)
		return err
	})
	return v, err
}

func (a *dashboard) saveFilter(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	in, err := c.Form()
	if err != nil {
		return err
	}
	err = a.changeEndpoint(c, endpointID, func(s endpoint.Settings) (endpoint.Settings, error) {
		s.Filter = filterJSON(in.Get("filter"))
		return s.Check(a.Egress)
	})
	if err != nil {
		return a.refuseFilter(c, in, err)
	}
	return c.Done(endpointPath(c, endpointID)+"/filter", "Filter saved. It applies to events emitted from now on.")
}

func (a *dashboard) refuseFilter(c *handlers.Call, in url.Values, cause error) error {
	e, err := a.read(c)
	if err != nil {
		return err
	}
	if err := handlers.NotInput(cause); err != nil {
		return err
	}
	v, err := a.filterView(c, e, e.Settings)
	if err != nil {
		return err
	}
	v.Form.Filter = in.Get("filter")
	v.Form.Wrong = handlers.WrongFields(cause)
	return c.Render(handlers.Status(cause), pages.FilterEditor(v))
}

// tryFilter shows which of the newest past events a filter matches. It changes nothing.
func (a *dashboard) tryFilter(c *handlers.Call) error {
	in, err := c.Form()
	if err != nil {
		return err
	}
	e, err := a.read(c)
	if err != nil {
		return err
	}
	tried := e.Settings.Clone()
	tried.Filter = filterJSON(in.Get("filter"))
	if tried, err = tried.CheckSubscription(); err != nil {
		return a.refuseFilter(c, in, err)
	}
	var past []show.Event
	var whole bool
	err = c.Tx(func(q *db.Tx) error {
		payloads, err := a.readsPayloads(c, q)
		if err == nil && !payloads {
			err = errPayloads
		}
		if err != nil {
			return err
		}
		past, whole, err = events.Sample(c.Ctx(), q, c.Actor.Tenant, tried.EventTypes, tryEvents, a.Now())
		return err
	})
	if err != nil {
		return err
	}
	v := pages.FilterView{
		EndpointHead: a.head(c, e, "filter"),
		Form:         formOf(tried, nil),
		Tries:        true,
		Tried:        a.dryRun(c, tried, past, whole),
	}
	return c.Render(http.StatusOK, pages.FilterEditor(v))
}

func (a *dashboard) dryRun(c *handlers.Call, s endpoint.Settings, events []show.Event, whole bool,
) *pages.DryRunView {
	route := routing.Compile(routing.Rule{
		EventTypes: s.EventTypes,
		Channels:   s.Channels,
		Filter:     s.Filter,
		Status:     endpoint.Active,
	})
	end := a.Now().Add(tryTime)
	out := &pages.DryRunView{Complete: whole}
	for _, e := range events {
		if a.Now().After(end) {
			out.Complete = false
			break
		}
		v := route.Evaluate(routing.Event{Type: e.Type, Channels: e.Channels, Data: e.Data})
		if v.Matched {
			out.Matched++
		}
		out.Rows = append(out.Rows, pages.DryRunRow{
			Href:    root(c) + "/events/" + id.Event.Format(e.ID),
			Type:    e.Type,
			Matched: v.Matched,
			Detail:  v.Detail,
			Data:    delivery.Clip(string(e.Data), tryShown),
			At:      e.ID.Time(),
		})
	}
	return out
}
