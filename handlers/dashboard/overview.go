package dashboard

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/domain/access"
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
	var feed []show.Delivery
	err := c.Tx(func(q *db.Tx) (err error) {
		if h, err = endpoints.ReadTenantHealth(c.Ctx(), q, c.Actor.Tenant, now); err != nil {
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
	v := pages.OverviewView{
		Shell:      c.Shell("Overview", "overview"),
		Root:       root(c),
		MayChange:  c.Actor.May(access.ChangeEndpoints),
		MayKeys:    c.Actor.May(access.ManageKeys),
		MayAct:     c.Actor.May(access.ActOnDeliveries),
		May:        c.Actor.May,
		Summary:    h.Summary,
		Steps:      firstSteps(c, feed, h),
		Feed:       feedView(c, feed),
		LastDigest: h.LastDigest,
	}
	v.Volume, v.Success, v.Latency = chosen.charts()
	v.Range = chosen.view(root(c) + "/")
	v.DeadLetters = h.DeadLetters
	for _, r := range h.Top {
		v.Failing = append(v.Failing, pages.FailingEndpoint{
			Href:     endpointPath(c, r.Endpoint),
			URL:      r.Name,
			Failed:   r.Failed(),
			Attempts: r.Total(),
		})
	}
	return c.Render(http.StatusOK, pages.Overview(v))
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

func feedView(c *handlers.Call, rows []show.Delivery) pages.FeedView {
	return pages.FeedView{Poll: root(c) + "/live", Root: root(c), Rows: rows}
}

// firstSteps is the progress of the tenant's setup. A tenant that delivered something in the last day needs no steps.
func firstSteps(c *handlers.Call, feed []show.Delivery, h endpoints.TenantHealth) pages.FirstSteps {
	s := pages.FirstSteps{
		HasEndpoint:  len(h.Endpoints) > 0,
		HasEvent:     len(feed) > 0,
		HasDelivered: h.Day[health.ClassOK] > 0 || len(feed) == feedRows,
	}
	for _, e := range h.Endpoints {
		active := e.Status == endpoint.Active
		s.HasActive = s.HasActive || active
		if s.FirstEndpoint == "" || active {
			s.FirstEndpoint = endpointPath(c, e.ID)
		}
	}
	for _, d := range feed {
		s.HasDelivered = s.HasDelivered || d.Status == delivery.Delivered
	}
	return s
}
