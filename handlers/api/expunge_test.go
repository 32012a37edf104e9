package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

func TestAnExpungedEventLeavesNothingOfItsPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	sent, waits := w.active(tn, nil), w.active(tn, nil)
	const secret = "4711-secret"
	body := `{"type":"order.paid","data":{"card":"` + secret + `"}}`
	event := w.do("POST", "/api/v1/events", tn.key, body, "Idempotency-Key", "k").want(http.StatusAccepted).text("id")
	u := w.uuid(id.Event, event)
	first := one[string](w, "SELECT id::text FROM deliveries WHERE event_id = $1 AND endpoint_id = $2", u, w.uuid(id.Endpoint, sent))
	second := one[string](w, "SELECT id::text FROM deliveries WHERE event_id = $1 AND endpoint_id = $2", u, w.uuid(id.Endpoint, waits))
	w.SQL(`INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us,
		tls_us, wait_us, read_us, total_us, url, format, signature, response_headers, response_excerpt)
		SELECT tenant_id, now(), gen_random_uuid(), id, endpoint_id, 1, 500, 0, 1, 1, 1, 1, 1, 5, 'https://x', 'standard', 'v1,x', 'X: ' || $2, convert_to($2, 'UTF8')
		FROM deliveries WHERE id = $1`, first, secret)
	w.SQL("DELETE FROM queue WHERE delivery_id = $1", first)
	w.SQL("UPDATE deliveries SET status = 2, settled_at = now() WHERE id = $1", first)
	w.SQL("INSERT INTO endpoint_health (endpoint_id, tenant_id, last_excerpt) VALUES ($1, $2, $3) ON CONFLICT (endpoint_id) DO UPDATE SET last_excerpt = $3",
		w.uuid(id.Endpoint, sent), tn.uuid.String(), secret)
	w.SQL("INSERT INTO notices (tenant_id, id, kind, key, endpoint_id, details, created_at) VALUES ($1, gen_random_uuid(), 'endpoint.warning', 'k', $2, jsonb_build_object('last_excerpt', $3::text, 'url', 'x'), now())",
		tn.uuid.String(), w.uuid(id.Endpoint, sent), secret)
	hash := one[string](w, "SELECT encode(body_hash, 'hex') FROM idempotency_keys WHERE key = 'k'")

	path := "/api/v1/events/" + event + "/expunge"
	w.do("POST", path, w.scoped(tn, access.WebhooksWrite, access.EventsWrite), `{"reason":"x"}`).problem(http.StatusForbidden, "scope_missing")
	w.do("POST", path, tn.key, `{}`).problem(http.StatusBadRequest, "text_length", "reason")
	got := w.do("POST", path, tn.key, `{"reason":"asked to be forgotten"}`).want(http.StatusOK)
	if got.get("expunged") != true || got.get("canceled") != 1.0 || got.get("answers") != 1.0 {
		t.Errorf("%s", got.Body)
	}
	if again := w.do("POST", path, tn.key, `{"reason":"once more"}`).want(http.StatusOK); again.get("expunged") != false {
		t.Errorf("%s", again.Body)
	}
	// No table has any of it, nor a digest against which guesses could be checked.
	for _, table := range []string{"events", "attempts", "deliveries", "queue", "audit_log", "bulk_jobs", "idempotency_keys", "cancellations", "endpoint_health", "notices"} {
		for _, trace := range []string{secret, hash, fmt.Sprintf("%x", secret)} {
			if n := one[int](w, "SELECT count(*)::int FROM "+table+" x WHERE strpos(x::text, $1) > 0", trace); n != 0 {
				t.Errorf("%s still hold %s", table, trace)
			}
		}
	}
	// The checker of the contract rejects null where a schema permits any JSON.
	if read := w.ask("GET", "/api/v1/events/"+event, tn.key, "").want(http.StatusOK); read.get("expunged") != true || read.get("data") != nil {
		t.Errorf("%s", read.Body)
	}
	for _, c := range []struct{ dlv, status string }{{first, "delivered"}, {second, "canceled"}} {
		d := w.do("GET", "/api/v1/deliveries/"+w.outer(id.Delivery, c.dlv), tn.key, nil).want(http.StatusOK)
		if d.text("status") != c.status || d.get("payload_expunged") != true || (c.status == "canceled") != (d.get("reason") == "expunged") {
			t.Errorf("%s", d.Body)
		}
	}
	w.do("POST", "/api/v1/events", tn.key, body, "Idempotency-Key", "k").problem(http.StatusConflict, "idempotency_conflict", "idempotency_key")
	w.do("POST", "/api/v1/deliveries/"+w.outer(id.Delivery, first)+"/replay", tn.key, nil).problem(http.StatusConflict, "event_expired")
	if w.audited(tn, "event.expunge") != 1 {
		t.Error("the log tells of it once")
	}
	if n := one[int](w, "SELECT sum(x)::int FROM ledger, unnest(expunged) x"); n != 1 {
		t.Errorf("the books count %d", n)
	}
	w.balanced()
}

// outer is an id of the database as the API shows it.
func (w *world) outer(kind id.Kind, text string) string {
	w.t.Helper()
	raw := one[[16]byte](w, "SELECT $1::uuid", text)
	return kind.Format(raw)
}

func TestADataSubjectIsExpungedWhereverItsDataIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	mine := func(n any) map[string]any {
		return map[string]any{"data": map[string]any{"user": map[string]any{"id": n}}}
	}
	for range 3 {
		w.emit(tn, mine("42"))
	}
	kept := []string{w.emit(tn, mine("43")), w.emit(tn, mine(42)), w.emit(tn, map[string]any{"data": "42"})}
	w.emit(tn, map[string]any{"type": "other.type", "data": mine("42")["data"]})
	body := `{"match":{"user.id":"42"},"type":"order.paid","reason":"forget me"%s}`
	if dry := w.do("POST", "/api/v1/expunges", tn.key, fmt.Sprintf(body, `,"dry_run":true`)).want(http.StatusOK); dry.get("expected") != 3.0 {
		t.Errorf("%s", dry.Body)
	}
	for _, want := range []int{3, 0} {
		job := w.start(tn, "/expunges", fmt.Sprintf(body, `,"pace":2`))
		w.work()
		w.ended(tn, job, "done", want, "")
	}
	if n := one[int](w, "SELECT count(*)::int FROM events WHERE data IS NULL"); n != 3 {
		t.Errorf("%d events are expunged", n)
	}
	for _, event := range kept {
		if read := w.do("GET", "/api/v1/events/"+event, tn.key, nil).want(http.StatusOK); bytes.Contains(read.Body, []byte(`"expunged":true`)) {
			t.Errorf("%s", read.Body)
		}
	}
	w.balanced()
	for _, c := range []struct{ body, code, field string }{
		{`{"match":{},"reason":"x"}`, "match_missing", "match"},
		{`{"match":"data.","reason":"x"}`, "filter_invalid", "match"},
		{`{"match":{"a":1},"reason":""}`, "text_length", "reason"},
	} {
		w.do("POST", "/api/v1/expunges", tn.key, c.body).problem(http.StatusBadRequest, c.code, c.field)
	}
}

func TestWhatIsOlderThanTheRetentionIsHiddenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	young := w.dead(tn, 1, nil)[0]
	event := w.backdate(tn, w.emit(tn, nil), 20*24*time.Hour)
	w.SQL(`INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, reason, attempts, settled_at)
		SELECT tenant_id, created_at, id, id, $2, type, 3, 1, 1, created_at FROM events WHERE id = $1`, w.uuid(id.Event, event), w.uuid(id.Endpoint, ep))
	w.SQL("INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason) SELECT tenant_id, id, $2, type, 1 FROM events WHERE id = $1",
		w.uuid(id.Event, event), w.uuid(id.Endpoint, ep))
	old := w.outer(id.Delivery, w.uuid(id.Event, event))
	seen := func() string {
		return fmt.Sprint(
			w.do("GET", "/api/v1/events/"+event, tn.key, nil).Status, w.do("GET", "/api/v1/events/"+event+"/deliveries", tn.key, nil).Status,
			w.do("GET", "/api/v1/deliveries/"+old, tn.key, nil).Status, w.do("POST", "/api/v1/deliveries/"+old+"/archive", tn.key, nil).Status,
			w.do("POST", "/api/v1/deliveries/"+old+"/unarchive", tn.key, nil).Status,
			len(w.deliveries(tn, "status=failed")), len(w.deliveries(tn, "status=all_failed")), len(w.deliveries(tn, "")),
			w.do("POST", "/api/v1/replays", tn.key, `{"filter":{"status":"failed"},"dry_run":true}`).get("expected"),
			w.do("POST", "/api/v1/replays", tn.key, `{"filter":{"ids":["`+old+`","`+young+`"]},"dry_run":true}`).get("expected"),
			w.do("POST", "/api/v1/endpoints/"+ep+"/recover", tn.key, `{"since":"2020-01-01T00:00:00Z","dry_run":true}`).get("expected"),
		)
	}
	if got, want := seen(), "200 200 200 200 200 2 2 3 2 2 2"; got != want {
		t.Errorf("within the retention: %s, want %s", got, want)
	}
	w.do("PATCH", "/api/v1/tenant", tn.key, `{"retention_days":7}`).want(http.StatusOK)
	if got, want := seen(), "404 404 404 404 404 1 1 2 1 1 1"; got != want {
		t.Errorf("beyond it: %s, want %s", got, want)
	}
	w.do("POST", "/api/v1/deliveries/"+old+"/replay", tn.key, nil).problem(http.StatusNotFound, "not_found")
	// Hidden is not destroyed: it can still be expunged.
	if got := w.do("POST", "/api/v1/events/"+event+"/expunge", tn.key, `{"reason":"now"}`).want(http.StatusOK); got.get("expunged") != true {
		t.Errorf("%s", got.Body)
	}
}
