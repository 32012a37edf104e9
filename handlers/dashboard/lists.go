package dashboard

import (
	"slices"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
)

// rows is how many rows a page of a list shows.
const rows = 40

// labels are the names of endpoints in lists.
func (a *dashboard) labels(c *handlers.Call, q *db.Tx, ids []id.UUID) (map[id.UUID]show.EndpointLabel, error) {
	slices.SortFunc(ids, id.UUID.Compare)
	return endpoints.Labels(c.Ctx(), q, c.Actor.Tenant, slices.Compact(ids))
}

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
