package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/ledger"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/analytics"
	"posthorn/domain/condition"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// listEndpoints lists the tenant's endpoints. There are so few that the filters read all of them.
func (a *dashboard) listEndpoints(c *handlers.Call) error {
	now := a.Now()
	var rows []sql.Endpoint
	var states []sql.EndpointsHealthRow
	var conditions map[id.UUID]condition.Condition
	var series analytics.Series
	err := c.Tx(func(q *db.Tx) (err error) {
		if rows, err = endpoints.Newest(c.Ctx(), q, c.Actor.Tenant, mostEndpoints); err != nil {
			return err
		}
		if states, err = q.EndpointsHealth(c.Ctx(), c.Actor.Tenant); err != nil {
			return err
		}
		if conditions, err = endpoints.Conditions(c.Ctx(), q, c.Actor.Tenant, rows, now); err != nil {
			return err
		}
		day := analytics.Between(now.Add(-24*time.Hour), now.Add(time.Minute), now)
		series, err = ledger.AttemptSeries(c.Ctx(), q, c.Actor.Tenant, ledger.StatsAsked{Window: day, ByEndpoint: true})
		return err
	})
	if err != nil {
		return err
	}
	v := pages.EndpointsView{
		Shell: c.Shell("Endpoints", "endpoints"), Root: root(c) + "/endpoints", MayChange: c.Actor.May(access.ChangeEndpoints), May: c.Actor.May,
		Query: strings.TrimSpace(c.Query("q")), Status: c.Query("status"), Total: len(rows),
	}
	rates, succeeded := map[id.UUID]health.Rate{}, map[id.UUID]time.Time{}
	for _, r := range series.Rows() {
		rates[r.Endpoint] = r.Attempts.Rate()
	}
	for _, s := range states {
		succeeded[s.ID] = endpoints.Counters(s.EndpointHealth).LastSuccessAt
	}
	for _, e := range rows {
		is := conditions[e.ID]
		if v.Status != "" && string(is.State) != v.Status || !mentions(e, v.Query) {
			continue
		}
		v.Rows = append(v.Rows, pages.EndpointRow{
			ID: id.Endpoint.Format(e.ID), Href: endpointPath(c, e.ID), Kind: endpoint.Kind(e.Kind),
			URL: egress.Mask(e.URL), Description: e.Description, Condition: is,
			EventTypes: e.EventTypes, Rate: rates[e.ID], LastAnswer: succeeded[e.ID],
		})
	}
	slices.SortStableFunc(v.Rows, func(a, b pages.EndpointRow) int {
		return cmp.Compare(a.Condition.State.Rank(), b.Condition.State.Rank())
	})
	return c.Render(http.StatusOK, pages.Endpoints(v))
}

// mentions reports whether an endpoint's masked URL, description, or id contains a text.
func mentions(e sql.Endpoint, text string) bool {
	text = strings.ToLower(text)
	return text == "" || strings.Contains(strings.ToLower(egress.Mask(e.URL)), text) ||
		strings.Contains(strings.ToLower(e.Description), text) || strings.Contains(id.Endpoint.Format(e.ID), text)
}
