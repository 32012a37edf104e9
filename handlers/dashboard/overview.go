package dashboard

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/ledger"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/analytics"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/charts"
	"posthorn/views/pages"
)

// feedRows is how many of the newest deliveries the overview shows.
const feedRows = 10

// home answers the overview.
func (a *dashboard) home(c *handlers.Call) error {
	now := a.Now()
	var h endpoints.TenantHealth
	var hours []analytics.Row
	var window analytics.Window
	var rows []sql.Endpoint
	var feed []deliveries.State
	err := a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) (err error) {
		if rows, err = endpoints.Newest(c.Ctx(), q, c.Actor.Tenant, mostEndpoints); err != nil {
			return err
		}
		if h, err = endpoints.HealthInputs(c.Ctx(), q, c.Actor.Tenant, now); err != nil {
			return err
		}
		if hours, window, err = lastDay(c, q, nil, now); err != nil {
			return err
		}
		feed, err = newest(c, q, nil)
		return err
	})
	if err != nil {
		return err
	}
	urls, names := urlsOf(rows), map[id.UUID]string{}
	for _, e := range rows {
		names[e.ID] = e.Description
	}
	v := pages.OverviewView{
		Shell: c.Shell("Overview", "overview"), Root: root(c), MayChange: c.Actor.May(access.ChangeEndpoints), MayKeys: c.Actor.May(access.ManageKeys), Summary: health.Summarise(h.Inputs),
		Steps: firstSteps(c, rows, feed, h), Feed: feedView(c, feed, urls), LastDigest: h.LastDigest,
	}
	v.Volume, v.Success, v.Latency = attemptCharts(hours, window, analytics.Hour)
	v.DeadLetters = h.DeadLetters
	for _, r := range h.Top {
		v.Failing = append(v.Failing, pages.FailingEndpoint{Href: endpointPath(c, r.Endpoint), URL: cmp.Or(names[r.Endpoint], egress.Mask(urls[r.Endpoint])), Failed: r.Failed(), Attempts: r.Total()})
	}
	// Of those that fail most, the one that fails all the time comes first, and then the one that fails more often.
	slices.SortStableFunc(v.Failing, func(a, b pages.FailingEndpoint) int {
		return cmp.Or(cmp.Compare(b.Share(), a.Share()), cmp.Compare(b.Failed, a.Failed))
	})
	return c.Render(http.StatusOK, pages.Overview(v))
}

// live answers the newest deliveries alone, for the overview to renew.
func (a *dashboard) live(c *handlers.Call) error {
	var rows []sql.Endpoint
	var feed []deliveries.State
	err := a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) (err error) {
		if rows, err = endpoints.Newest(c.Ctx(), q, c.Actor.Tenant, mostEndpoints); err != nil {
			return err
		}
		feed, err = newest(c, q, nil)
		return err
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Feed(feedView(c, feed, urlsOf(rows))))
}

// newest reads the newest deliveries of the tenant, or of one endpoint.
func newest(c *handlers.Call, q *sql.Queries, of *id.UUID) ([]deliveries.State, error) {
	page, err := deliveries.List(c.Ctx(), q, c.Actor.Tenant, deliveries.ListOptions{Endpoint: of, Most: feedRows})
	return page.Rows, err
}

// lastDay reads the attempts of the last 24 hours by the hour, of all endpoints or of one.
func lastDay(c *handlers.Call, q *sql.Queries, of *id.UUID, now time.Time) ([]analytics.Row, analytics.Window, error) {
	window, err := analytics.Asked(analytics.Hour, time.Time{}, time.Time{}, now)
	if err != nil {
		return nil, window, err
	}
	series, err := ledger.AttemptSeries(c.Ctx(), q, c.Actor.Tenant, ledger.StatsAsked{Window: window, By: analytics.Hour, Endpoint: of})
	return series.Rows(), window, err
}

// attemptCharts draws a series by the hour of the last day, or by the day of the last weeks: how many attempts, how many of them
// succeeded, and how long they took.
func attemptCharts(rows []analytics.Row, w analytics.Window, by analytics.Width) (volume, success, latency charts.Props) {
	byTime := make(map[time.Time]*analytics.Row, len(rows))
	for i := range rows {
		byTime[rows[i].Bucket.UTC()] = &rows[i]
	}
	var times []time.Time
	var delivered, failed, rate, p50, p95 []float64
	for at := w.Since; at.Before(w.Until); at = at.Add(by.Bucket()) {
		times = append(times, at)
		r := byTime[at.UTC()]
		if r == nil || r.Total() == 0 {
			delivered, failed = append(delivered, 0), append(failed, 0)
			rate, p50, p95 = append(rate, math.NaN()), append(p50, math.NaN()), append(p95, math.NaN())
			continue
		}
		delivered, failed = append(delivered, float64(r.Total()-r.Failed())), append(failed, float64(r.Failed()))
		rate = append(rate, float64(r.Total()-r.Failed())/float64(r.Total()))
		p50, p95 = append(p50, milliseconds(r.Quantile(0.5))), append(p95, milliseconds(r.Quantile(0.95)))
	}
	none, days := "No attempts in the last 24 hours.", by == analytics.Day
	if days {
		none = "No attempts in these days."
	}
	volume = charts.Props{ID: "volume", Title: "Attempts", Times: times, Days: days, Whole: true, Empty: none, Series: []charts.Series{
		{Name: "Succeeded", Class: charts.Accent, Values: delivered}, {Name: "Failed", Class: charts.Failed, Values: failed},
	}}
	success = charts.Props{ID: "success", Title: "Success rate", Times: times, Days: days, Small: true, Fill: true, Max: 1, Format: charts.Percent, Empty: none, Series: []charts.Series{
		{Name: "Succeeded", Class: charts.Good, Values: rate},
	}}
	latency = charts.Props{ID: "latency", Title: "Latency", Times: times, Days: days, Small: true, Format: charts.Milliseconds, Empty: none, Series: []charts.Series{
		{Name: "p95", Class: charts.Second, Values: p95}, {Name: "p50", Class: charts.Accent, Values: p50},
	}}
	return volume, success, latency
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func urlsOf(rows []sql.Endpoint) map[id.UUID]string {
	urls := make(map[id.UUID]string, len(rows))
	for _, e := range rows {
		urls[e.ID] = e.URL
	}
	return urls
}

func feedView(c *handlers.Call, rows []deliveries.State, urls map[id.UUID]string) pages.FeedView {
	v := pages.FeedView{Poll: root(c) + "/live"}
	for _, d := range rows {
		v.Rows = append(v.Rows, pages.FeedRow{
			Href: root(c) + "/deliveries/" + id.Delivery.Format(d.ID), Type: d.EventType, URL: egress.Mask(urls[d.EndpointID]), Status: d.Shown,
			LastStatus: int(d.LastStatus), Failure: d.LastFailure, Attempts: int(d.Attempts), At: d.CreatedAt,
		})
	}
	return v
}

// firstSteps says how far the tenant is. Whoever has delivered something in the last day, or just now, needs no steps.
func firstSteps(c *handlers.Call, rows []sql.Endpoint, feed []deliveries.State, h endpoints.TenantHealth) pages.FirstSteps {
	s := pages.FirstSteps{HasEndpoint: len(rows) > 0, HasEvent: len(feed) > 0, HasDelivered: h.Day[health.ClassOK] > 0 || len(feed) == feedRows}
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
