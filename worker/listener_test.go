package worker

import (
	"net/http"
	"testing"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/listen"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// listener creates a listener with a receiver's address, which must never get a request.
func (h *house) listener(tenant id.UUID, forward string) (endpointID id.UUID) {
	h.t.Helper()
	h.as(tenant, func(q *sql.Queries) error {
		defaults, err := endpoints.Defaults(h.t.Context(), q, tenant, 50)
		if err != nil {
			return err
		}
		s, err := defaults.Settings.CheckListener(forward)
		if err != nil {
			return err
		}
		secret, err := endpoint.NewSecret(s.Format, endpoint.HMAC, [32]byte{1})
		if err != nil {
			return err
		}
		made, err := listen.Create(h.t.Context(), q, endpoints.Editor{Keys: h.ring}, tenant, endpoints.New{Settings: s, Secret: secret})
		endpointID = made.ID
		return err
	})
	return endpointID
}

func TestNoWorkerSendsWhatWaitsForAListener(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	to := newReceiver(t, func(arrival) int { return http.StatusOK })
	tenant := h.tenant()
	endpointID := h.listener(tenant, to.URL)
	other := h.endpoint(tenant, to.URL, nil)
	_, stop := h.worker(true)
	defer stop()
	for n := range 5 {
		h.emit(tenant, item("order.completed", "", n))
	}
	h.settled(20*time.Second, delivery.Delivered, 5)
	h.pause(tenant, endpointID)
	h.resume(tenant, endpointID)
	h.emit(tenant, item("order.completed", "", 5))
	h.settled(20*time.Second, delivery.Delivered, 6)
	if n := len(to.seen()); n != 6 || h.waiting(endpointID) != 6 || h.waiting(other) != 0 {
		t.Errorf("%d arrived, %d wait for the listener", n, h.waiting(endpointID))
	}
	stream, err := listen.BeginListening(t.Context(), h.db, tenant, endpointID, 0)
	if err != nil {
		t.Fatal(err)
	}
	given, err := listen.Lease(t.Context(), h.db, h.ring, tenant, endpointID, stream)
	if err != nil || len(given) != 6 {
		t.Fatal(len(given), err)
	}
	// One is canceled while the program has it, and one is answered: a late success is still a success.
	h.cancel(tenant, given[0].Delivery)
	for _, one := range given[:2] {
		answer := listen.Answer{
			Delivery: one.Delivery,
			Attempt:  one.Attempt,
			Result:   delivery.Result{Status: 200},
			Took:     time.Millisecond,
		}
		if d, err := listen.TakeAnswer(t.Context(), h.db, tenant, endpointID, answer); err != nil ||
			d.Status != delivery.Delivered {
			t.Error(d.Status, err)
		}
	}
	if again, err := listen.Lease(t.Context(), h.db, h.ring, tenant, endpointID, stream); err != nil ||
		len(again) != 0 {
		t.Errorf("%d were given out twice: %v", len(again), err)
	}
	h.balanced()
}

func TestAListenerThatIsAbandonedForADayEndsAndWhatWaitsIsCanceled(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	gone, there := h.listener(tenant, ""), h.listener(tenant, "")
	h.emit(tenant, item("order.completed", "", 1), item("order.completed", "", 2))
	h.exec("UPDATE listeners SET contact_at = now() - interval '25 hours' WHERE endpoint_id = $1", gone)
	if n, err := listen.EndAbandoned(t.Context(), h.db, 24*time.Hour, 500); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	for n := 1; n > 0; {
		var err error
		if n, err = queue.FailDeletedEndpoint(t.Context(), h.db, gone, 500); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.count("SELECT count(*) FROM deliveries WHERE endpoint_id = $1 AND status = 4 AND reason = $2", gone, int16(delivery.EndpointDeleted)); n != 2 || h.waiting(there) != 2 {
		t.Errorf("%d canceled, %d wait for the other", n, h.waiting(there))
	}
	if n := h.count("SELECT count(*) FROM audit_log WHERE action = 'endpoint.delete' AND object_id = $1 AND actor_kind = 'system'", id.Endpoint.Format(gone)); n != 1 {
		t.Errorf("%d lines in the audit log", n)
	}
	h.balanced()
}

// A laptop that is closed costs nothing: its listener says so after a minute, gets nothing new after ten, and goes on
// where it was when the program comes back.
func TestAListenerThatWentAwayIsDisconnectedAndComesBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	away, there := h.listener(tenant, ""), h.listener(tenant, "")
	state := func() (s show.Endpoint) {
		t.Helper()
		if err := h.db.Tenant(t.Context(), tenant, func(q *sql.Queries) (err error) {
			s, err = endpoints.Read(t.Context(), q, h.ring, tenant, away)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	silent := func(since string) {
		t.Helper()
		h.exec("UPDATE listeners SET contact_at = now() - $2::interval WHERE endpoint_id = $1", away, since)
		if err := listen.Disconnect(t.Context(), h.db, endpoint.ListenerLeft, 500); err != nil {
			t.Fatal(err)
		}
	}
	if got := state().Condition; got.State != condition.Active {
		t.Errorf("a new listener is %s", got.State)
	}
	silent("2 minutes")
	h.emit(tenant, item("order.completed", "", 1))
	if got := state().Condition; got.State != condition.Disconnected || got.Drops || h.waiting(away) != 1 {
		t.Errorf("after two minutes it is %s, drops: %t, and %d wait", got.State, got.Drops, h.waiting(away))
	}
	silent("11 minutes")
	h.emit(tenant, item("order.completed", "", 2))
	if got := state().Condition; got.State != condition.Disconnected || !got.Drops || h.waiting(away) != 1 || h.waiting(there) != 2 {
		t.Errorf("after eleven minutes it is %s, drops: %t; %d wait for it, %d for the other", got.State, got.Drops, h.waiting(away), h.waiting(there))
	}
	stream, err := listen.BeginListening(t.Context(), h.db, tenant, away, 0)
	if err != nil {
		t.Fatal(err)
	}
	h.emit(tenant, item("order.completed", "", 3))
	if given, err := listen.Lease(t.Context(), h.db, h.ring, tenant, away, stream); err != nil || len(given) != 2 || state().Condition.State != condition.Active {
		t.Errorf("after it came back it is %s and gets %d, want what waited and what is new: %v", state().Condition.State, len(given), err)
	}
	// A stream that went on in a server that had stood still is not forgotten either.
	silent("11 minutes")
	if _, err := listen.Lease(t.Context(), h.db, h.ring, tenant, away, stream); err != nil || state().Condition.State != condition.Active {
		t.Errorf("a stream that went on: %s, %v", state().Condition.State, err)
	}
	h.balanced()
}
