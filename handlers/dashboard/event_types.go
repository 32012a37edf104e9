package dashboard

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/events"
	"posthorn/db/ledger"
	"posthorn/domain/access"
	"posthorn/domain/analytics"
	"posthorn/domain/catalogue"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) eventTypeRoutes() []handlers.Route {
	large := func(r handlers.Route) handlers.Route {
		r.MaxBody = 1 << 20
		return r
	}
	return []handlers.Route{
		page("GET", "/event-types", access.ReadEventTypes, a.listEventTypes),
		page("GET", "/event-types/new", access.ChangeEventTypes, a.newEventType),
		large(page("POST", "/event-types", access.ChangeEventTypes, a.saveEventType)),
		page("GET", "/event-types/:name", access.ReadEventTypes, a.showEventType),
		page("GET", "/event-types/:name/edit", access.ChangeEventTypes, a.editEventType),
		large(page("POST", "/event-types/:name", access.ChangeEventTypes, a.saveEventType)),
		page("GET", "/catalog/:format", access.ReadEventTypes, a.exportCatalogue),
		page("GET", "/catalogue/:format", access.ReadEventTypes, a.exportCatalogue), // its former address
		page("POST", "/event-types/:name/delete", access.ChangeEventTypes, a.deleteEventType),
	}
}

func (a *dashboard) listEventTypes(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "event-types", Ascending: true, Rows: rows})
	if err != nil {
		return err
	}
	v := pages.EventTypesView{Root: path(c, ""), Edits: c.Actor.May(access.ChangeEventTypes)}
	err = c.Tx(func(q *db.Tx) error {
		found, err := handlers.ReadPage(p, nil, func(r show.Range) (show.Page[catalogue.Entry], error) {
			return events.Types(c.Ctx(), q, c.Actor.Tenant, r)
		})
		v.Rows, v.First, v.Older = found.Rows, found.Newer, found.Older
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Event types", "event-types")
	return c.Render(http.StatusOK, pages.EventTypes(v))
}

// exportCatalogue sends the event types as a document.
func (a *dashboard) exportCatalogue(c *handlers.Call) error {
	format := catalogue.Document(c.Param("format"))
	if !slices.Contains(catalogue.Documents(), format) {
		return fault.ErrNotFound
	}
	var document []byte
	err := c.Tx(func(q *db.Tx) (err error) {
		document, err = events.PublishCatalogue(c.Ctx(), q, c.Actor.Tenant, format)
		return err
	})
	if err != nil {
		return err
	}
	return download(c, "event-types."+string(format)+".json", document)
}

// readEventType reads the type in the path. A malformed name is not found, like an unknown one.
func readEventType(c *handlers.Call, q *db.Tx) (catalogue.Entry, error) {
	name := c.Param("name")
	if !event.ValidType(name) {
		return catalogue.Entry{}, fault.ErrNotFound
	}
	return events.ReadType(c.Ctx(), q, c.Actor.Tenant, name)
}

func (a *dashboard) showEventType(c *handlers.Call) error {
	v := pages.EventTypeView{Root: path(c, ""), Edits: c.Actor.May(access.ChangeEventTypes)}
	err := c.Tx(func(q *db.Tx) error {
		var err error
		if v.Type, err = readEventType(c, q); err != nil {
			return err
		}
		if err := a.typeVolume(c, q, v.Type.Name, &v); err != nil {
			return err
		}
		v.Subscribers, v.More, err = endpoints.Subscribers(c.Ctx(), q, c.Actor.Tenant, v.Type.Name, choices)
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell(v.Type.Name, "event-types")
	return c.Render(http.StatusOK, pages.EventTypePage(v))
}

// typeDays is how many past days the page of a type shows.
const typeDays = 14

// typeVolume draws how many events of a type were emitted in the last days.
func (a *dashboard) typeVolume(c *handlers.Call, q *db.Tx, of string, v *pages.EventTypeView) error {
	now := a.Now()
	window, err := analytics.Asked(analytics.Day, now.AddDate(0, 0, 1-typeDays), now, now)
	if err != nil {
		return err
	}
	series, err := ledger.AttemptSeries(c.Ctx(), q, c.Actor.Tenant, ledger.StatsAsked{
		Window:    window,
		By:        analytics.Day,
		EventType: of,
	})
	v.Volume, v.Success, v.Latency = attemptCharts(series.Rows(), window, analytics.Day.Bucket())
	return err
}

func (a *dashboard) newEventType(c *handlers.Call) error {
	return a.showTypeForm(c, http.StatusOK, "", url.Values{"schema_check": {"off"}}, nil)
}

func (a *dashboard) editEventType(c *handlers.Call) error {
	var e catalogue.Entry
	err := c.Tx(func(q *db.Tx) (err error) {
		e, err = readEventType(c, q)
		return err
	})
	if err != nil {
		return err
	}
	form := url.Values{
		"description":  {e.Description},
		"group":        {e.Group},
		"schema":       {string(e.Schema)},
		"example":      {string(e.Example)},
		"schema_check": {string(e.Check)},
		"deprecated":   {strconv.FormatBool(e.Deprecated)},
	}
	return a.showTypeForm(c, http.StatusOK, e.Name, form, nil)
}

func (a *dashboard) showTypeForm(c *handlers.Call, status int, of string, form url.Values, wrong map[string]string) error {
	v := pages.EventTypeFormView{Root: path(c, ""), Of: of, Wrong: wrong}
	field := func(name, label, hint string) components.FieldProps {
		return components.FieldProps{
			Name:     name,
			Label:    label,
			Hint:     hint,
			Value:    form.Get(name),
			Error:    wrong[name],
			Optional: true,
		}
	}
	if of == "" {
		name := field("name", "Name", "Segments joined by dots, such as order.completed. It can't be changed later.")
		name.Optional, name.Required, name.Mono = false, true, true
		v.Fields = append(v.Fields, name)
	}
	v.Fields = append(v.Fields, field("group", "Group", "Types of a group are listed together when subscribing."))
	description := field("description", "Description", "When the event is sent. Shown to receivers.")
	schema, example := field("schema", "JSON Schema", "The schema of the event's data."), field("example", "Example", "Example data, as JSON.")
	schema.Mono, example.Mono, schema.Rows, example.Rows = true, true, 8, 6
	v.Texts = []components.FieldProps{description, schema, example}
	v.Check = components.FieldProps{Name: "schema_check", Label: "Schema check", Value: form.Get("schema_check"), Error: wrong["schema_check"]}
	v.Deprecated = components.ChoiceProps{Name: "deprecated", Label: "Deprecated", Hint: "Still sent, but new endpoints shouldn't subscribe to it.", Checked: form.Get("deprecated") == "true"}
	v.Shell = c.Shell("Event type", "event-types")
	return c.Render(status, pages.EventTypeForm(v))
}

// saveEventType creates an event type, or changes the one in the path.
func (a *dashboard) saveEventType(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	of := c.Param("name")
	e := catalogue.Entry{
		Name:        strings.TrimSpace(form.Get("name")),
		Description: strings.TrimSpace(form.Get("description")),
		Group:       strings.TrimSpace(form.Get("group")),
		Check:       catalogue.Mode(form.Get("schema_check")),
		Deprecated:  form.Get("deprecated") == "true",
		Schema:      given(form.Get("schema")),
		Example:     given(form.Get("example")),
	}
	err = c.Tx(func(q *db.Tx) error {
		if of != "" {
			return a.changeType(c, q, e)
		}
		return a.addType(c, q, e)
	})
	if err != nil {
		if handlers.NotInput(err) != nil {
			return err
		}
		return a.showTypeForm(c, handlers.Status(err), of, form, handlers.WrongFields(err))
	}
	if of == "" {
		of = e.Name
	}
	return c.Done(path(c, "/event-types/"+of), "Saved.")
}

// given is JSON in a form; empty is nil.
func given(text string) json.RawMessage {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func (a *dashboard) addType(c *handlers.Call, q *db.Tx, e catalogue.Entry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	_, err := catalogueOf(c).Create(c.Ctx(), q, e)
	if known := fault.As(err); fault.Is(err, "event_type_exists") {
		shown := *known
		shown.Fields = []fault.Field{{Name: "name", Code: known.Code, Detail: known.Detail}}
		return &shown
	}
	return err
}

// catalogueOf changes the event types of the caller's tenant.
func catalogueOf(c *handlers.Call) events.Catalogue {
	return events.Catalogue{Tenant: c.Actor.Tenant, Limit: events.MaxTypes, By: c.Author()}
}

func (a *dashboard) changeType(c *handlers.Call, q *db.Tx, e catalogue.Entry) error {
	name := c.Param("name")
	if !event.ValidType(name) {
		return fault.ErrNotFound
	}
	_, _, err := catalogueOf(c).Edit(c.Ctx(), q, name, func(was *catalogue.Entry) {
		e.Name, e.Versions = was.Name, was.Versions
		*was = e
	})
	return err
}

func (a *dashboard) deleteEventType(c *handlers.Call) error {
	name := c.Param("name")
	if !event.ValidType(name) {
		return fault.ErrNotFound
	}
	err := c.Tx(func(q *db.Tx) error {
		return catalogueOf(c).Delete(c.Ctx(), q, name)
	})
	if err != nil {
		return err
	}
	return c.Done(path(c, "/event-types"), "Deleted: "+name+".")
}
