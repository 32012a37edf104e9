package worker

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"posthorn/db"
	"posthorn/domain/id"
)

// What waits is told by age, and lateness by what could be sent: not what is held, nor what is due later.
func TestTheOldestDeliveryThatCouldBeSentTellsHowLateAllIs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	open := h.endpoint(tenant, "https://open.example/", nil)
	paused := h.endpoint(tenant, "https://paused.example/", nil)
	h.pause(tenant, paused)
	now := time.Now()
	ago := func(d time.Duration, ep id.UUID, state int16) {
		at := idAt(now.Add(-d))
		h.exec("INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, state, due_at) VALUES ($1, $2, $2, $3, $4, CASE WHEN $4::smallint <> 0 THEN now() + interval '1 hour' END)",
			tenant, at, ep, state)
	}
	ago(3*24*time.Hour, paused, db.QueueReady)
	ago(2*24*time.Hour, open, db.QueueDeferred)

	look := func() *metrics {
		w := New(Config{DB: h.db, ListenURL: h.url, Log: h.log, Egress: h.policy, Keys: h.ring, Name: t.Name()})
		if err := w.measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w.metrics
	}
	old := func(m *metrics) float64 { return value(t, m.pending.WithLabelValues(">24h")) }
	if m := look(); value(t, m.lag) != 0 || old(m) != 2 {
		t.Errorf("nothing can be sent: lag %v s, older than a day %v, want 0 and 2", value(t, m.lag), old(m))
	}
	ago(10*time.Minute, open, db.QueueReady)
	ago(2*time.Hour, open, db.QueueReady)
	m := look()
	if lag := value(t, m.lag); lag < 7200 || lag > 7260 {
		t.Errorf("lag %v s, want that of the delivery that could have been sent two hours ago", lag)
	}
	if size := value(t, m.outbox); size != 2 {
		t.Errorf("%v can be sent, want 2", size)
	}
	h.exec("UPDATE queue SET due_at = now() - interval '1 minute' WHERE state = 0")
	if lag := value(t, look().lag); lag < 60 || lag > 120 {
		t.Errorf("lag %v s, want a minute: a retry is late since it was due", lag)
	}
}

// value reads a gauge.
func value(t *testing.T, g prometheus.Gauge) float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(g)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0].GetMetric()[0].GetGauge().GetValue()
}
