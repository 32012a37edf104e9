package worker

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"posthorn/db/emit"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/signature"
)

func TestARetryComesAtItsTimeAndAfterTheLastTheDeliveryIsADeadLetter(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, func(arrival) int { return 500 })
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.RetryPolicy = "quick" })
	h.worker(true)
	dlv := h.deliveryOf(h.emit(tenant, item("order.completed", "", 1))[0])
	h.settled(20*time.Second, delivery.Failed, 1)

	seen := r.seen()
	if len(seen) != 3 {
		t.Fatalf("%d attempts, want 3", len(seen))
	}
	for i, want := range []time.Duration{time.Second, 4 * time.Second} {
		// The schedule's jitter is a tenth; the rest is the delay of a busy machine.
		if gap := seen[i+1].at.Sub(seen[i].at); gap < want*9/10 || gap > want*11/10+1500*time.Millisecond {
			t.Errorf("retry %d came after %v, want about %v", i+1, gap, want)
		}
	}
	for i, a := range seen {
		if a.attempt != fmt.Sprint(i+1) || !bytes.Equal(a.body, seen[0].body) {
			t.Errorf("attempt %d says %s, or its body differs from the first", i+1, a.attempt)
		}
	}
	status, reason, attempts := h.state(dlv)
	if status != delivery.Failed || reason != delivery.Exhausted || attempts != 3 {
		t.Errorf("%s, %s after %d attempts; want failed, exhausted after 3", status, reason, attempts)
	}
	if n := h.count("SELECT count(*) FROM dead_letters WHERE delivery_id = $1 AND endpoint_id = $2 AND reason = $3 AND event_type = 'order.completed'",
		dlv, ep, int16(delivery.Exhausted)); n != 1 {
		t.Error("no dead letter that says why")
	}
	if n := h.count("SELECT count(DISTINCT number) FROM attempts WHERE delivery_id = $1 AND status = 500 AND NOT late", dlv); n != 3 {
		t.Errorf("%d attempts on record, want 3", n)
	}
	h.balanced()
}

func TestWhatAResponseMeansForItsDelivery(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	tests := []struct {
		answer   int
		settings func(*endpoint.Settings)
		status   delivery.Status
		reason   delivery.Reason
	}{
		{200, nil, delivery.Delivered, delivery.None},
		{299, nil, delivery.Delivered, delivery.None},
		{301, nil, delivery.Retrying, delivery.None},
		{400, nil, delivery.Failed, delivery.Rejected},
		{401, nil, delivery.Retrying, delivery.None},
		{404, nil, delivery.Retrying, delivery.None},
		{404, func(s *endpoint.Settings) { s.RetryPolicy = "once" }, delivery.Failed, delivery.Rejected},
		{408, nil, delivery.Retrying, delivery.None},
		{409, nil, delivery.Failed, delivery.Rejected},
		{409, func(s *endpoint.Settings) { s.AcceptConflict = true }, delivery.Delivered, delivery.None},
		{410, nil, delivery.Failed, delivery.Gone},
		{422, func(s *endpoint.Settings) { s.RetryClientErrors = true }, delivery.Retrying, delivery.None},
		{425, nil, delivery.Retrying, delivery.None},
		{429, nil, delivery.Retrying, delivery.None},
		{500, nil, delivery.Retrying, delivery.None},
		{503, nil, delivery.Retrying, delivery.None},
	}
	r := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		var i int
		_, _ = fmt.Sscanf(req.URL.Path, "/%d", &i)
		rw.Header().Set("Location", "/elsewhere")
		rw.WriteHeader(tests[i].answer)
	}))
	t.Cleanup(r.Close)
	for i, tt := range tests {
		h.endpoint(tenant, fmt.Sprintf("%s/%d", r.URL, i), func(s *endpoint.Settings) {
			s.RetryPolicy = "five"
			s.Description = fmt.Sprint(i)
			if tt.settings != nil {
				tt.settings(s)
			}
		})
	}
	h.worker(true)
	h.emit(tenant, item("order.completed", "", 1))
	eventually(t, 10*time.Second, "every delivery was tried once", func() bool {
		return h.count("SELECT count(*) FROM deliveries WHERE attempts = 1") == len(tests)
	})
	for i, tt := range tests {
		var status delivery.Status
		var reason delivery.Reason
		var last int
		h.query("SELECT d.status, d.reason, d.last_status FROM deliveries d JOIN endpoints e ON e.id = d.endpoint_id WHERE e.description = $1",
			[]any{&status, &reason, &last}, fmt.Sprint(i))
		if status != tt.status || reason != tt.reason || last != tt.answer {
			t.Errorf("%d: %s %s (last status %d), want %s %s", tt.answer, status, reason, last, tt.status, tt.reason)
		}
	}
	if n := h.count("SELECT count(*) FROM dead_letters"); n != 4 {
		t.Errorf("%d dead letters, want 4", n)
	}
	h.balanced()
}

func TestAnEndpointThatRespondsGoneIsDisabledAndLaterDeliveriesAreHeld(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, func(arrival) int { return 410 })
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.MaxInFlight = 1 })
	var items []emit.Item
	for i := range 100 {
		items = append(items, item("order.completed", "", i))
	}
	h.emit(tenant, items...)
	h.worker(true)
	eventually(t, 10*time.Second, "the endpoint is disabled", func() bool {
		return h.count("SELECT count(*) FROM endpoints WHERE id = $1 AND status = 'disabled' AND status_reason = 'gone'", ep) == 1
	})
	if n := h.count("SELECT count(*) FROM lanes WHERE endpoint_id = $1 AND held", ep); n != 1 {
		t.Error("the lane is not held")
	}
	if n := h.count("SELECT count(*) FROM audit_log WHERE action = 'endpoint.disabled' AND actor_kind = 'system'"); n != 1 {
		t.Error("the audit log does not say who disabled it")
	}
	if n := h.count(`SELECT count(*) FROM notices WHERE endpoint_id = $1 AND kind = 'endpoint.disabled' AND details ? 'first_failure_at' AND details ? 'last_failure_at'
		AND details ->> 'failed_permanently' = '1' AND details ->> 'response' = '410' AND details ->> 'problem' = 'url'`, ep); n != 1 {
		t.Error("the notice says neither when it failed nor of what")
	}
	if n := h.count("SELECT count(*) FROM endpoint_health WHERE endpoint_id = $1 AND last_failure_at IS NOT NULL", ep); n != 1 {
		t.Error("nothing says when it failed last")
	}
	if n := h.count("SELECT count(*) FROM endpoint_revisions WHERE endpoint_id = $1 AND status = 'disabled'", ep); n != 1 {
		t.Error("no revision says that it routes nothing any more")
	}
	eventually(t, 10*time.Second, "its lane is given back", func() bool {
		return h.count("SELECT count(*) FROM lanes WHERE endpoint_id = $1 AND owner IS NULL", ep) == 1
	})
	if n := len(r.seen()); n != 1 {
		t.Errorf("%d requests to an endpoint that was gone at the first", n)
	}
	if n := h.waiting(ep); n != 99 {
		t.Errorf("%d deliveries are held, want 99", n)
	}
	h.balanced()
}

func TestRetryAfterHoldsTheWholeLaneAndJunkIsIgnored(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	first := true
	r := newReceiver(t, nil)
	r.headers = http.Header{"Retry-After": {"3"}}
	r.answer = func(arrival) int { // guarded: one request at a time
		if first {
			first = false
			return 503
		}
		return 200
	}
	junk := newReceiver(t, func(a arrival) int {
		if a.attempt == "1" {
			return 429
		}
		return 200
	})
	junk.headers = http.Header{"Retry-After": {"-1"}}
	tenant := h.tenant()
	one := func(s *endpoint.Settings) { s.MaxInFlight, s.RetryPolicy = 1, "quick" }
	waits := h.endpoint(tenant, r.URL, one)
	h.endpoint(tenant, junk.URL, one)
	w, _ := h.worker(true)
	h.emit(tenant, item("order.completed", "", 0), item("order.completed", "", 1))
	h.settled(20*time.Second, delivery.Delivered, 4)
	seen := r.seen()
	if len(seen) != 3 {
		t.Fatalf("%d requests, want 3", len(seen))
	}
	for _, a := range seen[1:] {
		if gap := a.at.Sub(seen[0].at); gap < 3*time.Second {
			t.Errorf("a request %v after an answer that asked for 3 s", gap)
		}
	}
	if n := h.count("SELECT count(*) FROM lanes WHERE endpoint_id = $1 AND not_before IS NOT NULL", waits); n != 1 {
		t.Error("the wait is not on record for the lane's next owner")
	}
	if n := h.count("SELECT count(*) FROM lanes WHERE not_before IS NOT NULL"); n != 1 {
		t.Error("junk made a lane wait")
	}
	if last := junk.seen(); last[len(last)-1].at.Sub(last[0].at) > 2500*time.Millisecond {
		t.Error("junk in Retry-After delayed the schedule")
	}
	if l, _ := w.dispatch.View(waits); l.NotBefore.IsZero() {
		t.Error("the lane in memory knows of no wait")
	}
}

func TestDataArrivesByteForByte(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, func(a arrival) int {
		if a.header.Get("webhook-attempt")+a.header.Get("X-Webhook-Attempt") == "1" {
			return 500
		}
		return 200
	})
	h.endpoint(tenant, r.URL+"/standard", func(s *endpoint.Settings) { s.RetryPolicy = "quick" })
	h.endpoint(tenant, r.URL+"/raw", func(s *endpoint.Settings) { s.RetryPolicy, s.Format = "quick", signature.Raw })
	w, _ := h.worker(false) // payloads are read from the database
	_ = w
	data := []string{
		`{"a":1,"a":2,"a":{"b":1,"b":1}}`,
		`{"n":12345678901234567890.12345678901234567890e+00,"z":-0.0}`,
		"{ \"sp\" :\t[1 ,2\n]}",
		`{"u":"\u00e9é\ud83d\ude00😀\/\u0000 "}`,
		`"just text"`, `[]`, `null`, `0`,
	}
	items := make([]emit.Item, len(data))
	for i, d := range data {
		m, err := event.Parse([]byte(`{"type":"order.completed","data":`+d+`}`), event.Limits{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		items[i].Emission = m
	}
	h.emit(tenant, items...)
	h.settled(20*time.Second, delivery.Delivered, 2*len(data))
	bodies := map[string]int{}
	for _, a := range r.seen() {
		if a.path == "/raw" {
			bodies[string(a.body)]++
			continue
		}
		_, after, ok := strings.Cut(string(a.body), `"data":`)
		if !ok {
			t.Fatalf("no data in %s", a.body)
		}
		bodies[strings.TrimSuffix(after, "}")]++
	}
	for _, d := range data {
		if bodies[d] != 4 { // two endpoints, two attempts
			t.Errorf("%q arrived %d times, want 4", d, bodies[d])
		}
	}
}

func TestAnEventThatIsGoneOrExpungedEndsItsDeliveryAndNoOther(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	h.endpoint(tenant, r.URL, nil)
	ids := h.emit(tenant, item("a.expunged", "", 0), item("a.gone", "", 1), item("a.fine", "", 2))
	h.exec("UPDATE events SET data = NULL WHERE id = $1", ids[0])
	h.exec("DELETE FROM events WHERE id = $1", ids[1])
	h.worker(true)
	h.settled(10*time.Second, delivery.Failed, 2)
	h.settled(10*time.Second, delivery.Delivered, 1)
	for i, name := range []string{"a.expunged", "a.gone"} {
		dlv := h.deliveryOf(ids[i])
		if status, reason, attempts := h.state(dlv); reason != delivery.RetentionEnded || attempts != 0 {
			t.Errorf("%s: %s, %s after %d attempts; want failed, expired after none", name, status, reason, attempts)
		}
		if n := h.count("SELECT count(*) FROM dead_letters WHERE delivery_id = $1 AND event_type = $2 AND reason = $3", dlv, name, int16(delivery.RetentionEnded)); n != 1 {
			t.Errorf("%s: no dead letter of its type", name)
		}
	}
	if got := ns(r.seen()); len(got) != 1 || got[0] != 2 {
		t.Errorf("events %v were sent, want 2 alone", got)
	}
	if n := h.count("SELECT count(*) FROM queue"); n != 0 {
		t.Errorf("%d rows left in the queue", n)
	}
	h.balanced()
}

// Where refusals need not last, a 401 is not retried: the warning says how many deliveries failed permanently, and the
// log names endpoint and tenant.
func TestTheWarningOfRejectedDeliveriesCountsThoseThatFailedPermanently(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, func(arrival) int { return 401 })
	tenant := h.tenant()
	h.settings(tenant, `{"health":{"auth_minutes":0}}`)
	ep := h.endpoint(tenant, r.URL, nil)
	var items []emit.Item
	for i := range 5 {
		items = append(items, item("order.completed", "", i))
	}
	h.emit(tenant, items...)
	h.worker(true)
	eventually(t, 10*time.Second, "its owner is warned", func() bool {
		return h.count("SELECT count(*) FROM notices WHERE endpoint_id = $1 AND kind = 'endpoint.warning'", ep) == 1
	})
	if n := h.count(`SELECT count(*) FROM notices WHERE endpoint_id = $1 AND details ->> 'failed_permanently' = '5' AND details ->> 'response' = '401'
		AND details ->> 'response_count' = '5' AND details ->> 'attempts' = '5' AND NOT details ? 'retry_client_errors'`, ep); n != 1 {
		t.Error("the warning does not say what failed, nor how many permanently")
	}
	eventually(t, 10*time.Second, "the ledger is folded", func() bool {
		return h.count("SELECT coalesce(sum(n), 0)::int FROM endpoint_failures WHERE endpoint_id = $1 AND code = 401", ep) == 5
	})
}
