package dashboard

import (
	"math"
	"time"

	"posthorn/db"
	"posthorn/db/ledger"
	"posthorn/domain/analytics"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/charts"
	"posthorn/views/pages"
)

// spans are the time ranges of charts, with the length of a bucket: a chart has 24 to 30 of them.
var spans = []struct {
	name   string
	long   time.Duration
	by     analytics.Width
	bucket time.Duration
	words  string
	each   string
}{
	{"1h", time.Hour, analytics.Minute, 2 * time.Minute, "Last hour", "Attempts per 2 minutes"},
	{"24h", 24 * time.Hour, analytics.Hour, time.Hour, "Last 24 hours", "Attempts per hour"},
	{"7d", 7 * 24 * time.Hour, analytics.Hour, 6 * time.Hour, "Last 7 days", "Attempts in 6 hours"},
	{"30d", 30 * 24 * time.Hour, analytics.Day, 24 * time.Hour, "Last 30 days", "Attempts by the day"},
}

// young is how long a tenant or an endpoint is new, so that one hour shows everything of it.
const young = 2 * time.Hour

// span is the time range of a page's charts.
type span struct {
	at     int // index in spans
	window analytics.Window
	rows   []analytics.Row
}

// readSpan reads the range of the address. The default is the last hours for new tenants and endpoints, and days for
// others.
func readSpan(c *handlers.Call, born, now time.Time) *span {
	s := &span{at: 1}
	if now.Sub(born) < young {
		s.at = 0
	}
	for i, one := range spans {
		if one.name == c.Query("range") {
			s.at = i
		}
	}
	return s
}

// read reads the attempts of the span, of all endpoints or of one.
func (s *span) read(c *handlers.Call, q *db.Tx, of *id.UUID, now time.Time) (err error) {
	is := spans[s.at]
	until := now.Truncate(is.bucket).Add(is.bucket)
	if s.window, err = analytics.Asked(is.by, until.Add(-is.long), until, now); err != nil {
		return err
	}
	series, err := ledger.AttemptSeries(c.Ctx(), q, c.Actor.Tenant, ledger.StatsAsked{
		Window:   s.window,
		By:       is.by,
		Endpoint: of,
	})
	s.rows = series.Rows()
	return err
}

// lastDay is the span of the last 24 hours: s itself if it is that one.
func (s *span) lastDay(c *handlers.Call, q *db.Tx, of *id.UUID, now time.Time) (*span, error) {
	const day = 1
	if s.at == day {
		return s, nil
	}
	last := &span{at: day}
	return last, last.read(c, q, of, now)
}

func (s *span) charts() (volume, success, latency charts.Props) {
	return attemptCharts(s.rows, s.window, spans[s.at].bucket)
}

// sum is all attempts of the span.
func (s *span) sum() (all analytics.Cell) {
	for _, r := range s.rows {
		all.Merge(r.Cell)
	}
	return all
}

// view is the choice of ranges, on a page at a path.
func (s *span) view(path string) pages.RangeView {
	v := pages.RangeView{Title: spans[s.at].words, Each: spans[s.at].each, Days: spans[s.at].by == analytics.Day}
	for i, one := range spans {
		v.Choices = append(v.Choices, pages.RangeChoice{
			Label:  one.name,
			Long:   one.words,
			Href:   path + "?range=" + one.name,
			Active: i == s.at,
		})
	}
	return v
}

// attemptCharts draws a series of attempts by buckets: their number, how many of them succeeded, and their duration.
func attemptCharts(rows []analytics.Row, w analytics.Window, bucket time.Duration) (volume, success,
	latency charts.Props,
) {
	byTime := make(map[time.Time]*analytics.Cell, len(rows))
	for i := range rows {
		at := rows[i].Bucket.UTC().Truncate(bucket)
		if byTime[at] == nil {
			byTime[at] = &analytics.Cell{}
		}
		byTime[at].Merge(rows[i].Cell)
	}
	var times []time.Time
	var delivered, failed, rate, p50, p95 []float64
	for at := w.Since.UTC().Truncate(bucket); at.Before(w.Until); at = at.Add(bucket) {
		times = append(times, at)
		r := byTime[at]
		if r == nil || r.Total() == 0 {
			delivered = append(delivered, 0)
			failed = append(failed, 0)
			rate = append(rate, math.NaN())
			p50 = append(p50, math.NaN())
			p95 = append(p95, math.NaN())
			continue
		}
		delivered = append(delivered, float64(r.Total()-r.Failed()))
		failed = append(failed, float64(r.Failed()))
		rate = append(rate, float64(r.Total()-r.Failed())/float64(r.Total()))
		p50 = append(p50, milliseconds(r.Quantile(0.5)))
		p95 = append(p95, milliseconds(r.Quantile(0.95)))
	}
	none, days := "No attempts in this time.", bucket == 24*time.Hour
	volume = charts.Props{
		ID:    "volume",
		Title: "Attempts",
		Times: times,
		Days:  days,
		Whole: true,
		Empty: none,
		Series: []charts.Series{
			{Name: "Succeeded", Class: charts.Accent, Values: delivered}, {Name: "Failed", Class: charts.Failed, Values: failed},
		},
	}
	success = charts.Props{
		ID:     "success",
		Title:  "Success rate",
		Times:  times,
		Days:   days,
		Small:  true,
		Fill:   true,
		Max:    1,
		Format: charts.Percent,
		Empty:  none,
		Series: []charts.Series{
			{Name: "Succeeded", Class: charts.Good, Values: rate},
		},
	}
	latency = charts.Props{
		ID:     "latency",
		Title:  "Latency",
		Times:  times,
		Days:   days,
		Small:  true,
		Format: charts.Milliseconds,
		Empty:  none,
		Series: []charts.Series{
			{Name: "p95", Class: charts.Second, Values: p95}, {Name: "p50", Class: charts.Accent, Values: p50},
		},
	}
	return volume, success, latency
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
