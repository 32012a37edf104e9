package worker

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// A receiver that deduplicates by the value of its format's header handles an event once, however it is sent again.
func TestReplaysKeepTheIDThatReceiversDeduplicateBy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	formats := signature.Formats()
	endpoints := map[signature.Format]id.UUID{}
	for _, f := range formats {
		endpoints[f] = h.endpoint(tenant, r.URL+"/"+string(f), func(s *endpoint.Settings) { s.Format, s.Prefix = f, "Acme" })
	}
	h.worker(true)
	event := h.emit(tenant, item("order.completed", "", 0))[0]
	sent := len(formats)
	h.settled(10*time.Second, delivery.Delivered, sent)
	again := func(what string, n int, replay func(q *sql.Queries) error) {
		t.Helper()
		h.as(tenant, replay)
		sent += n
		eventually(t, 10*time.Second, what, func() bool {
			return h.count("SELECT count(*) FROM deliveries WHERE status = $1", int16(delivery.Delivered)) == sent
		})
	}
	for _, f := range formats {
		var raw [16]byte
		h.query("SELECT id FROM deliveries WHERE endpoint_id = $1", []any{&raw}, endpoints[f])
		again("the replay of the first delivery", 1, func(q *sql.Queries) error {
			d, err := deliveries.Replay(t.Context(), q, tenant, raw, true)
			raw = d.ID
			return err
		})
		again("the replay of the replay", 1, func(q *sql.Queries) error {
			_, err := deliveries.Replay(t.Context(), q, tenant, raw, true)
			return err
		})
	}
	again("the event's replay", len(formats), func(q *sql.Queries) error {
		_, err := deliveries.ReplayEvent(t.Context(), q, tenant, event, nil)
		return err
	})
	h.over(h.bulk(tenant, deliveries.NewBulkJob{Kind: bulk.Replay, Filter: bulk.Filter{Status: "delivered"}}), 20*time.Second)
	sent *= 2
	h.settled(20*time.Second, delivery.Delivered, sent)

	seen := map[string]map[string]int{}
	for _, a := range r.seen() {
		name := signature.Wire{Format: signature.Format(a.path[1:]), Prefix: "Acme"}.DedupeHeader()
		if seen[a.path] == nil {
			seen[a.path] = map[string]int{}
		}
		seen[a.path][a.header.Get(name)]++
		carries := false
		for _, values := range a.header {
			carries = carries || values[0] == id.Event.Format(event)
		}
		if !carries {
			t.Errorf("a request to %s carries no event id", a.path)
		}
	}
	for path, ids := range seen {
		if len(ids) != 1 || ids[""] > 0 {
			t.Errorf("%s: one event under the ids %v", path, ids)
		}
	}
	if len(seen) != len(formats) {
		t.Errorf("requests to %v", seen)
	}
}

// An endpoint that never got an event gets a first delivery of it: its first delivery by a replay of missing events
// starts the chain.
func TestAMissingEventsDeliveryIsTheFirstOfItsChain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	h.endpoint(tenant, r.URL+"/first", nil)
	h.worker(true)
	event := h.emit(tenant, item("order.completed", "", 0))[0]
	h.settled(10*time.Second, delivery.Delivered, 1)
	late := h.endpoint(tenant, r.URL+"/late", func(s *endpoint.Settings) { s.Format = signature.Raw })
	for range 2 {
		h.as(tenant, func(q *sql.Queries) error {
			_, err := deliveries.ReplayEvent(t.Context(), q, tenant, event, &late)
			return err
		})
		eventually(t, 10*time.Second, "the replay", func() bool { return h.count("SELECT count(*) FROM queue") == 0 })
	}
	var ids []string
	for _, a := range r.seen() {
		if a.path == "/late" && a.header.Get("X-Webhook-Event") == "order.completed" { // not its verification
			ids = append(ids, a.header.Get("X-Webhook-Delivery"))
			if a.header.Get("X-Webhook-Replayed") != "true" {
				t.Error("a replay without its mark")
			}
		}
	}
	if len(ids) != 2 || ids[0] != ids[1] || ids[0] == "" {
		t.Errorf("sent under the ids %v", ids)
	}
}

// Receivers that compare the whole header, or read only its first signature, accept every request of a rotation: with
// the old secret until the switch, with the new one after it.
func TestReceiversOfOneSignatureVerifyBeforeDuringAndAfterARotation(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.Format = signature.XWebhook })
	w, _ := h.worker(true)
	newest := func() string {
		var raw [16]byte
		h.query("SELECT id FROM endpoint_secrets WHERE endpoint_id = $1 ORDER BY id DESC LIMIT 1", []any{&raw}, ep)
		return h.openSecret(tenant, ep, raw)
	}
	sent := 0
	receives := func(stage, secret string) {
		t.Helper()
		h.followed(w, ep)
		h.emit(tenant, item("order.completed", "", sent))
		sent++
		h.settled(10*time.Second, delivery.Delivered, sent)
		a := r.seen()[sent-1]
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(a.header.Get("X-Webhook-Timestamp") + "."))
		mac.Write(a.body)
		want := "v1=" + hex.EncodeToString(mac.Sum(nil))
		if got := a.header.Get("X-Webhook-Signature"); got != want {
			t.Errorf("%s: the signature is %s, want %s", stage, got, want)
		}
	}
	before := newest()
	receives("before", before)
	h.as(tenant, func(q *sql.Queries) error {
		_, err := endpoints.RotateSecret(t.Context(), q, h.ring, tenant, ep, endpoints.Rotation{
			Overlap: 3600,
			Choose:  freshSecret,
		})
		return err
	})
	receives("during the overlap", before)
	h.as(tenant, func(q *sql.Queries) error {
		_, _, err := endpoints.SwitchSecret(t.Context(), q, tenant, ep)
		return err
	})
	receives("after the switch", newest())

	// Where the endpoint asks for it, every live secret signs.
	h.exec("UPDATE endpoints SET rotation_signatures = 'all' WHERE id = $1", ep)
	h.exec("UPDATE lanes SET rev = rev + 1 WHERE endpoint_id = $1", ep)
	h.followed(w, ep)
	h.emit(tenant, item("order.completed", "", sent))
	h.settled(10*time.Second, delivery.Delivered, sent+1)
	a := r.seen()[sent]
	if n := strings.Count(a.header.Get("X-Webhook-Signature"), "v1="); n != 2 || !signedBy(signature.XWebhook, a, before) ||
		!signedBy(signature.XWebhook, a, newest()) {
		t.Errorf("%d signatures in %s", n, a.header.Get("X-Webhook-Signature"))
	}
}

// If the tenant's policy does not disable endpoints that respond with 410, and the endpoint retries client errors, a
// 410 is retried.
func TestAGoneIsRetriedWhereItDisablesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, func(a arrival) int {
		if a.header.Get("webhook-attempt") == "1" {
			return 410
		}
		return 200
	})
	tenant := h.tenant()
	h.exec(`UPDATE tenants SET settings = '{"health":{"gone":false}}' WHERE id = $1`, tenant)
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.RetryPolicy, s.RetryClientErrors = "quick", true })
	h.worker(true)
	h.emit(tenant, item("order.completed", "", 0))
	h.settled(10*time.Second, delivery.Delivered, 1)
	if n := h.count("SELECT count(*) FROM endpoints WHERE id = $1 AND status = 'active'", ep); n != 1 || len(r.seen()) != 2 {
		t.Errorf("%d requests, active: %d", len(r.seen()), n)
	}
}
