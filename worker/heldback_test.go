package worker

import (
	"testing"
	"time"

	"posthorn/db/ledger"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
)

// A batch above the rate limit of a customer's endpoint is not lateness of the platform.
func TestTheStatusPageDoesNotCountTheWaitForAnEndpointsOwnLimits(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*endpoint.Settings){
		"rate":        func(s *endpoint.Settings) { s.RateLimit, s.Burst, s.MaxInFlight = new(25), new(5), 100 },
		"concurrency": func(s *endpoint.Settings) { s.RateLimit, s.MaxInFlight = nil, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			r := newReceiver(t, func(arrival) int { time.Sleep(20 * time.Millisecond); return 200 })
			tenant := h.tenant()
			h.endpoint(tenant, r.URL, limit)
			h.worker(true)
			h.emitN(tenant, 75)
			h.settled(30*time.Second, delivery.Delivered, 75)
			hours, err := ledger.Status(t.Context(), h.db, time.Now().Add(-2*time.Hour))
			if err != nil || len(hours) == 0 {
				t.Fatal(hours, err)
			}
			waited := time.Duration(h.count(`SELECT (extract(epoch FROM percentile_disc(0.5) WITHIN GROUP (ORDER BY created_at - posthorn.created_at(delivery_id))) * 1e9)::bigint
				FROM attempts`))
			for _, hour := range hours {
				// Compared with the real waits: on a busy machine all of them are late.
				if hour.Measured > 0 && (hour.P50 > waited/2 || hour.P99 > waited) {
					t.Errorf("p50 %v, p99 %v of %d that waited %v at the median", hour.P50, hour.P99, hour.Measured, waited)
				}
			}
			if n := h.count("SELECT count(*) FROM attempts WHERE held_ms > 1000"); n < 5 {
				t.Errorf("only %d attempts are marked as held back for more than a second: the limit was not reached", n)
			}
		})
	}
}
