package worker

import (
	"crypto/rand"
	"testing"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// backdate creates a delivery and its event, some days ago, in the partitions of that day.
func (h *house) backdate(tenant, ep id.UUID, at time.Time, n int, key string) id.UUID {
	h.t.Helper()
	var random [20]byte
	_, _ = rand.Read(random[:])
	event, dlv := id.New(at, [10]byte(random[:10])), id.New(at, [10]byte(random[10:]))
	h.exec(`INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $2, $3, 'order.completed', convert_to(format('{"n":%s}', $4::int), 'UTF8'), 1)`,
		tenant, event.Time(), event, n)
	h.exec("INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type) VALUES ($1, $2, $3, $4, $5, 'order.completed')",
		tenant, dlv.Time(), dlv, event, ep)
	h.exec("INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, state, order_key) VALUES ($1, $2, $3, $4, CASE WHEN $5::text = '' THEN 0 ELSE 2 END, nullif($5, ''))",
		tenant, dlv, event, ep, key)
	h.exec(`INSERT INTO books AS b (tenant_id, day, accepted) VALUES ($1, ($2::timestamptz AT TIME ZONE 'UTC')::date, 1)
		ON CONFLICT (tenant_id, day) DO UPDATE SET accepted = b.accepted + 1`, tenant, dlv.Time())
	return dlv
}

func TestHeldDeliveriesExpireAfterTheirOwnerIsNotified(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const day = 24 * time.Hour
	now, err := h.db.ServerTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.MakePartitions(t.Context(), now.Add(-12*day), now); err != nil {
		t.Fatal(err)
	}
	tenant := h.tenant()
	h.exec("UPDATE tenants SET retention_days = 10 WHERE id = $1", tenant)
	in := func(status endpoint.Status) id.UUID {
		ep := h.endpoint(tenant, "https://hooks.example.com/in", nil)
		h.exec("UPDATE endpoints SET status = $2 WHERE id = $1", ep, string(status))
		h.exec("UPDATE lanes SET held = $2 WHERE endpoint_id = $1", ep, status != endpoint.Active)
		return ep
	}
	unverified, paused, active, fresh := in(endpoint.Unverified), in(endpoint.Paused), in(endpoint.Active), in(endpoint.Disabled)
	var gone, kept []id.UUID
	gone = append(gone, h.backdate(tenant, unverified, now.Add(-7*day-time.Minute), 0, ""), h.backdate(tenant, paused,
		now.Add(-10*day-time.Minute), 1, ""))
	kept = append(kept,
		h.backdate(tenant, unverified, now.Add(-7*day+time.Minute), 2, ""), h.backdate(tenant, paused, now.Add(-10*day+time.Minute), 3, ""),
		h.backdate(tenant, active, now.Add(-11*day), 4, ""), h.backdate(tenant, fresh, now.Add(-7*day), 5, ""))
	w := New(Config{DB: h.db, Log: h.log, Keys: h.ring})
	// Two days before, and not earlier, the owner is notified; once, however often the job runs.
	for _, tt := range []struct {
		at    time.Time
		ep    id.UUID
		wants int
	}{
		{now.Add(-2*day - 2*time.Minute), unverified, 0},
		{now.Add(-2 * day), unverified, 1},
		{now.Add(-day), unverified, 1},
		{now.Add(-day), paused, 1},
	} {
		if err := w.maintenance.ExpireHeld(t.Context(), tt.at); err != nil {
			t.Fatal(err)
		}
		if n := h.notices(tt.ep, notice.HeldExpiring); n != tt.wants {
			t.Errorf("at %v %d notices, want %d", tt.at.Sub(now), n, tt.wants)
		}
	}
	if n := h.count("SELECT count(*) FROM dead_letters"); n != 0 {
		t.Errorf("%d deliveries expired too early", n)
	}
	if err := w.maintenance.ExpireHeld(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	for _, dlv := range gone {
		if status, reason, _ := h.state(dlv); status != delivery.Failed || reason != delivery.RetentionEnded {
			t.Errorf("%s, %s; want failed, expired", status, reason)
		}
	}
	for i, dlv := range kept {
		if status, _, _ := h.state(dlv); status != delivery.Pending {
			t.Errorf("delivery %d that may be held longer is %s", i, status)
		}
	}
	if n := h.notices(fresh, notice.HeldExpiring) + h.notices(active, notice.HeldExpiring); n != 0 {
		t.Errorf("%d notices of what expires in three days, or not at all", n)
	}
	h.balanced()
}

func TestAHugeBacklogIsPausedAndResumedByOneRow(t *testing.T) {
	t.Parallel()
	const backlog = 200_000
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "https://hooks.example.com/in", nil)
	h.exec(`INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id)
		SELECT $1, gen_random_uuid(), gen_random_uuid(), $2 FROM generate_series(1, $3::int)`, tenant, ep, backlog)
	untouched := func() (n int) {
		return h.count("SELECT count(*) FROM (SELECT DISTINCT xmin::text, xmax::text FROM queue) x")
	}
	before := untouched()
	for _, move := range []func(id.UUID, id.UUID){h.pause, h.resume} {
		rev := h.count("SELECT rev FROM lanes WHERE endpoint_id = $1", ep)
		began := time.Now()
		move(tenant, ep)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		if n := h.count("SELECT rev FROM lanes WHERE endpoint_id = $1", ep); n != rev+1 {
			t.Errorf("the lane went from revision %d to %d", rev, n)
		}
	}
	if n := untouched(); n != before || before != 1 {
		t.Errorf("rows of the queue were touched: %d versions, were %d", n, before)
	}
	// The count of them is bounded too.
	h.pause(tenant, ep)
	began := time.Now()
	h.as(tenant, func(q *sql.Queries) error {
		e, err := endpoints.Read(t.Context(), q, h.ring, tenant, ep)
		if err == nil && (e.Condition.Held != 10_000 || !e.Condition.HeldAtLeast) {
			t.Errorf("%d are held, exactly: %v", e.Condition.Held, !e.Condition.HeldAtLeast)
		}
		return err
	})
	if took := time.Since(began); took > time.Second {
		t.Errorf("counting took %v", took)
	}
}

func TestAWeekOfEventsIsDeliveredInOrderAndAtItsRate(t *testing.T) {
	t.Parallel()
	const day, perDay, limit = 24 * time.Hour, 20, 50
	h := newHouse(t)
	now, err := h.db.ServerTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.MakePartitions(t.Context(), now.Add(-9*day), now); err != nil {
		t.Fatal(err)
	}
	r, neighbour := newReceiver(t, nil), newReceiver(t, nil)
	tenant, other := h.tenant(), h.tenant()
	ordered := h.endpoint(tenant, r.URL+"/ordered", func(s *endpoint.Settings) { s.Ordering = "key" })
	rate, burst := limit, 1
	plain := h.endpoint(tenant, r.URL+"/plain", func(s *endpoint.Settings) {
		s.RateLimit, s.Burst, s.MaxInFlight = &rate, &burst, 20
	})
	h.endpoint(other, neighbour.URL, nil)
	n := 0
	for d := 7; d > 0; d-- {
		for i := range perDay {
			at := now.Add(-time.Duration(d)*day + time.Duration(i)*time.Minute)
			h.backdate(tenant, ordered, at, n, "customer")
			h.backdate(tenant, plain, at, n, "")
			n++
		}
	}
	h.openBreaker(tenant, ordered, 0)
	h.openBreaker(tenant, plain, 0)
	h.worker(true)
	h.emitN(other, 20)
	h.settled(40*time.Second, delivery.Delivered, 2*n+20)
	var inOrder, atRate []arrival
	for _, a := range r.seen() {
		if a.path == "/ordered" {
			inOrder = append(inOrder, a)
		} else {
			atRate = append(atRate, a)
		}
	}
	for i, got := range ns(inOrder) {
		if got != i {
			t.Fatalf("event %d arrived in place %d", got, i)
		}
	}
	if len(inOrder) != n || len(atRate) != n {
		t.Errorf("%d and %d of %d events arrived", len(inOrder), len(atRate), n)
	}
	if e := exceeds(atRate, limit, float64(burst), 150*time.Millisecond); e > 0 {
		t.Errorf("%.1f requests more than the rate allows", e)
	}
	h.balanced()
}
