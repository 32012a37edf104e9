package worker

import (
	"net/http"
	"testing"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

func expiring(key string, at time.Time) emit.Item {
	return emit.Item{Emission: event.Emission{Type: "order.paid", Data: []byte(`{}`), Key: key, ExpiresAt: at}}
}

func (h *house) listed(tenant id.UUID, status string) int {
	h.t.Helper()
	n := 0
	h.as(tenant, func(q *sql.Queries) error {
		page, err := deliveries.List(h.t.Context(), q, tenant, deliveries.ListOptions{Status: status, Range: show.Range{Limit: 100}})
		n = len(page.Rows)
		return err
	})
	return n
}

// expired checks that a delivery ended because of its expiry, in every place that knows it.
func (h *house) expired(tenant, dlv id.UUID, attempts int) {
	h.t.Helper()
	d := h.delivery(tenant, dlv)
	if d.Status != delivery.Expired || d.Reason != delivery.PastExpiry || d.Attempts != attempts || d.DeadLetter || d.Diagnosis.Title != "Expired" {
		h.t.Errorf("it is %s (%s) after %d attempts, dead letter %t: %q", d.Status, d.Reason, d.Attempts, d.DeadLetter, d.Diagnosis.Title)
	}
}

// TestWhatIsNotDeliveredInTimeExpires: while it waits for a retry, for its endpoint or for a worker, and as the head of
// its key. It is canceled in the books, is no dead letter, and can be replayed.
func TestWhatIsNotDeliveredInTimeExpires(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	failing := newReceiver(t, func(arrival) int { return http.StatusInternalServerError })
	fine := newReceiver(t, nil)
	retrying := h.endpoint(tenant, failing.URL, func(s *endpoint.Settings) {
		s.EventTypes, s.Ordering, s.CircuitBreaker = []string{"order.paid"}, "key", false
	})
	paused := h.endpoint(tenant, fine.URL, func(s *endpoint.Settings) { s.EventTypes = []string{"order.paid"} })
	h.pause(tenant, paused)
	w, _ := h.worker(true)
	soon := time.Now().Add(2 * time.Second)
	head := h.emit(tenant, expiring("k", soon), expiring("k", time.Now().Add(time.Hour)), expiring("", time.Now().Add(-time.Second)))
	of := func(ev, ep id.UUID) (dlv id.UUID) {
		h.query("SELECT id FROM deliveries WHERE event_id = $1 AND endpoint_id = $2", []any{&dlv}, ev, ep)
		return dlv
	}
	eventually(t, 20*time.Second, "what is late expires", func() bool {
		if err := w.maintenance.Do(t.Context(), "expire deliveries"); err != nil {
			t.Error(err)
		}
		return h.listed(tenant, delivery.Expired.String()) == 4
	})
	h.expired(tenant, of(head[0], retrying), 1)
	h.expired(tenant, of(head[0], paused), 0)
	h.expired(tenant, of(head[2], retrying), 0)
	h.expired(tenant, of(head[2], paused), 0)
	// The next of the key goes.
	second := of(head[1], retrying)
	eventually(t, 20*time.Second, "the next of the key was tried", func() bool { return h.delivery(tenant, second).Attempts > 0 })
	for _, a := range failing.seen() {
		if a.id == id.Event.Format(head[2]) {
			t.Error("an event that had expired was sent")
		}
	}
	if n := h.listed(tenant, delivery.Canceled.String()) + h.listed(tenant, delivery.DeadLetter); n != 0 {
		t.Errorf("%d of what expired are canceled or dead letters", n)
	}
	if n := h.listed(tenant, delivery.AllFailed); n != 2 {
		t.Errorf("%d of 2 with failed attempts are listed", n)
	}
	// A replay is of now, and does not expire.
	h.resume(tenant, paused)
	h.as(tenant, func(q *sql.Queries) error {
		_, err := deliveries.Replay(t.Context(), q, tenant, of(head[0], paused), false)
		return err
	})
	h.settled(15*time.Second, delivery.Delivered, 2)
	h.balanced()
}

// TestAWorkerStartsNoRequestThatIsLate: without the job that ends what waits, too.
func TestAWorkerStartsNoRequestThatIsLate(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	h.endpoint(tenant, r.URL, nil)
	h.worker(true)
	// The job has looked when the first has arrived, and looks again after two seconds.
	h.emit(tenant, expiring("", time.Now().Add(time.Hour)))
	h.settled(15*time.Second, delivery.Delivered, 1)
	late := time.Now().Add(-time.Second)
	evs := h.emit(tenant, expiring("", late), expiring("", late))
	h.settled(15*time.Second, delivery.Canceled, 2)
	h.expired(tenant, h.deliveryOf(evs[0]), 0)
	if n := len(r.seen()); n != 1 {
		t.Errorf("%d requests of 1 event that had not expired", n)
	}
	h.balanced()
}

// TestEndpointsHaveAnExpiryOfTheirOwn: it counts from when the event can be delivered, and an event's own goes first.
func TestEndpointsHaveAnExpiryOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, newReceiver(t, nil).URL, func(s *endpoint.Settings) { s.ExpiresAfter = new(600) })
	own := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	later := item("order.paid", "", 1)
	later.Emission.DeliverAt = own
	for name, c := range map[string]struct {
		item emit.Item
		from time.Time
		in   time.Duration
	}{
		"of the endpoint":         {item("order.paid", "", 2), time.Now(), 600 * time.Second},
		"of the event":            {expiring("", own), own, 0},
		"from when it can be due": {later, own, 600 * time.Second},
	} {
		var at time.Time
		h.query("SELECT expires_at FROM queue WHERE event_id = $1 AND endpoint_id = $2", []any{&at}, h.emit(tenant, c.item)[0], ep)
		if off := at.Sub(c.from.Add(c.in)).Abs(); off > 5*time.Second {
			t.Errorf("%s: it expires at %v", name, at)
		}
	}
}
