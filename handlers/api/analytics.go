package api

import (
	"net/http"
	"strconv"
	"time"

	"posthorn/db"
	"posthorn/db/ledger"
	"posthorn/domain/analytics"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// getAnalytics responds with a series of numbers about the tenant's attempts, as JSON or as CSV.
func (a *api) getAnalytics(c *handlers.Call) error {
	p, err := c.Page(handlers.List{
		Name:  "analytics",
		Whole: true,
		Filters: []handlers.Filter{
			handlers.BySince, handlers.ByUntil, handlers.ByType,
			handlers.ByEndpoint,
		},
		Choices: []handlers.Choice{
			{Name: "by", Words: []string{"hour", "day", "minute"}},
			{Name: "group", Words: []string{"none", "endpoint", "type", "status_class"}},
			formats,
		},
	})
	if err != nil {
		return err
	}
	ask := ledger.StatsAsked{By: analytics.Width(p.Chosen["by"]), EventType: p.Type}
	switch p.Chosen["group"] {
	case "endpoint":
		ask.ByEndpoint = true
	case "type":
		ask.ByType = true
	case "status_class":
		ask.ByClass = true
	}
	if !p.Endpoint.IsZero() {
		ask.Endpoint = &p.Endpoint
	}
	if ask.Window, err = analytics.Asked(ask.By, p.Since, p.Until, a.Now()); err != nil {
		return err
	}
	var series analytics.Series
	err = c.Tx(func(q *db.Tx) error {
		series, err = ledger.AttemptSeries(c.Ctx(), q, c.Actor.Tenant, ask)
		return err
	})
	if err != nil {
		return err
	}
	rows := series.Rows()
	if wantsCSV(c, p.Chosen["format"]) {
		respondCSV(c, "posthorn-deliveries.csv", analyticsTable(rows))
		return nil
	}
	return c.Answer(http.StatusOK, Analytics{
		By:    AnalyticsBy(ask.By),
		Since: Time(ask.Since),
		Until: Time(ask.Until),
		Data:  views(rows, analyticsView),
	})
}

// milliseconds keeps one decimal.
func milliseconds(d time.Duration) float64 {
	return float64(d.Round(100*time.Microsecond).Microseconds()) / 1000
}

func analyticsView(r analytics.Row) AnalyticsRow {
	out := AnalyticsRow{
		Start:     Time(r.Bucket),
		Attempts:  int(r.Total()),
		Succeeded: int(r.Total() - r.Failed()),
		Failed:    int(r.Failed()),
		Retries:   int(r.Retries),
		MeanMs:    milliseconds(r.Mean()),
		P50Ms:     milliseconds(r.Quantile(0.5)),
		P95Ms:     milliseconds(r.Quantile(0.95)),
		P99Ms:     milliseconds(r.Quantile(0.99)),
	}
	out.EndpointID.SetNull()
	if !r.Endpoint.IsZero() {
		out.EndpointID.Set(id.Endpoint.Format(r.Endpoint))
	}
	out.Type.SetNull()
	if r.Type != "" {
		out.Type.Set(r.Type)
	}
	out.StatusClass.SetNull()
	if r.Class != "" {
		out.StatusClass.Set(StatusClass(r.Class))
	}
	return out
}

// analyticsTable is the same rows as a table. Columns that the series is not grouped by are empty.
func analyticsTable(rows []analytics.Row) [][]string {
	table := [][]string{{
		"start", "endpoint_id", "type", "status_class", "attempts", "succeeded", "failed", "retries", "mean_ms", "p50_ms", "p95_ms", "p99_ms",
	}}
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	lasting := func(d time.Duration) string { return strconv.FormatFloat(milliseconds(d), 'f', -1, 64) }
	for _, r := range rows {
		endpoint := ""
		if !r.Endpoint.IsZero() {
			endpoint = id.Endpoint.Format(r.Endpoint)
		}
		table = append(table, []string{
			r.Bucket.UTC().Format(time.RFC3339), endpoint, r.Type, r.Class, count(r.Total()),
			count(r.Total() - r.Failed()), count(r.Failed()),
			count(r.Retries), lasting(r.Mean()), lasting(r.Quantile(0.5)), lasting(r.Quantile(0.95)),
			lasting(r.Quantile(0.99)),
		})
	}
	return table
}
