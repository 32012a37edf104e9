package api

import (
	"net/http"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/catalogue"
	"posthorn/domain/event"
	"posthorn/domain/fault"
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
	err := a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) (err error) {
		row, err = a.addEventType(c, q, e)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusCreated, eventTypeView(row))
}

// addEventType stores a new entry of the catalogue, which has been checked, with its line in the audit log.
func (a *api) addEventType(c *handlers.Call, q *sql.Queries, e catalogue.Entry) (row sql.EventType, err error) {
	// First the routes: a strict catalogue decides what is accepted, and the version's lock makes the count exact.
	if _, err := q.BumpRouting(c.Ctx(), c.Actor.Tenant); err != nil {
		return row, err
	}
	made, err := endpoints.AddEventType(c.Ctx(), q, c.Actor.Tenant, e)
	if err != nil {
		return row, err
	}
	if !made {
		return row, fault.New(fault.Conflict, "event_type_exists", "There is an event type of this name already. Change it instead, or choose another name.")
	}
	n, err := q.CountEventTypes(c.Ctx(), c.Actor.Tenant)
	if err != nil {
		return row, err
	}
	if n > int64(a.Settings.TypesPerTenant) {
		return row, tooMany("event_types_limit", "event types", a.Settings.TypesPerTenant)
	}
	if row, err = q.GetEventType(c.Ctx(), sql.GetEventTypeParams{TenantID: c.Actor.Tenant, Name: e.Name}); err != nil {
		return row, err
	}
	return row, c.Audit(q, "event_type.created", "event_type", e.Name, "", nil)
}

func (a *api) listEventTypes(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "event-types", Ascending: true})
	if err != nil {
		return err
	}
	var rows []sql.EventType
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) (err error) {
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

// typeName reads the event type that the path names; what can't be one is as unknown as any other.
func typeName(c *handlers.Call) (string, error) {
	name := c.Param("name")
	if !event.ValidType(name) {
		return "", fault.ErrNotFound
	}
	return name, nil
}

func (a *api) getEventType(c *handlers.Call) error {
	name, err := typeName(c)
	if err != nil {
		return err
	}
	var row sql.EventType
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		row, err = q.GetEventType(c.Ctx(), sql.GetEventTypeParams{TenantID: c.Actor.Tenant, Name: name})
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, eventTypeView(row))
}

func (a *api) updateEventType(c *handlers.Call) error {
	name, err := typeName(c)
	if err != nil {
		return err
	}
	var in EventTypePatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	var row sql.EventType
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		row, err = a.changeEventType(c, q, name, in)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, eventTypeView(row))
}

// changeEventType gives an event type the fields that are there. What changes nothing is not audited.
func (a *api) changeEventType(c *handlers.Call, q *sql.Queries, name string, in EventTypePatch) (sql.EventType, error) {
	// First the routes: their version's lock keeps two changes apart, and what is checked of emissions changes with it.
	if _, err := q.BumpRouting(c.Ctx(), c.Actor.Tenant); err != nil {
		return sql.EventType{}, err
	}
	row, err := q.GetEventType(c.Ctx(), sql.GetEventTypeParams{TenantID: c.Actor.Tenant, Name: name})
	if err != nil {
		return row, err
	}
	e, err := stored(row)
	if err != nil {
		return row, err
	}
	in.apply(&e)
	if err := e.Validate(); err != nil {
		return row, err
	}
	after, err := endpoints.ChangeEventType(c.Ctx(), q, c.Actor.Tenant, e)
	if err != nil || !differ(row, after) {
		return after, err
	}
	return after, c.Audit(q, "event_type.updated", "event_type", name, "", nil)
}

// differ reports whether two rows of an event type say something else.
func differ(a, b sql.EventType) bool {
	same := func(x, y *string) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) }
	return a.Description != b.Description || a.TypeGroup != b.TypeGroup || a.SchemaCheck != b.SchemaCheck || a.Deprecated != b.Deprecated ||
		!same(a.Schema, b.Schema) || !same(a.Example, b.Example) || !same(a.Versions, b.Versions)
}

func (a *api) deleteEventType(c *handlers.Call) error {
	name, err := typeName(c)
	if err != nil {
		return err
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		if _, err := q.BumpRouting(c.Ctx(), c.Actor.Tenant); err != nil {
			return err
		}
		gone, err := q.DeleteEventType(c.Ctx(), sql.DeleteEventTypeParams{TenantID: c.Actor.Tenant, Name: name})
		if err != nil {
			return err
		}
		if gone == 0 {
			return fault.ErrNotFound
		}
		return c.Audit(q, "event_type.deleted", "event_type", name, "", nil)
	})
	if err != nil {
		return err
	}
	return c.AnswerNothing()
}
