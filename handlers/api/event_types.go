package api

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/event"
	"posthorn/handlers"
)

func (a *api) createEventType(c *handlers.Call) error {
	var in EventTypeInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	e := in.entry()
	if err := e.Validate(); err != nil {
		return err
	}
	var row sql.EventType
	err := c.Tx(func(q *db.Tx) (err error) {
		row, err = a.catalogue(c).Create(c.Ctx(), q, e)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusCreated, eventTypeView(row))
}

// catalogue changes the event types of the caller's tenant.
func (a *api) catalogue(c *handlers.Call) endpoints.Catalogue {
	return endpoints.Catalogue{Tenant: c.Actor.Tenant, Most: a.Settings.TypesPerTenant, By: c.Author()}
}

func (a *api) listEventTypes(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "event-types", Ascending: true})
	if err != nil {
		return err
	}
	var rows []sql.EventType
	err = c.Tx(func(q *db.Tx) (err error) {
		ask := sql.ListEventTypesUpParams{TenantID: c.Actor.Tenant, After: string(p.After), Most: int32(p.Limit + 1)}
		if p.Ascending {
			rows, err = q.ListEventTypesUp(c.Ctx(), ask)
		} else {
			rows, err = q.ListEventTypesDown(c.Ctx(), sql.ListEventTypesDownParams(ask))
		}
		return err
	})
	if err != nil {
		return err
	}
	rows, next := cut(rows, p, func(t sql.EventType) []byte { return []byte(t.Name) })
	return c.Answer(http.StatusOK, EventTypePage{Data: views(rows, eventTypeView), NextCursor: cursorOrNull(next)})
}

// typeName reads the event type in the path. A malformed name becomes a name that no type has: whatever else is wrong
// with the request, the response is that of an unknown type.
func typeName(c *handlers.Call) string {
	name := c.Param("name")
	if !event.ValidType(name) {
		return "-"
	}
	return name
}

func (a *api) getEventType(c *handlers.Call) error {
	name := typeName(c)
	var row sql.EventType
	err := c.Tx(func(q *db.Tx) (err error) {
		row, err = q.GetEventType(c.Ctx(), sql.GetEventTypeParams{TenantID: c.Actor.Tenant, Name: name})
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, eventTypeView(row))
}

func (a *api) updateEventType(c *handlers.Call) error {
	name := typeName(c)
	var in EventTypePatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	var row sql.EventType
	err := c.Tx(func(q *db.Tx) (err error) {
		row, _, err = a.catalogue(c).Edit(c.Ctx(), q, name, in.apply)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, eventTypeView(row))
}

func (a *api) deleteEventType(c *handlers.Call) error {
	name := typeName(c)
	if err := c.NoBody(); err != nil {
		return err
	}
	err := c.Tx(func(q *db.Tx) error {
		return a.catalogue(c).Delete(c.Ctx(), q, name)
	})
	if err != nil {
		return err
	}
	return c.AnswerNothing()
}
