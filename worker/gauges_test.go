package worker

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
)

// Waiting deliveries are counted by age, and lateness by due deliveries: neither held ones nor those that are due
// later.
func TestLatenessIsTheAgeOfTheOldestDueDelivery(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	open := h.endpoint(tenant, "https://open.example/", nil)
	paused := h.endpoint(tenant, "https://paused.example/", nil)
	h.pause(tenant, paused)
	h.exec("UPDATE endpoints SET status_at = now() - interval '1 day'")
	now := time.Now()
	ago := func(d time.Duration, ep id.UUID, state int16) {
		at := idAt(now.Add(-d))
		h.exec("INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, state, due_at) VALUES ($1, $2, $2, $3, $4, CASE WHEN $4::smallint <> 0 THEN now() + interval '1 hour' END)",
			tenant, at, ep, state)
	}
	ago(3*24*time.Hour, paused, queue.Ready)
	ago(2*24*time.Hour, open, queue.Deferred)

	look := func() map[string]float64 {
		registry := prometheus.NewRegistry()
		w := New(Config{
			DB:        h.db,
			ListenURL: h.url,
			Log:       h.log,
			Egress:    h.policy,
			Keys:      h.ring,
			Name:      t.Name(),
			Registry:  registry,
		})
		if err := w.maintenance.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		return gaugesOf(t, registry)
	}
	if m := look(); m["outbox_lag_seconds"] != 0 || m["deliveries_pending >24h"] != 2 {
		t.Errorf("nothing can be sent: lag %v s, older than a day %v, want 0 and 2", m["outbox_lag_seconds"], m["deliveries_pending >24h"])
	}
	ago(10*time.Minute, open, queue.Ready)
	ago(2*time.Hour, open, queue.Ready)
	m := look()
	if lag := m["outbox_lag_seconds"]; lag < 7200 || lag > 7260 {
		t.Errorf("lag %v s, want that of the delivery that could have been sent two hours ago", lag)
	}
	if size := m["outbox_size"]; size != 2 {
		t.Errorf("%v can be sent, want 2", size)
	}
	h.exec("UPDATE queue SET due_at = now() - interval '1 minute' WHERE state = 0")
	if lag := look()["outbox_lag_seconds"]; lag < 60 || lag > 120 {
		t.Errorf("lag %v s, want a minute: a retry is late since it was due", lag)
	}
}

// A delivery that an endpoint's owner or its limits hold back is not late, and does not become late at the moment it is
// released.
func TestTimeHeldByTheOwnerOrByLimitsIsNotLateness(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	slow, resumed := h.endpoint(tenant, "https://slow.example/", nil), h.endpoint(tenant, "https://resumed.example/", nil)
	h.exec("UPDATE endpoints SET status_at = now() - interval '1 day' WHERE id = $1", slow)
	h.exec("UPDATE endpoints SET status_at = now() - interval '30 seconds' WHERE id = $1", resumed)
	for _, ep := range []id.UUID{slow, resumed} {
		h.exec("INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, state) VALUES ($1, $2, $2, $3, 0)", tenant, idAt(time.Now().Add(-time.Hour)), ep)
	}
	ready := int64(0)
	lag := func() (worst float64) {
		t.Helper()
		ready = 0
		if err := h.db.Worker(t.Context(), func(q *sql.Queries) error {
			rows, err := q.PendingByAge(t.Context(), incidents.Silent.Seconds())
			for _, r := range rows {
				worst = max(worst, r.LagSeconds)
				ready += r.Ready
			}
			if err != nil {
				return err
			}
			// The tenant's health and the alert to operators query one tenant, lane by lane.
			own, err := q.OldestDue(t.Context(), tenant, incidents.Silent.Seconds())
			if math.Abs(own-worst) > 0.001 {
				t.Errorf("of one tenant %v s, of all %v s", own, worst)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return worst
	}
	if got := lag(); got < 3600 || ready != 2 {
		t.Errorf("nothing held it back: lag %v s, want an hour; %d ready, want 2", got, ready)
	}
	h.exec("UPDATE lanes SET limited_until = now() - interval '40 seconds' WHERE endpoint_id = $1", slow)
	if got := lag(); got < 40 || got > 100 {
		t.Errorf("a limit held the one back, and the other was resumed: lag %v s, want the time since then", got)
	}
	// A breaker that closes releases its backlog at that moment, before any worker has recorded anything about the
	// lane.
	h.openBreaker(tenant, slow, time.Hour)
	h.exec("UPDATE endpoints SET status_at = now() WHERE id = $1", resumed)
	h.exec("UPDATE lanes SET limited_until = NULL WHERE endpoint_id = $1", slow)
	h.as(tenant, func(q *sql.Queries) error {
		_, err := q.CloseBreaker(t.Context(), tenant, slow)
		return err
	})
	if got := lag(); got > 30 {
		t.Errorf("the breaker has just closed: lag %v s, want the time since then", got)
	}
	h.exec("UPDATE lanes SET limited_until = now() - interval '40 seconds' WHERE endpoint_id = $1", slow)
	h.exec("UPDATE endpoint_health SET closed_at = NULL WHERE endpoint_id = $1", slow)
	owner := db.NewID()
	h.exec("INSERT INTO workers (id, name, beat_at) VALUES ($1, 'w', now() + interval '1 hour')", owner)
	h.exec("UPDATE endpoints SET rate_limit = 1")
	h.exec("UPDATE lanes SET owner = $1, limited_by = 1", owner)
	if got := lag(); got != 0 || ready != 0 {
		t.Errorf("limits hold both back: lag %v s and %d ready, want none", got, ready)
	}
	h.exec("UPDATE workers SET dead = true")
	if got := lag(); got < 40 || got > 100 {
		t.Errorf("their worker is dead: lag %v s, want the time since they were last held back", got)
	}
}

// Tests of the pages cover the job itself (web); a worker that runs without it would show nothing for hours.
func TestWorkersAnalyzeYoungDays(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.worker(true)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	h.endpoint(tenant, r.URL, nil)
	h.emitN(tenant, 700)
	eventually(t, 40*time.Second, "the events of today have statistics", func() bool {
		return h.count("SELECT count(*) FROM pg_class WHERE relname ~ '^events_y' AND relkind = 'r' AND reltuples >= 500") == 1
	})
}

// gaugesOf reads all gauges, by name and label values.
func gaugesOf(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			values[name] = metric.GetGauge().GetValue()
		}
	}
	return values
}
