package dashboard_test

import (
	"net/http"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// Each endpoint that needs attention has an alert of its own, which names it, links to it, and says how most of its
// attempts ended.
func TestTheOverviewNamesAndLinksEachEndpointThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	ep := w.endpoint(tn, "https://hooks.example.com/in", func(s *endpoint.Settings) { s.Description = "Accounting" })
	for kind, n := range map[int]int{2*16 + 6: 83, 6: 190} {
		w.SQL(`INSERT INTO endpoint_stats (tenant_id, endpoint_id, width, bucket, event_type, kind, n, us)
			VALUES ($1, $2, 60, date_trunc('minute', now()) - interval '1 minute', 'order.paid', $3::int, $4::int, $4::int * 1000)`, tn.id.String(), ep.String(), kind, n)
	}
	w.SQL(`INSERT INTO endpoint_failures (tenant_id, endpoint_id, bucket, code, n)
		VALUES ($1, $2, date_trunc('minute', now()) - interval '1 minute', 422, 83)`, tn.id.String(), ep.String())
	w.SQL("UPDATE endpoints SET status_at = now() - interval '1 day'")
	text := id.Endpoint.Format(ep)
	tn.of[access.Viewer].get(tn.path).want(http.StatusOK, `href="`+tn.path+"/endpoints/"+text+`"`, ">Accounting</a>",
		": 83 of 273 attempts were rejected with 422.", "See failures", "status=all_failed&amp;endpoint="+text, "Dead letters").lacks("Replay failed deliveries")
	tn.of[access.Owner].get(tn.path).want(http.StatusOK, "Replay failed deliveries", `name="status" value="dead_letter"`)
}
