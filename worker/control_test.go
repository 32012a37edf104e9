package worker

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/signature"
)

func TestAPausedEndpointHoldsItsDeliveriesAndGoesOnWhenResumed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, nil)
	w, _ := h.worker(true)
	h.emit(tenant, item("order.completed", "", 0))
	h.settled(10*time.Second, delivery.Delivered, 1)
	h.pause(tenant, ep)
	if took := h.followed(w, ep); took > 3*time.Second { // a second, plus the delay of a busy machine
		t.Errorf("the worker noticed the pause after %v", took)
	}
	for i := range 20 {
		h.emit(tenant, item("order.completed", "", i+1))
	}
	eventually(t, 5*time.Second, "the lane is given back", func() bool {
		return h.count("SELECT count(*) FROM lanes WHERE endpoint_id = $1 AND owner IS NULL AND held", ep) == 1
	})
	if n := h.waiting(ep); n != 20 {
		t.Errorf("%d deliveries are held, want 20", n)
	}
	h.resume(tenant, ep)
	h.settled(5*time.Second, delivery.Delivered, 21)
	if got := ns(r.seen()); len(got) != 21 {
		t.Errorf("%d arrivals, want 21", len(got))
	}
	h.balanced()
}

func TestAChangeHoldsWithinASecondForRowsThatWereReadAhead(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var blocked atomic.Bool
	blocked.Store(true)
	g := newGate(t)
	defer g.release()
	r := newReceiver(t, func(arrival) int {
		if blocked.CompareAndSwap(true, false) {
			g.pass()
		}
		return 200
	})
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL+"/old", func(s *endpoint.Settings) { s.MaxInFlight = 1 })
	w, _ := h.worker(true)
	for i := range 12 {
		h.emit(tenant, item("order.completed", "", i))
	}
	g.waitEntered(t)
	eventually(t, 5*time.Second, "rows are read ahead", func() bool {
		l, _ := w.dispatch.View(ep)
		return l.Ready > 0
	})
	// Another URL must be verified: deliveries are held until it is.
	h.change(tenant, ep, func(s *endpoint.Settings) {
		s.URL = r.URL + "/new"
		s.Headers = endpoint.Headers{"X-Shop": {Value: "north"}}
	})
	var added show.Secret
	h.as(tenant, func(q *sql.Queries) (err error) {
		added, err = endpoints.RotateSecret(t.Context(), q, h.ring, tenant, ep, endpoints.Rotation{
			Overlap: 3600,
			Choose:  freshSecret,
		})
		return err
	})
	if took := h.followed(w, ep); took > 3*time.Second { // a second, plus the delay of a busy machine
		t.Errorf("the worker noticed the change after %v", took)
	}
	g.release()
	h.settled(15*time.Second, delivery.Delivered, 12)
	newest := h.openSecret(tenant, ep, added.ID)
	deliveries := 0
	for i, a := range r.seen() {
		if strings.Contains(string(a.body), "endpoint.verification") {
			continue
		}
		deliveries++
		if i == 0 {
			continue // was in flight
		}
		if a.path != "/new" || a.header.Get("X-Shop") != "north" {
			t.Errorf("event %d went to %s with X-Shop %q", a.data.N, a.path, a.header.Get("X-Shop"))
		}
		if n := len(strings.Fields(a.header.Get("webhook-signature"))); n != 2 {
			t.Errorf("event %d carries %d signatures, want one of each live secret", a.data.N, n)
		}
		if !signedBy(signature.Standard, a, newest) {
			t.Errorf("event %d is not signed with the new secret", a.data.N)
		}
	}
	if deliveries != 12 {
		t.Errorf("%d arrivals, want 12", deliveries)
	}
}

// freshSecret creates the next secret of a rotation.
func freshSecret(w signature.Wire, _ bool) (endpoint.Secret, error) {
	var seed [32]byte
	_, _ = rand.Read(seed[:])
	return endpoint.NewSecret(w.Format, endpoint.HMAC, seed)
}

// openSecret opens a stored secret as text, for verification.
func (h *house) openSecret(tenant, ep, secret id.UUID) string {
	h.t.Helper()
	var sealed []byte
	h.query("SELECT sealed FROM endpoint_secrets WHERE id = $1", []any{&sealed}, secret)
	plain, err := h.ring.Open(sealed, tenant, ep)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(plain)
}

// signedBy reports whether a request carries a secret's signature.
func signedBy(f signature.Format, a arrival, secret string) bool {
	return signature.Wire{Format: f, Prefix: signature.DefaultPrefix}.Verify(a.header.Get, a.body, []string{secret},
		time.Now(), time.Minute) == nil
}

func TestRotationSignsWithBothWhereThereIsRoomAndWithTheOldElsewhereUntilSwitched(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	both := h.endpoint(tenant, r.URL+"/both", nil)
	slot := h.endpoint(tenant, r.URL+"/slot", func(s *endpoint.Settings) { s.Format = signature.BodyHex })
	w, _ := h.worker(true)
	secrets := map[id.UUID][]string{}
	remember := func(ep id.UUID) {
		var raw [16]byte
		h.query("SELECT id FROM endpoint_secrets WHERE endpoint_id = $1 ORDER BY id DESC LIMIT 1", []any{&raw}, ep)
		secrets[ep] = append(secrets[ep], h.openSecret(tenant, ep, raw))
	}
	round := 0
	send := func() (standard, hex arrival) {
		t.Helper()
		h.emit(tenant, item("order.completed", "", round))
		round++
		h.settled(10*time.Second, delivery.Delivered, 2*round)
		for _, a := range r.seen()[2*(round-1):] {
			if a.path == "/both" {
				standard = a
			} else {
				hex = a
			}
		}
		return standard, hex
	}
	remember(both)
	remember(slot)
	send()
	for _, ep := range []id.UUID{both, slot} {
		h.as(tenant, func(q *sql.Queries) error {
			_, err := endpoints.RotateSecret(t.Context(), q, h.ring, tenant, ep, endpoints.Rotation{
				Overlap: 3600,
				Choose:  freshSecret,
			})
			return err
		})
		remember(ep)
		h.followed(w, ep)
	}
	standard, hex := send()
	if !signedBy(signature.Standard, standard, secrets[both][0]) || !signedBy(signature.Standard, standard, secrets[both][1]) {
		t.Error("in the overlap not both secrets sign")
	}
	if !signedBy(signature.BodyHex, hex, secrets[slot][0]) || signedBy(signature.BodyHex, hex, secrets[slot][1]) {
		t.Error("the one slot does not keep the old secret")
	}
	h.as(tenant, func(q *sql.Queries) error {
		_, _, err := endpoints.SwitchSecret(t.Context(), q, tenant, slot)
		return err
	})
	h.followed(w, slot)
	if _, hex = send(); !signedBy(signature.BodyHex, hex, secrets[slot][1]) {
		t.Error("after the switch the new secret does not sign")
	}
	// An overlap that ends while the configuration is in memory ends nevertheless.
	h.exec("UPDATE endpoint_secrets SET expires_at = now() + interval '1 second' WHERE endpoint_id = $1 AND expires_at IS NOT NULL", both)
	h.exec("UPDATE lanes SET rev = rev + 1 WHERE endpoint_id = $1", both)
	h.followed(w, both)
	eventually(t, 5*time.Second, "the overlap has ended", func() bool {
		return h.count("SELECT count(*) FROM endpoint_secrets WHERE endpoint_id = $1 AND expires_at < clock_timestamp()", both) == 1
	})
	if standard, _ = send(); signedBy(signature.Standard, standard, secrets[both][0]) || !signedBy(signature.Standard, standard, secrets[both][1]) {
		t.Error("a secret signs after its overlap")
	}
}

func TestADeliveryThatIsCanceledInFlightAndSucceedsIsDelivered(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	g := newGate(t)
	defer g.release()
	fails := newReceiver(t, func(arrival) int { g.pass(); return 500 })
	succeeds := newReceiver(t, func(arrival) int { g.pass(); return 200 })
	tenant := h.tenant()
	h.endpoint(tenant, succeeds.URL, nil)
	h.endpoint(tenant, fails.URL, nil)
	h.worker(true)
	h.emit(tenant, item("order.completed", "", 1))
	g.waitEntered(t)
	g.waitEntered(t)
	var won, lost id.UUID
	for url, into := range map[string]*id.UUID{succeeds.URL: &won, fails.URL: &lost} {
		var raw [16]byte
		h.query("SELECT d.id FROM deliveries d JOIN endpoints e ON e.id = d.endpoint_id WHERE e.url = $1", []any{&raw}, url)
		*into = raw
		h.cancel(tenant, *into)
	}
	h.balanced()
	if n := h.count("SELECT count(*) FROM cancellations"); n != 2 {
		t.Fatalf("%d cancellations, want 2", n)
	}
	g.release()
	eventually(t, 10*time.Second, "both attempts are on record", func() bool { return h.count("SELECT count(*) FROM attempts WHERE late") == 2 })
	if status, _, attempts := h.state(won); status != delivery.Delivered || attempts != 1 {
		t.Errorf("what really happened lost: %s after %d attempts", status, attempts)
	}
	if status, _, attempts := h.state(lost); status != delivery.Canceled || attempts != 1 {
		t.Errorf("a failure that came late made the delivery %s after %d attempts", status, attempts)
	}
	if n := h.count("SELECT count(*) FROM cancellations WHERE delivery_id = $1", lost); n != 1 || h.count("SELECT count(*) FROM cancellations") != 1 {
		t.Error("the list of what was canceled is not what was canceled")
	}
	if n := h.count("SELECT count(*) FROM queue"); n != 0 {
		t.Errorf("%d rows are queued again", n)
	}
	h.balanced()
}

// What ends a delivery from outside, a deletion or its age, ends no request: what the receiver says then counts.
func TestADeliveryThatFailsFromOutsideDuringItsRequestAndSucceedsIsDelivered(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	g := newGate(t)
	defer g.release()
	fails := newReceiver(t, func(arrival) int { g.pass(); return 500 })
	succeeds := newReceiver(t, func(arrival) int { g.pass(); return 200 })
	expires := newReceiver(t, func(arrival) int { g.pass(); return 200 })
	tenant := h.tenant()
	endpoints := map[string]id.UUID{}
	for _, url := range []string{succeeds.URL, fails.URL, expires.URL} {
		endpoints[url] = h.endpoint(tenant, url, nil)
	}
	h.worker(true)
	h.emit(tenant, item("order.completed", "", 1))
	for range endpoints {
		g.waitEntered(t)
	}
	h.remove(tenant, endpoints[succeeds.URL])
	h.remove(tenant, endpoints[fails.URL])
	later := time.Now().Add(time.Hour)
	eventually(t, 10*time.Second, "the deliveries of deleted endpoints fail", func() bool {
		return h.count("SELECT count(*) FROM dead_letters WHERE reason = $1", int16(delivery.EndpointDeleted)) == 2
	})
	if n, err := queue.FailBefore(t.Context(), h.db, later, later, 10); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	h.balanced()
	g.release()
	eventually(t, 10*time.Second, "all attempts are on record", func() bool { return h.count("SELECT count(*) FROM attempts WHERE late") == 3 })
	for url, want := range map[string]delivery.Status{
		succeeds.URL: delivery.Delivered,
		expires.URL:  delivery.Delivered,
		fails.URL:    delivery.Failed,
	} {
		var raw [16]byte
		h.query("SELECT id FROM deliveries WHERE endpoint_id = $1", []any{&raw}, endpoints[url])
		if status, _, attempts := h.state(raw); status != want || attempts != 1 {
			t.Errorf("%s is %s after %d attempts, want %s after 1", url, status, attempts, want)
		}
	}
	if n := h.count("SELECT count(*) FROM dead_letters"); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
	h.balanced()
}

func TestWhatIsCanceledAfterItWasReadAheadIsNotSent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	g := newGate(t)
	defer g.release()
	r := newReceiver(t, func(a arrival) int {
		if a.data.N == 0 {
			g.pass()
		}
		return 200
	})
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.MaxInFlight = 1 })
	w, _ := h.worker(true)
	first := h.emit(tenant, item("order.completed", "", 0))
	g.waitEntered(t)
	rest := h.emit(tenant, item("order.completed", "", 1), item("order.completed", "", 2), item("order.completed", "", 3))
	eventually(t, 5*time.Second, "three rows are read ahead", func() bool {
		l, _ := w.dispatch.View(ep)
		return l.Ready == 3
	})
	h.cancel(tenant, h.deliveryOf(rest[1]))
	if took := h.followed(w, ep); took > 3*time.Second { // a second, plus the delay of a busy machine
		t.Errorf("the worker noticed after %v", took)
	}
	g.release()
	h.settled(10*time.Second, delivery.Delivered, 3)
	if got := ns(r.seen()); len(got) != 3 || got[0] != 0 || got[1] != 1 || got[2] != 3 {
		t.Errorf("events %v were sent, want 0, 1 and 3", got)
	}
	_ = first
	h.balanced()
}

func TestRetryNowMakesOneAttemptAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var healthy atomic.Bool
	r := newReceiver(t, func(arrival) int {
		if healthy.Load() {
			return 200
		}
		return 503
	})
	tenant := h.tenant()
	h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.RetryPolicy = "five" })
	h.worker(true)
	dlv := h.deliveryOf(h.emit(tenant, item("order.completed", "", 1))[0])
	eventually(t, 10*time.Second, "the first attempt failed", func() bool {
		return h.count("SELECT count(*) FROM queue WHERE state = $1", queue.Scheduled) == 1
	})
	healthy.Store(true)
	var changes int
	for range 2 { // two people click concurrently
		h.as(tenant, func(q *sql.Queries) error {
			_, changed, err := deliveries.RetryNow(t.Context(), q, tenant, dlv)
			if changed {
				changes++
			}
			if fault.Is(err, "delivery_settled") && changes == 1 {
				return nil // the second click came after the response
			}
			return err
		})
	}
	h.settled(5*time.Second, delivery.Delivered, 1)
	if n := len(r.seen()); n != 2 || changes != 1 {
		t.Errorf("%d attempts after %d changes, want 2 after 1", n, changes)
	}
	if n := h.count("SELECT count(*) FROM attempts WHERE late"); n != 0 {
		t.Error("the manual attempt counted as late")
	}
	h.balanced()
}

func TestAnEndpointThatIsDeletedUnderLoadFailsWhatWasQueuedAndNothingElse(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	slow := newReceiver(t, func(arrival) int { time.Sleep(30 * time.Millisecond); return 200 })
	fast := newReceiver(t, nil)
	tenant := h.tenant()
	doomed := h.endpoint(tenant, slow.URL, func(s *endpoint.Settings) { s.MaxInFlight = 2 })
	h.endpoint(tenant, fast.URL, nil)
	h.worker(true)
	emitted := make(chan int)
	stop := make(chan struct{})
	go func() {
		n := 0
		defer func() { emitted <- n }()
		tick := time.NewTicker(5 * time.Millisecond) // no more than can be delivered in the time below
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			batch := make([]emit.Item, 20)
			for i := range batch {
				batch[i] = item("order.completed", "", n+i)
			}
			if n-len(fast.seen()) < 1000 {
				h.emit(tenant, batch...)
				n += len(batch)
			}
		}
	}()
	eventually(t, 10*time.Second, "some arrived and more wait", func() bool { return len(slow.seen()) >= 10 && h.waiting(doomed) >= 10 })
	h.remove(tenant, doomed)
	eventually(t, 10*time.Second, "its lane is removed", func() bool {
		return h.count("SELECT count(*) FROM lanes WHERE endpoint_id = $1", doomed) == 0
	})
	close(stop)
	n := <-emitted
	eventually(t, 20*time.Second, "the other endpoint has everything", func() bool { return len(fast.seen()) == n })
	eventually(t, 10*time.Second, "nothing waits for the deleted endpoint", func() bool { return h.waiting(doomed) == 0 })
	failed := h.count("SELECT count(*) FROM deliveries WHERE endpoint_id = $1 AND status = 3 AND reason = $2", doomed, int16(delivery.EndpointDeleted))
	all := h.count("SELECT count(*) FROM deliveries WHERE endpoint_id = $1", doomed)
	done := h.count("SELECT count(*) FROM deliveries WHERE endpoint_id = $1 AND status = 2", doomed)
	if failed == 0 || failed+done != all {
		t.Errorf("of %d deliveries %d ended as delivered and %d as failed, endpoint_deleted", all, done, failed)
	}
	if letters := h.count("SELECT count(*) FROM dead_letters WHERE endpoint_id = $1 AND reason = $2", doomed, int16(delivery.EndpointDeleted)); letters != failed {
		t.Errorf("%d dead letters for %d failed deliveries", letters, failed)
	}
	eventually(t, 10*time.Second, "everything is recorded", func() bool { return h.count("SELECT count(*) FROM queue") == 0 })
	h.balanced()
}

// A batch can be routed just before a deletion and commit after the lane is deleted.
func TestRowsThatArriveAfterTheirLaneWasDeletedEndAsEndpointDeleted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, nil)
	dlv := h.deliveryOf(h.emit(tenant, item("order.completed", "", 1))[0])
	h.exec("UPDATE endpoints SET deleted_at = now() WHERE id = $1", ep)
	h.exec("DELETE FROM lanes WHERE endpoint_id = $1", ep)
	other := h.endpoint(tenant, r.URL+"/other", nil)
	h.emit(tenant, item("order.completed", "", 2))
	h.worker(true)
	h.settled(10*time.Second, delivery.Failed, 1)
	if status, reason, _ := h.state(dlv); status != delivery.Failed || reason != delivery.EndpointDeleted {
		t.Errorf("%s, %s", status, reason)
	}
	eventually(t, 10*time.Second, "the other endpoint is served", func() bool { return h.waiting(other) == 0 })
	h.balanced()
}

func TestASecretThatCannotBeOpenedParksItsLaneAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	poison := h.endpoint(tenant, r.URL+"/poison", nil)
	deleted := h.endpoint(tenant, r.URL+"/deleted", nil)
	h.endpoint(tenant, r.URL+"/fine", nil)
	h.exec(`UPDATE endpoint_secrets SET sealed = set_byte(sealed, length(sealed) - 1, get_byte(sealed, length(sealed) - 1) # 255) WHERE endpoint_id = ANY($1)`,
		[][16]byte{poison, deleted})
	w, _ := h.worker(true)
	for i := range 10 {
		h.emit(tenant, item("order.completed", "", i))
	}
	h.settled(10*time.Second, delivery.Delivered, 10)
	if n := h.waiting(poison); n != 10 {
		t.Errorf("%d deliveries wait, want 10", n)
	}
	for _, a := range r.seen() {
		if a.path != "/fine" {
			t.Errorf("a request to %s", a.path)
		}
	}
	// Deleted as it is, its lane goes.
	h.remove(tenant, deleted)
	eventually(t, 10*time.Second, "the lane of the deleted endpoint is removed", func() bool {
		return h.count("SELECT count(*) FROM lanes WHERE endpoint_id = $1", deleted) == 0 && h.waiting(deleted) == 0
	})
	// Fixed, it continues.
	h.exec(`UPDATE endpoint_secrets SET sealed = set_byte(sealed, length(sealed) - 1, get_byte(sealed, length(sealed) - 1) # 255) WHERE endpoint_id = $1`, poison)
	h.exec("UPDATE lanes SET rev = rev + 1 WHERE endpoint_id = $1", poison)
	h.followed(w, poison)
	h.settled(10*time.Second, delivery.Delivered, 20)
	h.balanced()
}

func TestCustomHeadersArriveAndNeverReplaceOurs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		s.Headers = endpoint.Headers{"Authorization": {Value: "Bearer xyz"}, "X-Shop": {Value: "north", Sensitive: true}}
	})
	h.worker(true)
	ids := h.emit(tenant, item("order.completed", "", 7))
	h.settled(10*time.Second, delivery.Delivered, 1)
	a := r.seen()[0]
	for name, want := range map[string]string{
		"Authorization":   "Bearer xyz",
		"X-Shop":          "north",
		"User-Agent":      signature.UserAgent,
		"Content-Type":    "application/json",
		"Accept-Encoding": "identity",
		"webhook-id":      id.Event.Format(ids[0]),
		"webhook-attempt": "1",
	} {
		if got := a.header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q once", name, got, want)
		}
	}
	var body struct{ ID, Type, Timestamp string }
	if err := json.Unmarshal(a.body, &body); err != nil || body.ID != id.Event.Format(ids[0]) || body.Type != "order.completed" {
		t.Errorf("%s: %v", a.body, err)
	}
	if n := h.count("SELECT count(*) FROM attempts a WHERE a::text LIKE '%Bearer xyz%' OR a::text LIKE '%north%'"); n != 0 {
		t.Error("a custom header's value is on record")
	}
	if _, err := time.Parse(time.RFC3339, body.Timestamp); err != nil {
		t.Error(err)
	}
}
