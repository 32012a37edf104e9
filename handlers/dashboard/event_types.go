package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"posthorn/db/endpoints"
	"posthorn/db/ledger"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/analytics"
	entries "posthorn/domain/catalogue"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// maxTypes is how many entries a tenant's catalogue may have, as in the API.
const maxTypes = 1000

func (a *dashboard) eventTypeRoutes() []handlers.Route {
	large := func(r handlers.Route) handlers.Route {
		r.MaxBody = 1 << 20
		return r
	}
	return []handlers.Route{
		page("GET", "/event-types", access.Read, a.listEventTypes),
		page("GET", "/event-types/new", access.ChangeEndpoints, a.newEventType),
		large(page("POST", "/event-types", access.ChangeEndpoints, a.saveEventType)),
		page("GET", "/event-types/:name", access.Read, a.showEventType),
		page("GET", "/event-types/:name/edit", access.ChangeEndpoints, a.editEventType),
		large(page("POST", "/event-types/:name", access.ChangeEndpoints, a.saveEventType)),
		page("POST", "/event-types/:name/delete", access.ChangeEndpoints, a.deleteEventType),
	}
}

func (a *dashboard) listEventTypes(c *handlers.Call) error {
	after := c.Query("after")
	v := pages.EventTypesView{Root: path(c, ""), Edits: c.Actor.May(access.ChangeEndpoints)}
	if after != "" {
		v.First = v.Root + "/event-types"
	}
	err := a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		found, err := q.ListEventTypesUp(c.Ctx(), sql.ListEventTypesUpParams{TenantID: c.Actor.Tenant, After: after, Most: rows + 1})
		if len(found) > rows {
			found = found[:rows]
			v.Older = v.Root + "/event-types?after=" + url.QueryEscape(found[rows-1].Name)
		}
		for _, t := range found {
			v.Rows = append(v.Rows, eventTypeRow(t))
		}
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Event types", "event-types")
	return c.Render(http.StatusOK, pages.EventTypes(v))
}

func eventTypeRow(t sql.EventType) pages.EventTypeRow {
	r := pages.EventTypeRow{Name: t.Name, Description: t.Description, Group: t.TypeGroup, Check: t.SchemaCheck, Deprecated: t.Deprecated, Created: t.CreatedAt}
	if t.Schema != nil {
		r.Schema = *t.Schema
	}
	if t.Example != nil {
		r.Example = *t.Example
	}
	return r
}

// readEventType reads the type that the path names; what can't be one is as unknown as any other.
func (a *dashboard) readEventType(c *handlers.Call, q *sql.Queries) (sql.EventType, error) {
	name := c.Param("name")
	if !event.ValidType(name) {
		return sql.EventType{}, fault.ErrNotFound
	}
	return q.GetEventType(c.Ctx(), sql.GetEventTypeParams{TenantID: c.Actor.Tenant, Name: name})
}

func (a *dashboard) showEventType(c *handlers.Call) error {
	v := pages.EventTypeView{Root: path(c, ""), Edits: c.Actor.May(access.ChangeEndpoints)}
	err := a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		t, err := a.readEventType(c, q)
		if err != nil {
			return err
		}
		v.Row = eventTypeRow(t)
		if v.Versions, err = versionRows(t); err != nil {
			return err
		}
		if err := a.typeVolume(c, q, t.Name, &v); err != nil {
			return err
		}
		found, err := q.ListEndpointsNewest(c.Ctx(), sql.ListEndpointsNewestParams{TenantID: c.Actor.Tenant, Before: id.Last, Most: choices})
		v.More = len(found) == choices
		for _, e := range found {
			if filter.MatchType(e.EventTypes, t.Name) {
				v.Subscribers = append(v.Subscribers, pages.EndpointLabel{ID: id.Endpoint.Format(e.ID), URL: maskedURL(e.URL), Description: e.Description})
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	v.Row.Schema, v.Row.Example = excerpt([]byte(v.Row.Schema), prettyShown).Text, excerpt([]byte(v.Row.Example), prettyShown).Text
	v.Shell = c.Shell(v.Row.Name, "event-types")
	return c.Render(http.StatusOK, pages.EventTypePage(v))
}

// typeDays is how many days the page of a type looks back.
const typeDays = 14

// typeVolume draws how much of a type was sent of late.
func (a *dashboard) typeVolume(c *handlers.Call, q *sql.Queries, of string, v *pages.EventTypeView) error {
	now := a.Now()
	window, err := analytics.Asked(analytics.Day, now.AddDate(0, 0, 1-typeDays), now, now)
	if err != nil {
		return err
	}
	series, err := ledger.AttemptSeries(c.Ctx(), q, c.Actor.Tenant, ledger.StatsAsked{Window: window, By: analytics.Day, EventType: of})
	v.Volume, v.Success, v.Latency = attemptCharts(series.Rows(), window, analytics.Day)
	return err
}

// versionRows are a type's payload versions, the oldest first.
func versionRows(t sql.EventType) ([]pages.VersionRow, error) {
	versions, err := entries.DecodeVersions(t.Versions)
	var out []pages.VersionRow
	for _, name := range entries.VersionNames(versions) {
		one := versions[name]
		out = append(out, pages.VersionRow{Name: name, Schema: excerpt(one.Schema, prettyShown).Text, Example: excerpt(one.Example, prettyShown).Text})
	}
	return out, err
}

func (a *dashboard) newEventType(c *handlers.Call) error {
	return a.showTypeForm(c, http.StatusOK, "", url.Values{"schema_check": {"off"}}, nil)
}

func (a *dashboard) editEventType(c *handlers.Call) error {
	var row sql.EventType
	err := a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) (err error) {
		row, err = a.readEventType(c, q)
		return err
	})
	if err != nil {
		return err
	}
	r := eventTypeRow(row)
	form := url.Values{"description": {r.Description}, "group": {r.Group}, "schema": {r.Schema}, "example": {r.Example}, "schema_check": {r.Check}}
	if r.Deprecated {
		form.Set("deprecated", "true")
	}
	return a.showTypeForm(c, http.StatusOK, row.Name, form, nil)
}

func (a *dashboard) showTypeForm(c *handlers.Call, status int, of string, form url.Values, wrong map[string]string) error {
	v := pages.EventTypeFormView{Root: path(c, ""), Of: of, Wrong: wrong}
	field := func(name, label, hint string) components.FieldProps {
		return components.FieldProps{Name: name, Label: label, Hint: hint, Value: form.Get(name), Error: wrong[name], Optional: true}
	}
	if of == "" {
		name := field("name", "Name", "Parts joined by full stops, such as order.completed. It can't be changed later.")
		name.Optional, name.Required, name.Mono = false, true, true
		v.Fields = append(v.Fields, name)
	}
	v.Fields = append(v.Fields, field("group", "Group", "Types of a group stand together where one subscribes."))
	description := field("description", "Description", "When it is sent, for those who receive it.")
	schema, example := field("schema", "JSON Schema", "Of the data."), field("example", "Example", "Of the data, as JSON.")
	schema.Mono, example.Mono, schema.Rows, example.Rows = true, true, 8, 6
	v.Texts = []components.FieldProps{description, schema, example}
	v.Check = components.FieldProps{Name: "schema_check", Label: "What the schema does", Value: form.Get("schema_check"), Error: wrong["schema_check"]}
	v.Retired = components.ChoiceProps{Name: "deprecated", Label: "Deprecated", Hint: "It is still sent, and new endpoints should not ask for it.", Checked: form.Get("deprecated") == "true"}
	v.Shell = c.Shell("Event type", "event-types")
	return c.Render(status, pages.EventTypeForm(v))
}

// saveEventType makes an event type, or changes the one that the path names.
func (a *dashboard) saveEventType(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	of := c.Param("name")
	e := entries.Entry{
		Name: strings.TrimSpace(form.Get("name")), Description: strings.TrimSpace(form.Get("description")), Group: strings.TrimSpace(form.Get("group")),
		Check: entries.Mode(form.Get("schema_check")), Deprecated: form.Get("deprecated") == "true",
		Schema: given(form.Get("schema")), Example: given(form.Get("example")),
	}
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		// First the routes: a strict catalogue decides what is accepted, and the version's lock makes the count exact.
		if _, err := q.BumpRouting(c.Ctx(), c.Actor.Tenant); err != nil {
			return err
		}
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
	c.Flash("Saved.")
	return c.Redirect(path(c, "/event-types/"+of))
}

// given is JSON that a form holds; nothing is nil.
func given(text string) json.RawMessage {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func (a *dashboard) addType(c *handlers.Call, q *sql.Queries, e entries.Entry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	made, err := endpoints.AddEventType(c.Ctx(), q, c.Actor.Tenant, e)
	if err != nil {
		return err
	}
	if !made {
		return &fault.Error{Kind: fault.Conflict, Code: "event_type_exists", Detail: "There is an event type of this name already. Change it instead, or choose another name.", Fields: []fault.Field{{Name: "name", Code: "event_type_exists", Detail: "There is an event type of this name already. Change it instead, or choose another name."}}}
	}
	n, err := q.CountEventTypes(c.Ctx(), c.Actor.Tenant)
	if err != nil {
		return err
	}
	if n > maxTypes {
		return fault.New(fault.Conflict, "event_types_limit", fmt.Sprintf("There may be %d event types in a tenant. Delete one that is not needed.", maxTypes))
	}
	return c.Audit(q, "event_type.created", "event_type", e.Name, "", nil)
}

func (a *dashboard) changeType(c *handlers.Call, q *sql.Queries, e entries.Entry) error {
	row, err := a.readEventType(c, q)
	if err != nil {
		return err
	}
	if e.Versions, err = entries.DecodeVersions(row.Versions); err != nil {
		return err
	}
	e.Name = row.Name
	if err := e.Validate(); err != nil {
		return err
	}
	if _, err := endpoints.ChangeEventType(c.Ctx(), q, c.Actor.Tenant, e); err != nil {
		return err
	}
	return c.Audit(q, "event_type.updated", "event_type", row.Name, "", nil)
}

func (a *dashboard) deleteEventType(c *handlers.Call) error {
	name := c.Param("name")
	if !event.ValidType(name) {
		return fault.ErrNotFound
	}
	err := a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		if _, err := q.BumpRouting(c.Ctx(), c.Actor.Tenant); err != nil {
			return err
		}
		gone, err := q.DeleteEventType(c.Ctx(), sql.DeleteEventTypeParams{TenantID: c.Actor.Tenant, Name: name})
		if err == nil && gone == 0 {
			err = fault.ErrNotFound
		}
		if err != nil {
			return err
		}
		return c.Audit(q, "event_type.deleted", "event_type", name, "", nil)
	})
	if err != nil {
		return err
	}
	c.Flash("Deleted: " + name + ".")
	return c.Redirect(path(c, "/event-types"))
}
