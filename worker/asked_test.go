package worker

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/pause"
)

// asker is a receiver that answers its first request with a Retry-After, and the others with status.
type asker struct {
	*receiver
	mu     sync.Mutex
	status int
}

func newAsker(t *testing.T, retryAfter string) *asker {
	a := &asker{receiver: newReceiver(t, nil), status: 200}
	a.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		a.receiver.mu.Lock()
		a.arrivals = append(a.arrivals, arrival{id: req.Header.Get("webhook-id"), at: time.Now()})
		first := len(a.arrivals) == 1
		a.receiver.mu.Unlock()
		a.mu.Lock()
		defer a.mu.Unlock()
		if first {
			rw.Header().Set("Retry-After", retryAfter)
			rw.WriteHeader(429)
			return
		}
		rw.WriteHeader(a.status)
	})
	return a
}

func (a *asker) answers(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status
}

// waitsFor returns why a delivery waits.
func (h *house) waitsFor(tenant, dlv id.UUID) (w condition.Wait) {
	h.t.Helper()
	h.as(tenant, func(q *sql.Queries) error {
		d, err := deliveries.Read(h.t.Context(), q, tenant, dlv)
		w = d.Wait
		return err
	})
	return w
}

// conditionOf is the endpoint's condition.
func (h *house) conditionOf(tenant, ep id.UUID) (c condition.Condition) {
	h.t.Helper()
	h.as(tenant, func(q *sql.Queries) error {
		e, err := endpoints.Read(h.t.Context(), q, h.ring, tenant, ep)
		c = e.Condition
		return err
	})
	return c
}

func TestAPersonWhoActsEndsTheWaitThatAnEndpointAskedFor(t *testing.T) {
	t.Parallel()
	type act func(h *house, tenant, ep, dlv id.UUID)
	verified := func(h *house, tenant, ep, _ id.UUID) {
		var v sql.Verification
		h.as(tenant, func(q *sql.Queries) (err error) {
			v, err = endpoints.RequestVerification(h.t.Context(), q, tenant, ep)
			return err
		})
		if opened, err := endpoints.OpenVerified(h.t.Context(), h.db, sql.PendingVerificationsRow{TenantID: tenant, EndpointID: ep, ID: v.ID}, 200, 0); err != nil || !opened {
			h.t.Errorf("the verification does not count: %v, %v", opened, err)
		}
	}
	for name, act := range map[string]act{
		"retry now": func(h *house, tenant, _, dlv id.UUID) {
			h.as(tenant, func(q *sql.Queries) error {
				_, changed, err := deliveries.RetryNow(h.t.Context(), q, tenant, dlv)
				if !changed {
					h.t.Error("retry now changes nothing")
				}
				return err
			})
		},
		"retry now of many": func(h *house, tenant, ep, _ id.UUID) {
			h.as(tenant, func(q *sql.Queries) error {
				_, err := deliveries.StartBulkJob(h.t.Context(), q, tenant, db.Author{Kind: "command"}, deliveries.NewBulkJob{
					Kind:   bulk.RetryNow,
					Filter: bulk.Filter{Endpoint: id.Endpoint.Format(ep)},
				})
				return err
			})
		},
		"pause and resume": func(h *house, tenant, ep, _ id.UUID) {
			h.pause(tenant, ep)
			h.resume(tenant, ep)
		},
		"resume, which is Send now": func(h *house, tenant, ep, _ id.UUID) {
			if a := h.conditionOf(tenant, ep).Actions(); len(a) != 1 || a[0] != condition.SendNow {
				h.t.Errorf("offered is %v", a)
			}
			h.as(tenant, func(q *sql.Queries) error {
				_, _, _, err := endpoints.Editor{Keys: h.ring, By: db.Author{Kind: "command"}}.SetState(
					h.t.Context(), q, tenant, ep, "endpoint.resume", endpoint.Resume)
				return err
			})
		},
		"a verification that succeeds": verified,
		"a new URL": func(h *house, tenant, ep, dlv id.UUID) {
			h.change(tenant, ep, func(s *endpoint.Settings) { s.URL += "/moved" })
			verified(h, tenant, ep, dlv)
		},
		"an operator who resumes the endpoint": func(h *house, _, ep, _ id.UUID) {
			row, _, err := accounts.PauseDispatch(h.t.Context(), h.db, pause.Pause{Scope: pause.Endpoint, Endpoint: ep},
				"test", db.Author{Kind: "operator"})
			if err == nil {
				_, err = accounts.ResumeDispatch(h.t.Context(), h.db, row.ID, "fixed", db.Author{Kind: "operator"})
			}
			if err != nil {
				h.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			r := newAsker(t, "86400")
			tenant := h.tenant()
			ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.MaxInFlight, s.RetryPolicy = 1, "quick" })
			dlv := h.deliveryOf(h.emitN(tenant, 3)[0])
			w, _ := h.worker(true)
			eventually(t, 10*time.Second, "the endpoint waits", func() bool {
				l, _ := w.dispatch.View(ep)
				return h.count("SELECT count(*) FROM lanes WHERE not_before > now() + interval '23 hours'") == 1 && l.InFlight == 0
			})
			c := h.conditionOf(tenant, ep)
			if c.State != condition.AskedToWait || c.Held != 3 || c.Until.Before(time.Now().Add(23*time.Hour)) ||
				c.NextProbeAt.After(time.Now().Add(time.Hour)) || c.Since.IsZero() {
				t.Errorf("the endpoint is %+v", c)
			}
			if got := h.waitsFor(tenant, dlv); got.Reason != condition.RetryAfter || !got.Until.Equal(c.Until) {
				t.Errorf("the delivery that was refused waits for %+v", got)
			}
			act(h, tenant, ep, dlv)
			h.settled(15*time.Second, delivery.Delivered, 3)
			if c := h.conditionOf(tenant, ep); c.State != condition.Active {
				t.Errorf("the endpoint is %+v", c)
			}
			h.balanced()
		})
	}
}

func TestATestEventIgnoresTheWaitAndItsSuccessEndsIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newAsker(t, "7200")
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.MaxInFlight, s.RetryPolicy = 5, "once" })
	h.emitN(tenant, 1)
	_, stop := h.worker(true)
	waits := func() int {
		return h.count("SELECT count(*) FROM lanes WHERE not_before > now() + interval '90 minutes' AND look_at > now() + interval '30 minutes'")
	}
	eventually(t, 10*time.Second, "the endpoint waits", func() bool { return waits() == 1 })
	r.answers(503)
	test := func(n int) id.UUID {
		dlv := h.deliveryOf(h.emitN(tenant, n)[n-1])
		h.as(tenant, func(q *sql.Queries) error { return deliveries.HastenTest(t.Context(), q, tenant, dlv) })
		return dlv
	}
	failed := test(10)
	eventually(t, 10*time.Second, "the test was sent", func() bool {
		status, _, _ := h.state(failed)
		return status == delivery.Failed
	})
	if n := len(r.seen()); n != 2 || waits() != 1 {
		t.Errorf("%d requests, want the first and the test; %d lanes wait", n, waits())
	}
	stop()
	h.worker(true) // the wait is on record
	next := h.deliveryOf(h.emitN(tenant, 1)[0])
	eventually(t, 10*time.Second, "with another worker a delivery waits for the same", func() bool {
		return h.waitsFor(tenant, next).Reason == condition.RetryAfter
	})
	r.answers(200)
	test(1)
	h.settled(15*time.Second, delivery.Delivered, 11)
	if c := h.conditionOf(tenant, ep); c.State != condition.Active {
		t.Errorf("the endpoint is %+v", c)
	}
	h.balanced()
}

func TestALongWaitIsLookedAtByOneDeliveryAtATime(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newAsker(t, "86400")
	tenant := h.tenant()
	h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.MaxInFlight, s.RetryPolicy = 5, "quick" })
	h.emitN(tenant, 1)
	_, stop := h.worker(true)
	waits := func() bool {
		return h.count("SELECT count(*) FROM lanes WHERE not_before > now() + interval '23 hours' AND look_at > now() + interval '50 minutes'") == 1
	}
	eventually(t, 10*time.Second, "the endpoint waits", waits)
	stop()
	h.emitN(tenant, 20)
	r.answers(500)
	h.exec("UPDATE lanes SET look_at = now()") // an hour later
	_, stop = h.worker(true)
	eventually(t, 10*time.Second, "one delivery looked, and the next look is in an hour", func() bool {
		return len(r.seen()) == 2 && waits()
	})
	stop()
	if n := len(r.seen()); n != 2 {
		t.Errorf("%d requests during the wait, want 2", n)
	}
	r.answers(200)
	h.exec("UPDATE lanes SET look_at = now()")
	h.worker(true)
	h.settled(15*time.Second, delivery.Delivered, 21)
	h.balanced()
}
