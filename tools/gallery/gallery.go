// Package gallery shows every component in every state, for designers of pages. Nothing serves it: tests render it,
// check it, and take its pictures.
package gallery

import (
	"math"
	"time"

	"posthorn/views/charts"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// Now is the gallery's time, so that it looks the same every time.
var Now = time.Date(2026, 11, 21, 22, 4, 5, 0, time.UTC)

// Shell is the gallery's frame.
func Shell() layout.Shell {
	return layout.Shell{
		Title: "Gallery",
		Tenant: layout.Tenant{
			ID:     "ten_01jd8m2k9x7q4v5w6y7z8a9b0c",
			Name:   "Acme Logistics",
			Others: []layout.TenantLink{{ID: "ten_01jd8m2k9x7q4v5w6y7z8a9b0d", Name: "Acme Staging"}},
		},
		Person: layout.Person{Name: "Ada Lindqvist", Email: "ada@acme.example"},
		Role:   "owner",
		Active: "overview",
		Unread: 3,
		Flash:  layout.Flash{Tone: components.Good, Text: "The endpoint was resumed. 214 held deliveries are on their way."},
	}
}

func hours(n int) []time.Time {
	out := make([]time.Time, n)
	for i := range out {
		out[i] = Now.Truncate(time.Hour).Add(time.Duration(i-n+1) * time.Hour)
	}
	return out
}

// wave makes numbers that look like a day's.
func wave(n int, base, swing, phase float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		at := float64(i)
		out[i] = max(base+swing*math.Sin(at/3.8+phase)+swing*0.3*math.Sin(at*1.7+phase), 0)
	}
	return out
}

func volume() charts.Props {
	failed := make([]float64, 24)
	failed[14], failed[15], failed[16], failed[20] = 410, 890, 220, 40
	return charts.Props{
		ID:    "volume",
		Title: "Deliveries per hour",
		Times: hours(24),
		Whole: true,
		Series: []charts.Series{
			{Name: "Delivered", Class: charts.Accent, Values: wave(24, 3200, 1500, 0)},
			{Name: "Failed", Class: charts.Failed, Values: failed},
		},
	}
}

func success() charts.Props {
	values := make([]float64, 24)
	for i := range values {
		values[i] = 0.998
	}
	values[4], values[5] = math.NaN(), math.NaN()
	values[14], values[15], values[16] = 0.91, 0.72, 0.94
	return charts.Props{
		ID:     "success",
		Title:  "Success rate",
		Times:  hours(24),
		Max:    1,
		Fill:   true,
		Small:  true,
		Format: charts.Percent,
		Series: []charts.Series{{Name: "Succeeded", Class: charts.Good, Values: values}},
	}
}

func latency() charts.Props {
	return charts.Props{
		ID:     "latency",
		Title:  "Latency",
		Times:  hours(24),
		Small:  true,
		Format: charts.Milliseconds,
		Series: []charts.Series{
			{Name: "p95", Class: charts.Second, Values: wave(24, 420, 160, 1)},
			{Name: "p50", Class: charts.Accent, Values: wave(24, 110, 30, 1)},
		},
	}
}

func nothing() charts.Props {
	return charts.Props{
		ID:     "nothing",
		Title:  "Success rate",
		Small:  true,
		Times:  hours(24),
		Empty:  "No attempts in the last 24 hours.",
		Series: []charts.Series{{Name: "Succeeded", Values: make([]float64, 0)}},
	}
}

const payload = `{
  "id": "evt_01jd8m2k9x7q4v5w6y7z8a9b0c",
  "type": "order.completed",
  "timestamp": "2026-11-21T22:04:05Z",
  "data": { "order": 8121, "note": "<script>alert(1)</script>", "total": 129.5 }
}`

type row struct {
	url, about string
	status     string
	rate       string
	volume     int64
	last       time.Duration
}

var rows = []row{
	{"https://hooks.acme.example/orders", "Orders, production", "active", "99.9 %", 18210, 12 * time.Second},
	{"https://erp.northwind.example/webhooks/posthorn/v2", "ERP bridge", "disabled", "41.2 %", 902, 26 * time.Hour},
	{"https://staging.acme.example/in", "Staging", "paused", "100 %", 12, 3 * time.Hour},
	{"https://new.acme.example/hooks", "", "unverified", "-", 0, 0},
}
