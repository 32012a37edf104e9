package dashboard

import (
	"net/http"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// feedRows is how many of the newest deliveries the overview shows.
const feedRows = 10

// home shows the overview.
func (a *dashboard) home(c *handlers.Call) error {
	now := a.Now()
	var h endpoints.TenantHealth
	chosen := readSpan(c, c.Actor.Tenant.Time(), now)
	var rows []sql.Endpoint
	var feed []show.Delivery
	var summary health.Summary
	var conditions map[string]condition.Condition
	err := c.Tx(func(q *db.Tx) (err error) {
		if rows, err = endpoints.Newest(c.Ctx(), q, c.Actor.Tenant, mostEndpoints); err != nil {
			return err
		}
		if h, err = endpoints.HealthInputs(c.Ctx(), q, c.Actor.Tenant, now); err != nil {
			return err
		}
		summary = health.Summarise(h.Inputs)
		if conditions, err = conditionsOf(c, q, rows, summary.Alerts, now); err != nil {
			return err
		}
		if err = chosen.read(c, q, nil, now); err != nil {
			return err
		}
		feed, err = newest(c, q, id.UUID{})
		return err
	})
	if err != nil {
		return err
	}
	names := namesOf(rows)
	v := pages.OverviewView{
		Shell: c.Shell("Overview", "overview"), Root: root(c), MayChange: c.Actor.May(access.ChangeEndpoints),
		MayKeys: c.Actor.May(access.ManageKeys), MayAct: c.Actor.May(access.ActOnDeliveries),
		Summary: summary, Conditions: conditions, May: c.Actor.May,
		Steps: firstSteps(c, rows, feed, h), Feed: feedView(c, feed), LastDigest: h.LastDigest,
	}
	v.Volume, v.Success, v.Latency = chosen.charts()
	v.Range = chosen.view(root(c) + "/")
	v.DeadLetters = h.DeadLetters
	for _, r := range h.Top {
		v.Failing = append(v.Failing, pages.FailingEndpoint{
			Href: endpointPath(c, r.Endpoint), URL: names[r.Endpoint],
			Failed: r.Failed(), Attempts: r.Total(),
		})
	}
	return c.Render(http.StatusOK, pages.Overview(v))
}

// conditionsOf are the conditions of the endpoints with alerts, by id.
func conditionsOf(
	c *handlers.Call, q *db.Tx, rows []sql.Endpoint, alerts []health.Alert, now time.Time,
) (map[string]condition.Condition, error) {
	about := slices.DeleteFunc(slices.Clone(rows), func(e sql.Endpoint) bool {
		return !slices.ContainsFunc(alerts, func(a health.Alert) bool { return a.Endpoint == id.Endpoint.Format(e.ID) })
	})
	found, err := endpoints.Conditions(c.Ctx(), q, c.Actor.Tenant, about, now)
	if err != nil {
		return nil, err
	}
	out := make(map[string]condition.Condition, len(found))
	for endpointID, is := range found {
		out[id.Endpoint.Format(endpointID)] = is
	}
	return out, nil
}

// live shows the newest deliveries, for the overview to refresh.
func (a *dashboard) live(c *handlers.Call) error {
	var feed []show.Delivery
	err := c.Tx(func(q *db.Tx) (err error) {
		feed, err = newest(c, q, id.UUID{})
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Feed(feedView(c, feed)))
}

// newest reads the newest deliveries of the tenant, or of one endpoint.
func newest(c *handlers.Call, q *db.Tx, of id.UUID) ([]show.Delivery, error) {
	page, err := deliveries.List(c.Ctx(), q, c.Actor.Tenant, deliveries.ListOptions{Endpoint: of, Range: show.Range{Limit: feedRows}})
	return page.Rows, err
}

// namesOf are the names of endpoints: the description, else the masked URL.
func namesOf(rows []sql.Endpoint) map[id.UUID]string {
	names := make(map[id.UUID]string, len(rows))
	for _, e := range rows {
		names[e.ID] = show.Destination{URL: e.URL, Description: e.Description}.Name()
	}
	return names
}

func feedView(c *handlers.Call, rows []show.Delivery) pages.FeedView {
	return pages.FeedView{Poll: root(c) + "/live", Root: root(c), Rows: rows}
}

// firstSteps is the progress of the tenant's setup. A tenant that delivered something in the last day needs no steps.
func firstSteps(c *handlers.Call, rows []sql.Endpoint, feed []show.Delivery,
	h endpoints.TenantHealth,
) pages.FirstSteps {
	s := pages.FirstSteps{
		HasEndpoint: len(rows) > 0, HasEvent: len(feed) > 0,
		HasDelivered: h.Day[health.ClassOK] > 0 || len(feed) == feedRows,
	}
	for _, e := range rows {
		s.HasActive = s.HasActive || e.Status == string(endpoint.Active)
		if s.FirstEndpoint == "" || e.Status == string(endpoint.Active) {
			s.FirstEndpoint = endpointPath(c, e.ID)
		}
	}
	for _, d := range feed {
		s.HasDelivered = s.HasDelivered || d.Status == delivery.Delivered
	}
	return s
}
