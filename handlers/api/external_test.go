package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"posthorn/db"
)

func TestATenantAnswersToItsExternalIDWhereverItsIDDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.do("POST", "/api/v1/tenants", w.platform, `{"name":"Acme","external_id":"org/42 \u00fc+1"}`).want(201)
	if made.text("external_id") != "org/42 \u00fc+1" {
		t.Errorf("created: %s", made.Body)
	}
	path := "/api/v1/tenants/" + url.PathEscape("org/42 \u00fc+1")
	if got := w.do("GET", path, w.platform, nil).want(200); got.text("id") != made.text("id") {
		t.Errorf("read: %s", got.Body)
	}
	w.do("POST", path+"/events", w.platform, `{"type":"a","data":1}`).want(202)
	w.do("POST", "/api/v1/tenants", w.platform, `{"name":"Other","external_id":"org/42 \u00fc+1"}`).problem(409, "external_id_in_use")
	w.do("POST", "/api/v1/tenants", w.platform, `{"name":"Other","external_id":"`+made.text("id")+`"}`).problem(400, "external_id_malformed", "external_id")
	w.do("PATCH", "/api/v1/tenant", made.text("api_key"), `{"external_id":"mine"}`).problem(403, "platform_key_required")

	// The former external id is free, and can be given to another tenant.
	w.do("PATCH", path, w.platform, `{"external_id":"new"}`).want(200)
	other := w.do("POST", "/api/v1/tenants", w.platform, `{"name":"Other","external_id":"org/42 \u00fc+1"}`).want(201)
	if got := w.do("GET", path, w.platform, nil).want(200); got.text("id") != other.text("id") {
		t.Errorf("after the change the old external id names %s", got.Body)
	}
	w.do("PATCH", path, w.platform, `{"external_id":null}`).want(200)
	w.do("GET", path, w.platform, nil).problem(404, "not_found")
	w.do("GET", "/api/v1/tenants/new", w.platform, nil).want(200)
}

func TestPutCreatesATenantOnceAndChangesItThen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wg sync.WaitGroup
	created := make([]string, 4)
	for i := range created {
		wg.Go(func() { created[i] = w.do("PUT", "/api/v1/tenants/cust-1", w.platform, `{"name":"One"}`).text("id") })
	}
	wg.Wait()
	for _, u := range created {
		if u == "" || u != created[0] {
			t.Errorf("four creations at once made %q", created)
		}
	}
	again := w.do("PUT", "/api/v1/tenants/cust-1", w.platform, `{"name":"Two","strict_types":true}`).want(200)
	if again.text("id") != created[0] || again.text("name") != "Two" || again.text("external_id") != "cust-1" {
		t.Errorf("changed: %s", again.Body)
	}
	if bare := w.do("PUT", "/api/v1/tenants/cust-2", w.platform, nil).want(201); bare.text("name") != "cust-2" {
		t.Errorf("without a body: %s", bare.Body)
	}
	w.do("PUT", "/api/v1/tenants/cust-3", w.platform, `{"external_id":"x"}`).problem(400, "external_id_misplaced", "external_id")
	w.do("PUT", "/api/v1/tenants/ten_01jd0000000000000000000000", w.platform, `{}`).problem(404, "not_found")
}

func TestAnEmissionCreatesItsTenantWhenAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do("POST", "/api/v1/tenants/new-1/events", w.platform, `{"type":"a","data":1}`).problem(404, "not_found")
	w.do("POST", "/api/v1/tenants/new-1/events", w.platform, `{"type":"a","data":1,"create_tenant":1}`).problem(400, "field_type", "create_tenant")
	w.do("GET", "/api/v1/tenants/new-1", w.platform, nil).problem(404, "not_found")
	w.do("POST", "/api/v1/tenants/new-1/events", w.platform, `{"type":"a","data":1,"create_tenant":true}`).want(202)
	w.do("POST", "/api/v1/tenants/new-1/events", w.platform, `{"type":"a","data":2,"create_tenant":true}`).want(202)
	if page := w.do("GET", "/api/v1/tenants/new-1/events", w.platform, nil).want(200); strings.Count(string(page.Body), `"type":"a"`) != 2 {
		t.Errorf("events: %s", page.Body)
	}
	w.do("POST", "/api/v1/tenants/new-2/events/batch", w.platform, `[{"type":"a","data":1},{"type":"b","data":1,"create_tenant":true}]`).want(202)
	w.do("POST", "/api/v1/tenants/new-3/portal-links", w.platform, `{}`).problem(404, "not_found")
	w.do("POST", "/api/v1/tenants/new-3/portal-links", w.platform, `{"create_tenant":true}`).want(201)
	for _, tenant := range []string{"new-2", "new-3"} {
		if got := w.do("GET", "/api/v1/tenants/"+tenant, w.platform, nil).want(200); got.text("external_id") != tenant || got.text("name") != tenant {
			t.Errorf("created: %s", got.Body)
		}
	}
	w.do("GET", "/api/v1/tenants/new-4/events", w.platform, nil).problem(404, "not_found")
	w.do("POST", "/api/v1/tenants/new-4/endpoints", w.platform, `{"url":"https://e.example.com"}`).problem(404, "not_found")
}

// TestATenantIsCreatedWithWhatItIsCreatedForOrNotAtAll refuses what follows the creation, in the same transaction.
func TestATenantIsCreatedWithWhatItIsCreatedForOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := func(text string) {
		t.Helper()
		if err := w.db.Console(t.Context(), func(q *db.Tx) error {
			return q.SetPlatformSettings(t.Context(), []byte(text))
		}); err != nil {
			t.Fatal(err)
		}
	}
	set(`{"limits":{"max_payload":1024},"features":{"portal":false}}`)
	w.do("POST", "/api/v1/tenants/no-1/portal-links", w.platform, `{"create_tenant":true}`).problem(403, "portal_off")
	w.do("POST", "/api/v1/tenants/no-2/events", w.platform, `{"type":"a","create_tenant":true,"data":"`+strings.Repeat("x", 1100)+`"}`).problem(413, "payload_too_large", "data")
	w.do("POST", "/api/v1/tenants/no-3/import", w.platform, `{"create_tenant":true,"dry_run":true,"event_types":[{"name":"a"}],"endpoints":[{"external_id":"e","url":"https://e.example.com"}]}`).want(200)
	for _, tenant := range []string{"no-1", "no-2", "no-3"} {
		w.do("GET", "/api/v1/tenants/"+tenant, w.platform, nil).problem(404, "not_found")
	}
	w.do("POST", "/api/v1/tenants/no-3/import", w.platform, `{"event_types":[{"name":"a"}]}`).problem(404, "not_found")
	made := w.do("POST", "/api/v1/tenants/yes-1/import", w.platform, `{"create_tenant":true,"event_types":[{"name":"a"}],"endpoints":[{"external_id":"e","url":"https://e.example.com","assume_verified":true,"paused":true}]}`).want(200)
	if text := string(made.Body); strings.Count(text, `"created"`) != 2 {
		t.Errorf("imported: %s", text)
	}
	if e := w.do("GET", "/api/v1/tenants/yes-1/endpoints/e", w.platform, nil).want(200); e.text("status") != "paused" {
		t.Errorf("created paused: %s", e.Body)
	}
	w.do("POST", "/api/v1/tenants/yes-1/endpoints", w.platform, `{"url":"https://e.example.com","paused":true}`).problem(409, "endpoint_unverified", "status")
}

func TestManyFirstEmissionsCreateOneTenantAndEachItsEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			w.do("POST", "/api/v1/tenants/burst/events", w.platform, fmt.Sprintf(`{"type":"a","data":%d,"create_tenant":true}`, i)).want(202)
			w.do("POST", "/api/v1/tenants/burst/events", w.platform, `{"type":"once","data":1,"create_tenant":true}`, "Idempotency-Key", "the-key").want(202)
		})
	}
	wg.Wait()
	page := w.do("GET", "/api/v1/tenants/burst/events", w.platform, nil).want(200)
	if n, once := strings.Count(string(page.Body), `"type":"a"`), strings.Count(string(page.Body), `"type":"once"`); n != 8 || once != 1 {
		t.Errorf("%d events and %d under one key: %s", n, once, page.Body)
	}
	first := w.do("POST", "/api/v1/tenants/keyed/events", w.platform, `{"type":"a","data":1,"create_tenant":true}`, "Idempotency-Key", "k").want(202)
	if again := w.do("POST", "/api/v1/tenants/keyed/events", w.platform, `{"type":"a","data":1,"create_tenant":true}`, "Idempotency-Key", "k").want(202); again.text("id") != first.text("id") {
		t.Errorf("the first emission again: %s, %s", first.Body, again.Body)
	}
	w.do("POST", "/api/v1/tenants/batch/events/batch", w.platform, `[{"type":"a","data":1,"idempotency_key":"k","create_tenant":true},{"type":"a","data":1,"idempotency_key":"k","create_tenant":true},{"type":"b","data":2}]`).want(202)
	if page := w.do("GET", "/api/v1/tenants/batch/events", w.platform, nil).want(200); strings.Count(string(page.Body), `"type"`) != 2 {
		t.Errorf("a batch with one key twice: %s", page.Body)
	}
}

func TestAnEndpointAnswersToItsExternalIDWithinItsTenantAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.tenant("A"), w.tenant("B")
	body := `{"url":"https://e.example.com/hooks","external_id":"hook/1"}`
	first := w.do("POST", "/api/v1/endpoints", a.key, body).want(201)
	w.do("POST", "/api/v1/endpoints", a.key, body).problem(409, "external_id_in_use")
	second := w.do("POST", "/api/v1/endpoints", b.key, body).want(201)
	path := "/api/v1/endpoints/hook%2F1"
	if got := w.do("GET", path, a.key, nil).want(200); got.text("id") != first.text("id") || got.text("external_id") != "hook/1" {
		t.Errorf("A reads %s", got.Body)
	}
	if got := w.do("GET", path, b.key, nil).want(200); got.text("id") != second.text("id") {
		t.Errorf("B reads %s", got.Body)
	}
	if got := w.do("GET", "/api/v1/deliveries?endpoint=hook%2F1", a.key, nil).want(200); !strings.Contains(string(got.Body), `"data":[]`) {
		t.Errorf("deliveries: %s", got.Body)
	}
	w.do("PATCH", path, a.key, `{"external_id":""}`).problem(400, "external_id_malformed", "external_id")
	w.do("PATCH", path, a.key, `{"external_id":" x"}`).problem(400, "external_id_malformed", "external_id")
	w.do("PATCH", path, a.key, `{"external_id":"hook-2"}`).want(200)
	w.do("GET", path, a.key, nil).problem(404, "not_found")
	w.do("DELETE", "/api/v1/endpoints/hook-2", a.key, nil).want(204)
	w.do("POST", "/api/v1/endpoints", a.key, `{"url":"https://e.example.com/hooks","external_id":"hook-2"}`).want(201)
}

func TestAnEventKeepsItsProducersID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant("A")
	made := w.do("POST", "/api/v1/events", a.key, `{"type":"a","data":1,"event_id":"order-4711:paid"}`).want(202)
	got := w.do("GET", "/api/v1/events/"+made.text("id"), a.key, nil).want(200)
	if got.text("event_id") != "order-4711:paid" || got.text("id") != made.text("id") {
		t.Errorf("read: %s", got.Body)
	}
	if list := w.do("GET", "/api/v1/events", a.key, nil).want(200); !strings.Contains(string(list.Body), `"event_id":"order-4711:paid"`) {
		t.Errorf("list: %s", list.Body)
	}
	w.do("POST", "/api/v1/events", a.key, `{"type":"a","data":1,"event_id":"a.b"}`).problem(400, "event_id_malformed", "event_id")

	// It is found by that id, by its own tenant alone.
	w.do("POST", "/api/v1/events", a.key, `{"type":"b.c","data":2,"event_id":"order-4711:paid","channels":["x"]}`).want(202)
	find := "/api/v1/events?event_id=order-4711:paid"
	for query, want := range map[string]int{"": 2, "&type=a": 1, "&type=b.*": 1, "&channel=x": 1, "&channel=y": 0, "&limit=1": 1, "&order=asc": 2, "&since=2999-01-01T00:00:00Z": 0} {
		if list := w.do("GET", find+query, a.key, nil).want(200); strings.Count(string(list.Body), `"event_id":"order-4711:paid"`) != want {
			t.Errorf("%s: want %d of %s", query, want, list.Body)
		}
	}
	if list := w.do("GET", find, w.tenant("B").key, nil).want(200); !strings.Contains(string(list.Body), `"data":[]`) {
		t.Errorf("another tenant finds %s", list.Body)
	}
	w.do("GET", "/api/v1/events?event_id=a%20b", a.key, nil).problem(400, "event_id_malformed", "event_id")

	// One that receivers don't see can have full stops.
	unsent := w.do("POST", "/api/v1/events", a.key, `{"type":"a","data":1,"event_id":"a.b","send_event_id":false}`).want(202)
	found := w.do("GET", "/api/v1/events?event_id=a.b", a.key, nil).want(200)
	if !strings.Contains(string(found.Body), unsent.text("id")) || !strings.Contains(string(found.Body), `"send_event_id":false`) {
		t.Errorf("an id that is not sent finds %s", found.Body)
	}
}
