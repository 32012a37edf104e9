package dashboard

import (
	"slices"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// rows is how many rows a page of a list shows.
const rows = 40

// labels are the names of endpoints in lists.
func (a *dashboard) labels(c *handlers.Call, q *db.Tx, ids []id.UUID) (map[id.UUID]pages.EndpointLabel, error) {
	slices.SortFunc(ids, id.UUID.Compare)
	found, err := q.EndpointLabels(c.Ctx(), sql.EndpointLabelsParams{
		TenantID: c.Actor.Tenant,
		Ids:      slices.Compact(ids),
	})
	if err != nil {
		return nil, err
	}
	out := make(map[id.UUID]pages.EndpointLabel, len(found))
	for _, e := range found {
		out[e.ID] = pages.EndpointLabel{
			ID: id.Endpoint.Format(e.ID), URL: egress.Mask(e.URL),
			Description: e.Description, Gone: e.Gone,
		}
	}
	return out, nil
}

// choices bounds the suggestions of a list's filter.
const choices = 200

// filterChoices are the endpoints and event types that a filter suggests.
func (a *dashboard) filterChoices(c *handlers.Call, q *db.Tx) (endpoints []components.Option, types []string,
	err error,
) {
	found, err := q.ListEndpointsNewest(c.Ctx(), sql.ListEndpointsNewestParams{
		TenantID: c.Actor.Tenant,
		Before:   id.Last, Most: choices,
	})
	if err != nil {
		return nil, nil, err
	}
	for _, e := range found {
		label := pages.EndpointLabel{URL: egress.Mask(e.URL), Description: e.Description}
		endpoints = append(endpoints, components.Option{Value: id.Endpoint.Format(e.ID), Label: label.Name()})
	}
	types, err = knownTypes(c, q, choices)
	return endpoints, types, err
}
