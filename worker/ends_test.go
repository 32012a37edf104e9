package worker

import (
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// A pause with an end is ended by whichever worker lives then, and the audit log says who had paused.
func TestAPauseEndsByItself(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, nil)
	stays := h.endpoint(tenant, r.URL, nil)
	by := endpoints.Editor{Keys: h.ring, By: db.Author{Kind: "member", ID: "mem_olga", Name: "Olga"}}
	pauseUntil := func(ep id.UUID, until time.Time) {
		t.Helper()
		h.as(tenant, func(q *sql.Queries) error {
			_, _, _, err := by.SetState(t.Context(), q, tenant, ep, "endpoint.pause", endpoint.PauseUntil(until, time.Now()))
			return err
		})
	}
	pauseUntil(ep, time.Now().Add(time.Hour))
	pauseUntil(stays, time.Now().Add(time.Hour))
	h.emit(tenant, item("order.completed", "", 0))
	w, stop := h.worker(true)
	if err := w.maintenance.Do(t.Context(), "end pauses"); err != nil {
		t.Fatal(err)
	}
	if n := h.count("SELECT count(*) FROM endpoints WHERE status = 'paused'"); n != 2 {
		t.Errorf("%d endpoints are paused before the end", n)
	}
	stop()
	h.exec("UPDATE endpoints SET resume_at = now() WHERE id = $1", ep)
	w, _ = h.worker(true) // another worker than the one that lived when it was paused
	if err := w.maintenance.Do(t.Context(), "end pauses"); err != nil {
		t.Fatal(err)
	}
	h.settled(10*time.Second, delivery.Delivered, 1)
	if n := h.count("SELECT count(*) FROM endpoints WHERE id = $1 AND status = 'active' AND resume_at IS NULL", ep); n != 1 {
		t.Error("the endpoint is not active")
	}
	if n := h.count("SELECT count(*) FROM endpoints WHERE id = $1 AND status = 'paused'", stays); n != 1 {
		t.Error("the other endpoint is not paused")
	}
	if n := h.count(`SELECT count(*) FROM audit_log WHERE action = 'endpoint.resume' AND actor_kind = 'system' AND reason <> ''
		AND details -> 'paused_by' ->> 'name' = 'Olga' AND details -> 'paused_by' ->> 'id' = 'mem_olga'`); n != 1 {
		t.Errorf("%d entries of the audit log say so, want 1", n)
	}
}

// A mute until the endpoint recovers ends with a success that nothing counts against.
func TestAMuteEndsWithTheRecovery(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	w, _ := h.worker(true)
	now := time.Now()
	muted := func(c delivery.Counters, timed bool) id.UUID {
		ep := h.endpoint(tenant, "https://hooks.example.com/in", nil)
		h.counted(tenant, ep, c, time.Time{})
		h.exec("UPDATE endpoint_health SET last_success_at = $2 WHERE endpoint_id = $1", ep, c.LastSuccessAt)
		h.exec("UPDATE endpoints SET muted_at = $2, muted_until = $3 WHERE id = $1", ep, now.Add(-time.Hour), map[bool]any{true: now.Add(time.Hour)}[timed])
		return ep
	}
	well := delivery.Counters{LastSuccessAt: now.Add(-time.Minute)}
	before, again := well, well
	before.LastSuccessAt = now.Add(-2 * time.Hour)
	again.ConsecutiveFailures, again.FirstFailureAt, again.LastFailureAt = 1, now, now
	want := map[id.UUID]bool{
		muted(well, false):   false,
		muted(well, true):    true, // for a time, whatever happens
		muted(before, false): true,
		muted(again, false):  true,
	}
	if err := w.maintenance.Do(t.Context(), "end pauses"); err != nil {
		t.Fatal(err)
	}
	for ep, still := range want {
		if n := h.count("SELECT count(*) FROM endpoints WHERE id = $1 AND muted_at IS NOT NULL", ep); (n == 1) != still {
			t.Errorf("muted: %t, want %t", n == 1, still)
		}
	}
}
