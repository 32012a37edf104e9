package dashboard

import (
	"net/url"
	"slices"
	"strings"

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

// listQuery is a list's address: the filter without empty fields, and the position. A time in a form has no offset:
// it is UTC.
type listQuery struct {
	filter        url.Values
	after, before id.UUID // the page is beyond one of them
	extra         url.Values
}

// readListQuery removes the position and the parameters in extra from the address, and leaves what Call.Page reads.
func readListQuery(c *handlers.Call, kind id.Kind, extra ...string) listQuery {
	given := c.Request.URL.Query()
	q := listQuery{filter: url.Values{}, extra: url.Values{}}
	for name, values := range given {
		value := strings.TrimSpace(values[0])
		switch {
		case value == "" && len(values) == 1:
		case name == "after":
			q.after, _ = kind.Parse(value)
		case name == "before":
			q.before, _ = kind.Parse(value)
		case slices.Contains(extra, name):
			q.extra[name] = values
		case name == "since", name == "until":
			q.filter[name] = []string{handlers.FormTime(value)}
		default:
			q.filter[name] = append([]string{value}, values[1:]...)
		}
	}
	if q.filter.Get("archived") == "false" {
		q.filter.Del("archived")
	}
	c.Request.URL.RawQuery = q.filter.Encode()
	return q
}

// at is the address of the list beyond a row, or of its start.
func (q listQuery) at(path, side, position string) string {
	v := url.Values{}
	for name, values := range q.filter {
		v[name] = values
	}
	if side != "" {
		v.Set(side, position)
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// here is the address of the page itself, at its last card: the days in storage.
func (q listQuery) here(path string, kind id.Kind) string {
	if q.after.IsZero() {
		return q.at(path, "", "") + pages.StoredAnchor
	}
	return q.at(path, "after", kind.Format(q.after)) + pages.StoredAnchor
}

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
