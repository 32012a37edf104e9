package dashboard

import (
	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
)

// rows is how many rows a page of a list shows.
const rows = 40

// choices bounds the suggestions of a list's filter.
const choices = 200

// filterChoices are the endpoints and event types that a filter suggests.
func (a *dashboard) filterChoices(c *handlers.Call, q *db.Tx) (options []components.Option, types []string, err error) {
	found, err := endpoints.Newest(c.Ctx(), q, c.Actor.Tenant, choices)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range found {
		options = append(options, components.Option{Value: id.Endpoint.Format(e.ID), Label: e.Name()})
	}
	types, err = knownTypes(c, q, choices)
	return options, types, err
}
