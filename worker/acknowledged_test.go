package worker

import (
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// deafWorker starts a worker that gets no notification of a change. It is told of commits only: as the worker of the
// emitting process, or as that of another one, which reads what was announced.
func (h *house) deafWorker(local bool) *Worker {
	w := New(Config{
		DB:        h.db,
		ListenURL: "postgres://nobody@127.0.0.1:1/none",
		Log:       slog.New(slog.DiscardHandler),
		Egress:    h.policy,
		Keys:      h.ring,
		Name:      h.t.Name(),
	})
	h.mu.Lock()
	h.onWake, h.before = w.Committed, w.BeforeCommit
	if !local {
		h.onWake = func(b emit.Batch) []id.UUID {
			w.dispatch.Wake(b.Endpoints)
			return nil
		}
	}
	h.mu.Unlock()
	h.run(w.Run)
	return w
}

// verified makes an endpoint active, as a verification does that its receiver has just passed.
func (h *house) verified(tenant, ep id.UUID) {
	h.t.Helper()
	var raw [16]byte
	h.query("SELECT id FROM verifications WHERE endpoint_id = $1 ORDER BY id DESC LIMIT 1", []any{&raw}, ep)
	if _, err := endpoints.OpenVerified(h.t.Context(), h.db, sql.PendingVerificationsRow{TenantID: tenant, EndpointID: ep, ID: raw}, 200, 0); err != nil {
		h.t.Fatal(err)
	}
	eventually(h.t, 5*time.Second, "the endpoint is active", func() bool {
		return h.count("SELECT count(*) FROM endpoints WHERE id = $1 AND status = 'active'", ep) == 1
	})
}

// newestSecret is an endpoint's newest secret as text.
func (h *house) newestSecret(tenant, ep id.UUID) string {
	h.t.Helper()
	var raw [16]byte
	h.query("SELECT id FROM endpoint_secrets WHERE endpoint_id = $1 ORDER BY id DESC LIMIT 1", []any{&raw}, ep)
	return h.openSecret(tenant, ep, raw)
}

// What the response to a change acknowledged holds for the next event, whichever process changed the endpoint, emits
// and sends, and although the sending one was not told.
func TestAnAcknowledgedChangeHoldsForTheNextEventInEveryProcess(t *testing.T) {
	t.Parallel()
	for _, local := range []bool{true, false} {
		t.Run(fmt.Sprintf("handed over %t", local), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			r := newReceiver(t, nil)
			tenant := h.tenant()
			ep := h.endpoint(tenant, r.URL+"/0", nil)
			h.endpoint(tenant, r.URL+"/unchanged", nil)
			h.deafWorker(local)
			n := 0
			next := func() (a arrival) {
				t.Helper()
				n++
				h.emit(tenant, item("order.completed", "", n))
				h.settled(20*time.Second, delivery.Delivered, 2*n)
				for _, seen := range r.seen() {
					if seen.data.N == n && seen.path != "/unchanged" {
						a = seen
					}
				}
				return a
			}
			rotate := func(overlap int) {
				h.as(tenant, func(q *sql.Queries) error {
					_, err := endpoints.RotateSecret(
						t.Context(),
						q,
						h.ring,
						tenant,
						ep,
						endpoints.Rotation{Overlap: overlap, Choose: freshSecret},
					)
					return err
				})
			}
			next()
			for round := range 6 {
				text := strconv.Itoa(round)
				h.change(tenant, ep, func(s *endpoint.Settings) {
					s.Headers = endpoint.Headers{"X-Round": {Value: text}}
				})
				if a := next(); a.header.Get("X-Round") != text {
					t.Errorf("round %d: the custom header is %q", round, a.header.Get("X-Round"))
				}
				format := []signature.Format{signature.BodyHex, signature.Standard}[round%2]
				h.change(tenant, ep, func(s *endpoint.Settings) { s.Format = format })
				secret := h.newestSecret(tenant, ep)
				if a := next(); !signedBy(format, a, secret) {
					t.Errorf("round %d: the event is not in the format %s", round, format)
				}
				rotate(0)
				old, secret := secret, h.newestSecret(tenant, ep)
				if a := next(); !signedBy(format, a, secret) || signedBy(format, a, old) {
					t.Errorf("round %d: the event is not signed with the secret that replaced the other", round)
				}
				rotate(3600)
				if format == signature.BodyHex { // of the standard format, all secrets sign and none is switched to
					h.as(tenant, func(q *sql.Queries) error {
						_, _, err := endpoints.SwitchSecret(t.Context(), q, tenant, ep)
						return err
					})
				}
				if a := next(); !signedBy(format, a, h.newestSecret(tenant, ep)) {
					t.Errorf("round %d: the event is not signed with the secret that was switched to", round)
				}
				h.change(tenant, ep, func(s *endpoint.Settings) { s.URL = r.URL + "/" + text + "/moved" })
				h.verified(tenant, ep)
				if a := next(); a.path != "/"+text+"/moved" {
					t.Errorf("round %d: the event was sent to %q", round, a.path)
				}
				rotate(0) // ends the overlap: an endpoint has a bounded number of secrets
			}
			h.balanced()
		})
	}
}

// An event that is emitted after the response to a pause is held, although the sending process was not told.
func TestNoEventIsSentAfterAnAcknowledgedPause(t *testing.T) {
	t.Parallel()
	for _, local := range []bool{true, false} {
		t.Run(fmt.Sprintf("handed over %t", local), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			r := newReceiver(t, nil)
			tenant := h.tenant()
			paused := make([]id.UUID, 8)
			for i := range paused {
				paused[i] = h.endpoint(tenant, r.URL+"/"+strconv.Itoa(i), nil)
			}
			h.endpoint(tenant, r.URL+"/unchanged", nil)
			w := h.deafWorker(local)
			h.emit(tenant, item("order.completed", "", 0))
			delivered := len(paused) + 1
			h.settled(20*time.Second, delivery.Delivered, delivered)
			for i, ep := range paused {
				h.pause(tenant, ep)
				h.emit(tenant, item("order.completed", "", i+1))
				delivered += len(paused) - i // with the endpoint that is never paused
				h.settled(20*time.Second, delivery.Delivered, delivered)
				h.followed(w, ep)
			}
			for _, a := range r.seen() {
				if i, err := strconv.Atoi(a.path[1:]); err == nil && a.data.N > i {
					t.Errorf("event %d was sent to the endpoint that was paused before event %d", a.data.N, i+1)
				}
			}
			h.balanced()
		})
	}
}
