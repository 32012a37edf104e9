package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/events"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/filter"
	"posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/icons"
	"posthorn/views/layout"
	"posthorn/views/pages"
)

func (a *dashboard) searchRoutes() []handlers.Route {
	return []handlers.Route{
		page("GET", "/search", access.Read, a.search),
		page("GET", "/palette", access.Read, a.palette),
	}
}

// namesShown bounds the endpoints and event types of a search's results.
const namesShown = 10

// search finds an id, endpoints and event types by name, and events by a key or by a value in their data. An id and a
// pattern of event types redirect to their page.
func (a *dashboard) search(c *handlers.Call) error {
	text := strings.TrimSpace(c.Query("q"))
	v := pages.SearchView{Root: root(c), Query: text}
	if len(text) > event.MaxQuery {
		text, v.Query = "", text[:event.MaxQuery]
		v.Wrong = "Search for at most 256 characters."
	}
	if text != "" {
		to, err := a.found(c, text)
		switch {
		case err == nil && to != "":
			return c.Redirect(to)
		case fault.Is(err, fault.ErrNotFound.Code):
			v.Missing = true
		case err != nil:
			return err
		}
	}
	status := http.StatusOK
	if v.Wrong != "" {
		status = http.StatusBadRequest
	}
	if text != "" && !v.Missing {
		if err := a.fillSearch(c, text, &v); err != nil {
			return err
		}
	}
	v.Shell = c.Shell("Search", "search")
	return c.Render(status, pages.Search(v))
}

// found is the page of a text that names one object: an id, or a pattern of event types. It is empty for any other
// text; the id of a missing object is ErrNotFound.
func (a *dashboard) found(c *handlers.Call, text string) (to string, err error) {
	if strings.HasSuffix(text, ".*") && filter.ValidPattern(text) == nil {
		return root(c) + "/events?" + url.Values{"type": {text}}.Encode(), nil
	}
	kind, u := kindOf(text)
	switch kind {
	case id.Key:
		return root(c) + "/keys", nil
	case id.Member, id.Invitation:
		return root(c) + "/members", nil
	case id.Notice:
		return root(c) + "/notices", nil
	case id.Audit:
		return root(c) + "/audit-log", nil
	case id.Batch:
		return root(c) + "/deliveries?batch=" + text, nil
	}
	err = c.Tx(func(q *db.Tx) error {
		switch kind {
		case id.Delivery:
			to = root(c) + "/deliveries/" + text
			_, err := deliveries.Read(c.Ctx(), q, c.Actor.Tenant, u)
			return err
		case id.Event:
			to = root(c) + "/events/" + text
			_, err := events.Read(c.Ctx(), q, c.Actor.Tenant, u)
			return err
		case id.Endpoint:
			to = root(c) + "/endpoints/" + text
			_, err := endpoints.Status(c.Ctx(), q, c.Actor.Tenant, u)
			return err
		case id.Job:
			to = root(c) + "/bulk-jobs/" + text
			_, err := deliveries.ReadBulkJob(c.Ctx(), q, c.Actor.Tenant, u)
			return err
		}
		return nil
	})
	if db.IsMissing(err) {
		err = fault.ErrNotFound
	}
	if fault.Is(err, fault.ErrNotFound.Code) && (kind == id.Delivery || kind == id.Event) {
		err = a.orStored(c, u, err)
	}
	return to, err
}

// orStored is nil for an id of a day in storage: its page says so. Otherwise it is the error.
func (a *dashboard) orStored(c *handlers.Call, of id.UUID, notFound error) error {
	return c.Tx(func(q *db.Tx) error {
		if err := deliveries.Missing(c.Ctx(), q, c.Actor.Tenant, of, notFound); !errors.As(err, &history.InStorage{}) {
			return err
		}
		return nil
	})
}

// kindOf is the kind of an id; empty if the text is not an id.
func kindOf(text string) (id.Kind, id.UUID) {
	prefix, _, _ := strings.Cut(text, "_")
	for _, kind := range []id.Kind{
		id.Delivery, id.Event, id.Endpoint, id.Job, id.Key, id.Member, id.Invitation,
		id.Notice, id.Audit, id.Batch,
	} {
		if string(kind) == prefix {
			if u, err := kind.Parse(text); err == nil {
				return kind, u
			}
		}
	}
	return "", id.UUID{}
}

// fillSearch first finds names, which is fast, and then searches the events.
func (a *dashboard) fillSearch(c *handlers.Call, text string, v *pages.SearchView) error {
	s := events.Search{Query: event.ReadQuery(text), Limit: rows}
	if from := c.Query("before"); from != "" {
		s.Before, _ = id.Event.Parse(from)
	}
	v.Further = !s.Before.IsZero()
	err := c.Tx(func(q *db.Tx) (err error) {
		if s.InData, err = a.readsPayloads(c, q); err != nil || v.Further {
			return err
		}
		if err := a.fillNames(c, q, text, v); err != nil {
			return err
		}
		v.Events, err = events.ByID(c.Ctx(), q, c.Actor.Tenant, text, a.Now())
		return err
	})
	if err != nil {
		return err
	}
	v.Hidden = !s.InData
	found, err := events.Find(c.Ctx(), a.DB, c.Actor.Tenant, s, a.Now())
	if err != nil {
		return err
	}
	v.Events = append(v.Events, found.Found...)
	v.Looked = int64(found.Looked)
	if !found.Reached.IsZero() {
		v.Reached = found.Reached.Time()
		v.More = root(c) + "/search?" + url.Values{"q": {text}, "before": {id.Event.Format(found.Reached)}}.Encode()
	}
	return nil
}

// fillNames finds endpoints by name or URL, and event types by name. A tenant has few of both.
func (a *dashboard) fillNames(c *handlers.Call, q *db.Tx, text string, v *pages.SearchView) error {
	all, types, err := a.filterChoices(c, q)
	if err != nil {
		return err
	}
	word := strings.ToLower(text)
	for _, e := range all {
		if strings.Contains(strings.ToLower(e.Label), word) && len(v.Endpoints) < namesShown {
			v.Endpoints = append(v.Endpoints, e)
		}
	}
	for _, t := range types {
		if strings.Contains(strings.ToLower(t), word) && len(v.Types) < namesShown {
			v.Types = append(v.Types, t)
		}
	}
	return nil
}

// palette is the content of the command palette: pages, actions, endpoints and event types.
func (a *dashboard) palette(c *handlers.Call) error {
	shell := c.Shell("", "")
	groups := append(a.paletteActions(c), shell.PaletteSettings())
	if endpointID, err := id.Endpoint.Parse(c.Query("endpoint")); err == nil {
		groups = append(groups, endpointSettings(endpointPath(c, endpointID)))
	}
	err := c.Tx(func(q *db.Tx) error {
		all, types, err := a.filterChoices(c, q)
		if err != nil {
			return err
		}
		g := layout.PaletteGroup{Label: "Endpoints"}
		for _, e := range all {
			g.Entries = append(g.Entries, layout.PaletteEntry{
				Label: e.Label,
				Note:  e.Value,
				Href:  root(c) + "/endpoints/" + e.Value,
				Icon:  icons.Target,
			})
		}
		t := layout.PaletteGroup{Label: "Event types"}
		for _, name := range types {
			t.Entries = append(t.Entries, layout.PaletteEntry{
				Label: name,
				Href:  root(c) + "/event-types/" + url.PathEscape(name),
				Icon:  icons.Book,
			})
		}
		groups = append(groups, g, t)
		return nil
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, layout.Palette(shell, groups))
}

// paletteActions are the actor's actions that are possible on every page.
func (a *dashboard) paletteActions(c *handlers.Call) []layout.PaletteGroup {
	at, g := root(c), layout.PaletteGroup{Label: "Actions"}
	add := func(action access.Action, icon icons.Name, label, href string) {
		if c.Actor.May(action) {
			g.Entries = append(g.Entries, layout.PaletteEntry{Label: label, Href: at + href, Icon: icon})
		}
	}
	add(access.ChangeEndpoints, icons.Plus, "Add endpoint", "/endpoints/new")
	add(access.ChangeEndpoints, icons.Send, "Send test event", "/events/new")
	add(access.ActOnDeliveries, icons.Refresh, "Replay failures since yesterday", "/deliveries?status=dead_letter&since="+url.QueryEscape(pages.Yesterday(a.Now())))
	add(access.Read, icons.Warning, "Failed deliveries", "/deliveries?status=failed")
	add(access.Read, icons.Layers, "Bulk jobs", "/bulk-jobs")
	return []layout.PaletteGroup{g}
}

// endpointSettings are the settings of the endpoint whose page is open, by their labels.
func endpointSettings(path string) layout.PaletteGroup {
	g := layout.PaletteGroup{Label: "Settings of this endpoint"}
	for _, f := range endpoint.Fields() {
		if f.Label == "" {
			continue
		}
		href := path + "/settings#f-" + f.Name
		if f.Name == "filter" {
			href = path + "/filter"
		}
		g.Entries = append(g.Entries, layout.PaletteEntry{
			Label: f.Label,
			Note:  "Endpoint settings",
			Words: strings.ReplaceAll(f.Name, "_", " "),
			Href:  href,
			Icon:  icons.Sliders,
		})
	}
	return g
}
