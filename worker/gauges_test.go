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

	look := func() map[string]float64 {
		registry := prometheus.NewRegistry()
		w := New(Config{DB: h.db, ListenURL: h.url, Log: h.log, Egress: h.policy, Keys: h.ring, Name: t.Name(), Registry: registry})
		if err := w.maintenance.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		return gaugesOf(t, registry)
	}
	if m := look(); m["outbox_lag_seconds"] != 0 || m["deliveries_pending >24h"] != 2 {
		t.Errorf("nothing can be sent: lag %v s, older than a day %v, want 0 and 2", m["outbox_lag_seconds"], m["deliveries_pending >24h"])
	}
	ago(10*time.Minute, open, db.QueueReady)
	ago(2*time.Hour, open, db.QueueReady)
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
