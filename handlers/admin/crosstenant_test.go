package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/id"
)

// delivered stores a delivery of a new event in a state, with the row by which lists find it.
func (w *console) delivered(tenant, endpoint id.UUID, kind string, status int) (event, delivery id.UUID) {
	w.t.Helper()
	event, delivery = db.NewID(), db.NewID()
	w.exec("INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $2, $3, $4, '{\"card\":\"s3cr3t\"}', 1)", tenant, event.Time(), event, kind)
	w.exec(`INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, reason, attempts, last_status, settled_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, 500, now())`, tenant, delivery.Time(), delivery, event, endpoint, kind, status, map[bool]int{true: 1}[status == 3])
	switch status {
	case 0, 1:
		w.exec("INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, attempts, state) VALUES ($1, $2, $3, $4, $5, $5)", tenant, delivery, event, endpoint, status)
	case 3:
		w.exec("INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason) VALUES ($1, $2, $3, $4, 1)", tenant, delivery, endpoint, kind)
	case 4:
		w.exec("INSERT INTO cancellations (tenant_id, delivery_id, endpoint_id, event_type, attempted) VALUES ($1, $2, $3, $4, true)", tenant, delivery, endpoint, kind)
	}
	uuid := db.NewID()
	w.exec(`INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us, tls_us, wait_us, read_us, total_us,
		url, format, signature, response_headers, response_excerpt, error)
		VALUES ($1, $2, $3, $4, $5, 1, 500, 0, 10, 20, 30, 40, 50, 150, 'https://a.example.com/?k=***', 'standard', 'v1,s3cr3t', 'x: s3cr3t', 's3cr3t', NULL)`, tenant, uuid.Time(), uuid, delivery, endpoint)
	return event, delivery
}

func TestDeliveriesOfAllTenantsAreFiltered(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	acme, umbrella := w.tenant("Acme"), w.tenant("Umbrella")
	one, two := w.endpoint(acme, "https://one.example.com/in?key=s3cr3t", "active", 0), w.endpoint(umbrella, "https://two.example.com:443/in", "active", 0)
	held := w.endpoint(umbrella, "https://two.example.com/held", "paused", 0)
	short := map[string]id.UUID{}
	for name, d := range map[string]struct {
		tenant, endpoint id.UUID
		status           int
		kind             string
	}{
		"pending":   {acme, one, 0, "order.paid"},
		"retrying":  {umbrella, two, 1, "order.paid"},
		"delivered": {acme, one, 2, "order.sent"},
		"failed":    {umbrella, two, 3, "order.paid"},
		"canceled":  {acme, one, 4, "order.paid"},
		"held":      {umbrella, held, 0, "order.sent"},
	} {
		_, short[name] = w.delivered(d.tenant, d.endpoint, d.kind, d.status)
	}
	all := []string{"pending", "retrying", "delivered", "failed", "canceled", "held"}
	for query, want := range map[string][]string{
		"tenant=" + id.Tenant.Format(acme) + "&host=two.example.com": {},

		"":                                    all,
		"status=pending":                      {"pending"},
		"status=retrying":                     {"retrying"},
		"status=held":                         {"held"},
		"status=delivered":                    {"delivered"},
		"status=failed":                       {"failed"},
		"status=canceled":                     {"canceled"},
		"type=order.sent":                     {"delivered", "held"},
		"type=order.sent&status=held":         {"held"},
		"tenant=" + id.Tenant.Format(acme):    {"pending", "delivered", "canceled"},
		"endpoint=" + id.Endpoint.Format(two): {"retrying", "failed"},
		"host=two.example.com":                {"retrying", "failed", "held"},
		"host=two.example.com&status=failed":  {"failed"},
		"host=nowhere.example.com":            {},
		"since=2001-01-01T00:00":              all,
		"until=2001-01-01T00:00":              {},
	} {
		page := w.page("/console/deliveries?" + query)
		for _, name := range all {
			shown := strings.Contains(page, "/deliveries/"+id.Delivery.Format(short[name]))
			if wanted := strings.Contains(" "+strings.Join(want, " ")+" ", " "+name+" "); shown != wanted {
				t.Errorf("%q shows the %s one: %t", query, name, shown)
			}
		}
		if strings.Contains(page, "s3cr3t") {
			t.Errorf("%q shows a secret", query)
		}
	}
	for _, wrong := range []string{"tenant=x", "endpoint=x", "type=no+type", "since=yesterday", "q=nonsense", "q=" + id.Delivery.Format(db.NewID())} {
		if res := w.send("GET", "/console/deliveries?"+wrong, nil, w.cookie); res.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", wrong, res.Code)
		}
	}
}

func TestADeliveryAndItsEventAreShownWithoutTheirPayloads(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	acme := w.tenant("Acme")
	event, delivery := w.delivered(acme, w.endpoint(acme, "https://one.example.com/in", "active", 0), "order.paid", 3)
	for text, words := range map[string][]string{
		id.Delivery.Format(delivery): {"order.paid", "failed", "500", "one.example.com", "?open=view-as"},
		id.Event.Format(event):       {"order.paid", "17 B", "one.example.com", "?open=view-as"},
	} {
		res := w.send("GET", "/console/deliveries?q="+text, nil, w.cookie)
		if res.Code != http.StatusSeeOther {
			t.Fatalf("%s is not found: %d", text, res.Code)
		}
		page := w.page(res.Header().Get("Location"))
		for _, word := range words {
			if !strings.Contains(page, word) {
				t.Errorf("the page of %s does not show %q", text, word)
			}
		}
		if strings.Contains(page, "s3cr3t") {
			t.Errorf("the page of %s shows what it carries", text)
		}
	}
	if page := w.page("/console/events"); !strings.Contains(page, id.Event.Format(event)) || strings.Contains(page, "s3cr3t") {
		t.Error("the list of events")
	}
	if page := w.page("/console/events?type=order.sent"); strings.Contains(page, id.Event.Format(event)) {
		t.Error("the filter shows every event")
	}
	other := id.Tenant.Format(w.tenant("Other"))
	for _, path := range []string{"/deliveries/" + id.Delivery.Format(delivery), "/events/" + id.Event.Format(event), "/deliveries/x", "/events/x"} {
		if res := w.send("GET", "/console/tenants/"+other+path, nil, w.cookie); res.Code != http.StatusNotFound {
			t.Errorf("%s in another tenant: %d", path, res.Code)
		}
	}
}

func TestPagesOfDeliveriesShowEachOnce(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	seen := map[string]int{}
	for i := range 3 {
		tenant := w.tenant(fmt.Sprintf("T%d", i))
		endpoint := w.endpoint(tenant, "https://one.example.com/in", "active", 0)
		w.exec(`INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status)
			SELECT $1, posthorn.created_at(u), u, u, $2, 'order.paid', 2 FROM (
				SELECT (left(posthorn.first_id(now() - i * interval '7 milliseconds')::text, 24) || lpad(to_hex($3 * 1000 + i), 12, '0'))::uuid AS u FROM generate_series(1, 60) i) x`, tenant, endpoint, i+1)
		seen[id.Endpoint.Format(endpoint)] = 0
	}
	for _, start := range []string{"/console/deliveries", "/console/deliveries?host=one.example.com"} {
		rows := map[string]int{}
		for path, pages := start, 0; path != ""; pages++ {
			page := w.page(path)
			for part := range strings.SplitSeq(page, `class="row-link" href="`) {
				if at := strings.Index(part, "/deliveries/dlv_"); at > 0 && at < 60 {
					rows[part[at+12:at+42]]++
				}
			}
			_, rest, found := strings.Cut(page, `rel="next" href="`)
			if path = ""; found {
				path, _, _ = strings.Cut(rest, `"`)
				path = strings.ReplaceAll(path, "&amp;", "&")
			}
			if pages > 6 {
				t.Fatal("the list does not end")
			}
		}
		if len(rows) != 180 {
			t.Errorf("%s shows %d deliveries of 180", start, len(rows))
		}
		for u, n := range rows {
			if n != 1 {
				t.Errorf("%s shows %s %d times", start, u, n)
			}
		}
	}
}

func TestEventsOfAllTenantsAreFilteredByWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	acme, umbrella := w.tenant("Acme"), w.tenant("Umbrella")
	failed, _ := w.delivered(acme, w.endpoint(acme, "https://one.example.com/in", "active", 0), "order.failed", 3)
	sent, _ := w.delivered(umbrella, w.endpoint(umbrella, "https://two.example.com/in", "active", 0), "order.sent", 2)
	nobody := db.NewID()
	w.exec("INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $2, $3, 'cart.left', '{}', 1)", acme, nobody.Time(), nobody)
	for query, want := range map[string]id.UUID{"": id.None, "?outcome=failed": failed, "?outcome=unmatched": nobody} {
		page := w.page("/console/events" + query)
		for _, event := range []id.UUID{failed, sent, nobody} {
			if has := strings.Contains(page, id.Event.Format(event)); has != (want == id.None || want == event) {
				t.Errorf("%q lists %s: %t", query, id.Event.Format(event), has)
			}
		}
	}
	w.holds("/console/events", []string{"1 failed", "1 delivered", "matched nothing"}, nil)
}

func TestTheQueueShowsTenBacklogsAndAllOnRequest(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	for i := range 12 {
		tenant := w.tenant(fmt.Sprintf("T%d", i))
		ep := w.endpoint(tenant, fmt.Sprintf("https://receiver-%d.example.com/hooks/of/a/rather/long/path/%d", i, i), "active", 0)
		w.exec("UPDATE endpoints SET description = $2 WHERE id = $1 AND $3", ep, "Named 0", i == 0)
		w.queued(tenant, ep, 1+i%3, 1+i%3)
	}
	count := func(path string) int { return strings.Count(w.page(path), `title="https://receiver-`) }
	if few, all := count("/console/queue"), count("/console/queue?all=lanes"); few != 10 || all != 12 {
		t.Errorf("%d backlogs at first, and %d of all", few, all)
	}
	w.holds("/console/queue", []string{`href="/console/queue?all=lanes"`}, nil)
	w.holds("/console/queue?all=lanes", []string{"Named 0", "Show fewer", "/11</span>"}, nil)
}
