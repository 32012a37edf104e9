package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/access"
	"posthorn/domain/condition"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// endpointList is the query of the list. It has no pages: there are so few endpoints that its filters read all of them.
func endpointList() handlers.List {
	l := handlers.List{
		Name:    "endpoints",
		Rows:    mostEndpoints,
		Whole:   true,
		Filters: []handlers.Filter{handlers.BySearch, handlers.ByKind},
	}
	for _, s := range condition.Shown() {
		l.Statuses = append(l.Statuses, string(s))
	}
	return l
}

// listEndpoints lists the tenant's endpoints.
func (a *dashboard) listEndpoints(c *handlers.Call) error {
	p, err := c.Page(endpointList())
	if err != nil {
		return err
	}
	var list []show.Endpoint
	listeners := false
	err = c.Tx(func(q *db.Tx) (err error) {
		if listeners, err = endpoints.HasListeners(c.Ctx(), q, c.Actor.Tenant); err != nil {
			return err
		}
		list, err = endpoints.List(c.Ctx(), q, nil, c.Actor.Tenant, endpoints.ListOptions{Kind: p.EndpointKind(condition.State(p.Status)), Limit: mostEndpoints})
		return err
	})
	if err != nil {
		return err
	}
	v := pages.EndpointsView{
		Shell:     c.Shell("Endpoints", "endpoints"),
		Root:      root(c),
		MayChange: c.Actor.May(access.ChangeEndpoints),
		May:       c.Actor.May,
		Now:       a.Now(),
		Query:     p.Search,
		Status:    p.Status,
		Kind:      p.Kind,
		Listeners: listeners || p.Kind != "",
		Total:     len(list),
	}
	for _, e := range list {
		if (v.Status == "" || e.Condition.Is(condition.State(v.Status))) && mentions(e, v.Query) {
			v.Rows = append(v.Rows, e.Masked())
		}
	}
	slices.SortStableFunc(v.Rows, func(a, b show.Endpoint) int {
		return cmp.Compare(a.Condition.Shown().Rank(), b.Condition.Shown().Rank())
	})
	return c.Render(http.StatusOK, pages.Endpoints(v))
}

// mentions reports whether an endpoint's masked URL, description, or id contains a text.
func mentions(e show.Endpoint, text string) bool {
	text = strings.ToLower(text)
	return text == "" || strings.Contains(strings.ToLower(e.MaskedURL()), text) ||
		strings.Contains(strings.ToLower(e.Settings.Description), text) || strings.Contains(id.Endpoint.Format(e.ID), text)
}
