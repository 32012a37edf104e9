package worker

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// TestAThinEventHasOneLinkForAllItsAttempts: through retries and another worker, and its page shows the same. The link
// opens what was emitted; a replay has a link of its own.
func TestAThinEventHasOneLinkForAllItsAttempts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	var mu sync.Mutex
	attempts := 0
	r := newReceiver(t, func(arrival) int {
		mu.Lock()
		defer mu.Unlock()
		if attempts++; attempts < 4 {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		s.RetryPolicy, s.RetryDelays, s.CircuitBreaker = endpoint.Custom, []int{1, 1, 1, 1}, false
	})
	h.transform(tenant, ep, `{"id": event.id, "link": link}`)
	_, stop := h.worker(true)
	dlv := h.deliveryOf(h.emit(tenant, item("order.paid", "", 7))[0])
	eventually(t, 20*time.Second, "two attempts", func() bool { return len(r.seen()) >= 2 })
	stop()
	h.worker(false)
	h.settled(20*time.Second, delivery.Delivered, 1)
	first := string(r.seen()[0].body)
	for _, a := range r.seen() {
		if string(a.body) != first {
			t.Errorf("%s was sent after %s", a.body, first)
		}
	}
	var sent struct{ Link string }
	if err := json.Unmarshal([]byte(first), &sent); err != nil || sent.Link != h.links().Of(tenant, dlv) {
		t.Fatalf("%s: %v", first, err)
	}
	text, ok := h.ring.OpenToken(delivery.LinkPurpose, strings.TrimPrefix(sent.Link, h.links().BaseURL+delivery.LinkPath))
	l, named := delivery.ParseLink(text)
	if !ok || !named {
		t.Fatalf("the link %s is not signed", sent.Link)
	}
	h.as(tenant, func(q *sql.Queries) error {
		opened, err := deliveries.OpenLink(t.Context(), q, l)
		if err != nil || string(opened.Data) != `{"n":7}` {
			t.Errorf("the link opens %s: %v", opened.Data, err)
		}
		d, err := deliveries.Read(t.Context(), q, tenant, dlv)
		if err != nil {
			return err
		}
		tried, err := deliveries.Attempts(t.Context(), q, d, 10)
		if err != nil {
			return err
		}
		for _, links := range []bool{true, false} {
			by := h.links()
			if !links {
				by.Keys = nil
			}
			shown, err := deliveries.ReadSent(t.Context(), q, h.ring, by, d)
			if err != nil {
				return err
			}
			body := string(shown.Request(tried[0]).Body)
			if links && body != first || !links && !strings.Contains(body, by.Example()) {
				t.Errorf("with links %t the page shows %s", links, body)
			}
		}
		return nil
	})
	if replay := h.links().Of(tenant, id.New(dlv.Time(), [10]byte{1})); replay == sent.Link {
		t.Error("two deliveries have one link")
	}
}
