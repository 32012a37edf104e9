package worker

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/transform"
)

// transform edits an endpoint's transformation; an empty expression removes it.
func (h *house) transform(tenant, ep id.UUID, expression string) {
	h.t.Helper()
	if err := h.db.Tenant(h.t.Context(), tenant, func(q *sql.Queries) error {
		_, _, err := endpoints.Change(h.t.Context(), q, h.ring, tenant, ep, func(s endpoint.Settings) (endpoint.Settings, error) {
			if s.Transformation = nil; expression != "" {
				s.Transformation = &transform.Transformation{Kind: transform.CEL, Expression: expression, Variables: map[string]string{"key": "secret-value"}}
			}
			return s.Check(h.policy)
		})
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) delivery(tenant, dlv id.UUID) (d show.Delivery) {
	h.t.Helper()
	if err := h.db.Tenant(h.t.Context(), tenant, func(q *sql.Queries) (err error) {
		d, err = deliveries.Read(h.t.Context(), q, tenant, dlv)
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	return d
}

// TestEveryAttemptHasTheSameBytes: while an endpoint's transformation is edited again and again, its receiver fails,
// and workers come and go, each delivery has the same body on every attempt. A replay has the version of its own
// moment.
func TestEveryAttemptHasTheSameBytes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	var failing sync.Map
	r := newReceiver(t, func(a arrival) int {
		n, _ := failing.LoadOrStore(a.id, rand.IntN(3))
		failing.Store(a.id, n.(int)-1)
		if n.(int) > 0 {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		s.RetryPolicy, s.RetryDelays, s.CircuitBreaker = endpoint.Custom, []int{1, 1, 1, 1}, false
	})
	w, stop := h.worker(true)
	_ = w
	const edits, perEdit = 8, 5
	var all []id.UUID
	for i := range edits {
		if i == 3 {
			h.transform(tenant, ep, "")
		} else {
			// Every other version fails for the events whose number is even.
			h.transform(tenant, ep, fmt.Sprintf(`{"version": %d, "n": data.n, "key": vars.key, "even": data.n %% 2 == 0 && %t ? data.missing : "x"}`, i, i%2 == 0))
		}
		var items []emit.Item
		for k := range perEdit {
			items = append(items, item("order.paid", "", i*perEdit+k))
		}
		all = append(all, h.emit(tenant, items...)...)
		if i%3 == 2 {
			stop()
			_, stop = h.worker(i%2 == 0)
		}
	}
	h.transform(tenant, ep, `{"last": true, "n": data.n}`)
	h.settled(30*time.Second, delivery.Delivered, len(all))
	bodies := map[string]string{}
	versions := map[string]int{}
	for _, a := range r.seen() {
		if strings.Contains(string(a.body), endpoint.Marker) {
			t.Errorf("a masked variable was sent: %s", a.body)
		}
		if before, known := bodies[a.id]; known && before != string(a.body) {
			t.Errorf("event %s was sent as %s and as %s", a.id, before, a.body)
		}
		bodies[a.id] = string(a.body)
	}
	for _, body := range bodies {
		_, version, _ := strings.Cut(body, `"version":`)
		versions[version]++
	}
	if len(bodies) != len(all) || len(versions) < 4 {
		t.Errorf("%d of %d events arrived, as %v", len(bodies), len(all), versions)
	}
	// What the pages show is what was sent.
	for _, ev := range all {
		d := h.delivery(tenant, h.deliveryOf(ev))
		var shown []byte
		if err := h.db.Tenant(t.Context(), tenant, func(q *sql.Queries) error {
			attempts, err := deliveries.Attempts(t.Context(), q, d, 10)
			if err != nil {
				return err
			}
			sent, err := deliveries.ReadSent(t.Context(), q, h.ring, h.links(), d)
			shown = sent.Request(attempts[0]).Body
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(bodies[id.Event.Format(ev)], "secret-value", endpoint.Marker); string(shown) != want {
			t.Errorf("%s was sent and %s is shown", want, shown)
		}
	}
	h.balanced()
}

// TestAFailingTransformationHoldsItsDeliveriesAlone: what it can't be applied to waits, says why, uses up nothing and
// keeps nobody; an edit releases it, also if no worker runs at that moment.
func TestAFailingTransformationHoldsItsDeliveriesAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	ep := h.endpoint(tenant, r.URL, nil)
	h.transform(tenant, ep, `{"total": data.total}`)
	_, stop := h.worker(true)
	good := func(n int) emit.Item {
		return emit.Item{Emission: event.Emission{Type: "order.paid", Data: fmt.Appendf(nil, `{"total":%d}`, n)}}
	}
	held := h.deliveryOf(h.emit(tenant, item("order.paid", "", 1))[0])
	h.emit(tenant, good(1), good(2), good(3))
	h.settled(15*time.Second, delivery.Delivered, 3)
	eventually(t, 10*time.Second, "the delivery waits for an edit", func() bool {
		return h.delivery(tenant, held).Wait.Reason == condition.Transformation
	})
	d := h.delivery(tenant, held)
	if want := "the expression at line 1, column 15: the field total is missing (use has() to test for a field)"; !strings.Contains(d.Wait.Detail(), want) ||
		!strings.Contains(d.Diagnosis.Detail, want) || d.Status != delivery.Pending || d.Attempts != 0 || !d.NextAt.IsZero() || !d.OnHold() {
		t.Errorf("%s %d %v %q", d.Status, d.Attempts, d.NextAt, d.Wait.Detail())
	}
	if n := h.count("SELECT count(*) FROM attempts WHERE delivery_id = $1", held); n != 0 {
		t.Errorf("%d attempts of what was not sent", n)
	}
	if n := h.count("SELECT count(*) FROM endpoint_health WHERE endpoint_id = $1 AND consecutive_failures > 0", ep); n != 0 {
		t.Error("the endpoint's health suffers from its transformation")
	}
	stop()
	h.transform(tenant, ep, `{"total": has(data.total) ? data.total : -1}`)
	h.worker(true)
	h.settled(15*time.Second, delivery.Delivered, 4)
	bodies := ""
	for _, a := range r.seen() {
		bodies += string(a.body)
	}
	if !strings.Contains(bodies, `{"total":-1}`) {
		t.Errorf("it was sent as %s", bodies)
	}
	// A replay is sent as the transformation is now.
	first := h.count("SELECT count(*) FROM deliveries")
	h.transform(tenant, ep, `"replayed"`)
	if err := h.db.Tenant(t.Context(), tenant, func(q *sql.Queries) error {
		_, err := deliveries.Replay(t.Context(), q, tenant, held, true)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	h.settled(15*time.Second, delivery.Delivered, first+1)
	last := r.seen()
	if got := string(last[len(last)-1].body); got != "replayed" || last[len(last)-1].header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("the replay was sent as %s", got)
	}
	h.balanced()
}
