package dashboard_test

import (
	"strings"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

func TestResponsesOfTwoAttemptsAreCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	earlier := w.delivery(w.emit(tn, "order.paid", `{}`))
	dlv := w.delivery(w.emit(tn, "order.paid", `{"order_id":"ord_1","n":4200}`))
	w.attempt(dlv, tried{status: 500, headers: "Content-Type: application/json", answer: `{"error":"down","id":1}`})
	w.attempt(dlv, tried{status: 422, headers: "Content-Type: application/json", answer: `{"error":"no such order","id":1}`, terminal: 3, reason: 2})
	path := tn.path + "/deliveries/" + id.Delivery.Format(dlv)
	viewer := tn.of[access.Viewer]
	viewer.get(path).want(200, "Compare with attempt 1", "Previous attempt", "Previous delivery to this endpoint", `href="`+tn.path+"/deliveries/"+id.Delivery.Format(earlier)+`"`,
		`<span class="json-name">&#34;order_id&#34;</span>`, "Raw body").lacks("Next delivery to this endpoint", "Next attempt")
	viewer.get(path+"?attempt=2&with=1").want(
		200,
		`data-mark="-">  &#34;error&#34;: &#34;down&#34;,</del>`,
		`data-mark="+">  &#34;error&#34;: &#34;no such order&#34;,</ins>`,
		`data-mark=" ">Content-Type: application/json</span>`,
	)
	viewer.get(path + "?attempt=2&with=7").want(200).lacks("compared with")
	viewer.get(tn.path+"/deliveries/"+id.Delivery.Format(earlier)).want(200, "Next delivery to this endpoint")

	w.setting(tn, "viewers_read_payloads", false)
	viewer.get(path+"?attempt=2&with=1").want(200).lacks("no such order", "Compare with attempt")
}

func TestChartsShowTheRangeOfTheAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.endpoint(tn, "https://hooks.example.com/in")
	for _, ago := range []string{"5 minutes", "3 hours", "3 days"} {
		w.SQL(`INSERT INTO endpoint_stats (tenant_id, endpoint_id, width, bucket, event_type, kind, n, us)
			SELECT $1, $2, x.width, to_timestamp(floor(extract(epoch FROM now() - $3::interval) / x.width) * x.width), 'order.paid', 6, 100, 1000 FROM (VALUES (60), (3600)) x(width)`,
			tn.id.String(), ep.String(), ago)
	}
	viewer := tn.of[access.Viewer]
	total := func(p *page) (n int) {
		table, _, _ := strings.Cut(p.Body[strings.Index(p.Body, `id="volume"`):], "</table>")
		return strings.Count(table, "<td>100</td>")
	}
	for _, path := range []string{tn.path + "/", tn.path + "/endpoints/" + id.Endpoint.Format(ep)} {
		// What is new is shown by the hour.
		if p := viewer.get(path).want(200, "Last hour", `?range=7d"`); total(p) != 1 {
			t.Errorf("%s shows %d buckets of the last hour, want 1", path, total(p))
		}
		for name, want := range map[string]int{"1h": 1, "24h": 2, "7d": 3, "30d": 2} {
			p := viewer.get(path+"?range="+name).want(200, `?range=`+name+`" title="`)
			if got := total(p); name != "30d" && name != "7d" && got != want {
				t.Errorf("%s?range=%s shows %d buckets with attempts, want %d", path, name, got, want)
			}
			link, _, _ := strings.Cut(p.Body[strings.Index(p.Body, `?range=`+name+`"`):], ">")
			if !strings.Contains(link, `aria-current="true"`) {
				t.Errorf("%s?range=%s does not say what is shown: %s", path, name, link)
			}
		}
		viewer.get(path+"?range=forever").want(200, "Last hour")
	}
}
