package api

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/domain/catalogue"
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
	err := c.Tx(func(q *db.Tx) (err error) {
		e, err = a.catalogue(c).Create(c.Ctx(), q, e)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusCreated, eventTypeView(e))
}

// catalogue changes the event types of the caller's tenant.
func (a *api) catalogue(c *handlers.Call) events.Catalogue {
	return events.Catalogue{Tenant: c.Actor.Tenant, Limit: a.Settings.TypesPerTenant, By: c.Author()}
}

func (a *api) listEventTypes(c *handlers.Call) error {
	return list(c, handlers.List{Name: "event-types", Ascending: true}, ranged(c, events.Types), eventTypeView)
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
	return respond(c, http.StatusOK, func(q *db.Tx) (catalogue.Entry, error) {
		return events.ReadType(c.Ctx(), q, c.Actor.Tenant, name)
	}, eventTypeView)
}

func (a *api) updateEventType(c *handlers.Call) error {
	name := typeName(c)
	var in EventTypePatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	var e catalogue.Entry
	err := c.Tx(func(q *db.Tx) (err error) {
		e, _, err = a.catalogue(c).Edit(c.Ctx(), q, name, in.apply)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, eventTypeView(e))
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
