package worker

import (
	"math/rand/v2"
	"testing"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/maintenance"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

func TestTheTotalsBalanceAtEveryMomentOfARandomRun(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	random := rand.New(rand.NewPCG(3, 4))
	r := newReceiver(t, func(a arrival) int {
		return []int{200, 200, 200, 200, 500, 400, 404}[(a.data.N+len(a.attempt)+int(a.attempt[0]))%7]
	})
	tenants := []id.UUID{h.tenant(), h.tenant()}
	var doomed id.UUID
	for _, tenant := range tenants {
		h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.RetryPolicy = "quick" })
		h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
			s.RetryPolicy, s.RetryDelays, s.Ordering = endpoint.Custom, []int{1}, "key"
		})
		doomed = h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
			s.RetryPolicy, s.MaxInFlight = "quick", 1
			limit := 20
			s.RateLimit = &limit
		})
	}
	h.worker(true)
	// pick chooses a delivery of a tenant in some states.
	pick := func(tenant id.UUID, of string) (dlv id.UUID, ok bool) {
		var raw [16]byte
		var n int
		h.query("SELECT count(*) FROM deliveries WHERE tenant_id = $1 AND status IN ("+of+")", []any{&n}, tenant)
		if n == 0 {
			return dlv, false
		}
		err := h.sql.QueryRow(t.Context(), "SELECT id FROM deliveries WHERE tenant_id = $1 AND status IN ("+of+") OFFSET $2 LIMIT 1",
			[16]byte(tenant), random.IntN(n)).Scan(&raw)
		return raw, err == nil
	}
	try := func(tenant id.UUID, fn func(q *sql.Queries) error) { // a rejection is as good as any other result
		_ = h.db.Tenant(t.Context(), tenant, fn)
	}
	for step := range 120 {
		tenant := tenants[random.IntN(2)]
		switch random.IntN(6) {
		case 0, 1:
			h.emit(tenant, item("order.completed", keyOf(step, 3), step), item("order.completed", "", step+1))
		case 2:
			if dlv, ok := pick(tenant, "0, 1"); ok {
				try(tenant, func(q *sql.Queries) error {
					_, err := deliveries.Cancel(t.Context(), q, tenant, dlv)
					return err
				})
			}
		case 3:
			if dlv, ok := pick(tenant, "2, 3, 4"); ok {
				try(tenant, func(q *sql.Queries) error {
					_, err := deliveries.Replay(t.Context(), q, tenant, dlv, true)
					return err
				})
			}
		case 4:
			if dlv, ok := pick(tenant, "1"); ok {
				try(tenant, func(q *sql.Queries) error {
					_, _, err := deliveries.RetryNow(t.Context(), q, tenant, dlv)
					return err
				})
			}
		case 5:
			h.balanced()
			if n, err := maintenance.Reconcile(t.Context(), h.db, 0, 1000); err != nil || n != 0 {
				t.Fatalf("the check of the books finds %d pages that differ, %v", n, err)
			}
		}
	}
	h.remove(tenants[1], doomed)
	eventually(t, 60*time.Second, "everything has ended", func() bool { return h.count("SELECT count(*) FROM queue") == 0 })
	h.balanced()
	for status, name := range map[delivery.Status]string{delivery.Delivered: "delivered", delivery.Failed: "failed", delivery.Canceled: "canceled"} {
		if h.count("SELECT count(*) FROM deliveries WHERE status = $1", int16(status)) == 0 {
			t.Errorf("the run made no delivery %s: it proves less than it should", name)
		}
	}
	if dead, failed := h.count("SELECT count(*) FROM dead_letters"), h.count("SELECT count(*) FROM deliveries WHERE status = 3"); dead != failed {
		t.Errorf("%d dead letters for %d failed deliveries", dead, failed)
	}
	if listed, canceled := h.count("SELECT count(*) FROM cancellations"), h.count("SELECT count(*) FROM deliveries WHERE status = 4"); listed != canceled {
		t.Errorf("%d cancellations for %d canceled deliveries", listed, canceled)
	}
	// Every request is recorded, and counted once in the roll-ups.
	attempts := h.count("SELECT count(*) FROM attempts")
	if n := len(r.seen()); n != attempts {
		t.Errorf("%d requests and %d attempts on record", n, attempts)
	}
	eventually(t, 10*time.Second, "the ledger is folded", func() bool { return h.count("SELECT count(*) FROM ledger") == 0 })
	h.balanced()
	if n := h.count("SELECT coalesce(sum(n), 0) FROM endpoint_stats WHERE width = 60"); n != attempts {
		t.Errorf("%d attempts in the roll-ups, %d on record", n, attempts)
	}
}

func TestHealthIsKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	fine := newReceiver(t, nil)
	bad := newReceiver(t, func(arrival) int { return 500 })
	denied := newReceiver(t, func(arrival) int { return 401 })
	one := func(s *endpoint.Settings) { s.RetryPolicy = "five" }
	good, failing, refusing := h.endpoint(tenant, fine.URL, one), h.endpoint(tenant, bad.URL, one), h.endpoint(tenant, denied.URL, one)
	h.worker(true)
	h.emitN(tenant, 3)
	eventually(t, 10*time.Second, "all were tried", func() bool { return h.count("SELECT count(*) FROM attempts") == 9 })
	for _, tt := range []struct {
		ep   id.UUID
		want string
	}{
		{good, "consecutive_failures = 0 AND last_success_at IS NOT NULL AND first_failure_at IS NULL"},
		{failing, "consecutive_failures = 3 AND last_success_at IS NULL AND unhealthy_since IS NOT NULL AND first_failure_at <= last_failure_at"},
		{refusing, "consecutive_failures = 0 AND auth_streak = 3 AND last_failure_at IS NOT NULL"},
	} {
		if n := h.count("SELECT count(*) FROM endpoint_health WHERE endpoint_id = $1 AND "+tt.want, tt.ep); n != 1 {
			t.Errorf("not so: %s", tt.want)
		}
	}
}

// No index of deliveries contains a column that changes, and pages have room: updates must stay on their page.
func TestUpdatesOfDeliveriesStayOnTheirPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, func(a arrival) int {
		if a.attempt == "1" && a.data.N%10 == 0 {
			return 503
		}
		return 200
	})
	h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.RetryPolicy, s.MaxInFlight = "quick", 50 })
	h.worker(true)
	for range 10 {
		h.emitN(tenant, 200)
	}
	h.settled(60*time.Second, delivery.Delivered, 2000)
	var updates, hot int
	eventually(t, 20*time.Second, "the server's statistics have come in", func() bool {
		h.query("SELECT coalesce(sum(n_tup_upd), 0), coalesce(sum(n_tup_hot_upd), 0) FROM pg_stat_user_tables WHERE relname LIKE 'deliveries_y%'", []any{&updates, &hot})
		return updates >= 2200
	})
	if hot*100 < updates*90 {
		t.Errorf("%d of %d updates stayed on their page, want 90 %%", hot, updates)
	}
	t.Logf("%d of %d updates were heap-only", hot, updates)
}
