package worker

import (
	"errors"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/emit"
	"posthorn/db/maintenance"
	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
)

func TestADeletedTenantIsErasedWhileOthersGoOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	gone, other := h.tenant(), h.tenant()
	r := newReceiver(t, nil)
	h.endpoint(gone, r.URL+"/gone", nil)
	held := h.endpoint(gone, r.URL+"/held", nil)
	h.endpoint(other, r.URL+"/other", nil)
	h.pause(gone, held)
	w, _ := h.worker(true)
	h.emitN(gone, 20)
	h.emitN(other, 10)
	h.settled(10*time.Second, delivery.Delivered, 30)
	h.leftoverAttempts(gone, 3)
	h.leftoverAttempts(other, 2)
	kept := h.rowsOf(other)
	if err := maintenance.DeleteTenant(t.Context(), h.db, gone, "they left", db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "what waited has failed, and the lanes are gone", func() bool {
		return h.count("SELECT count(*) FROM dead_letters WHERE tenant_id = $1", gone) == 20 && h.count("SELECT count(*) FROM lanes WHERE tenant_id = $1", gone) == 0
	})
	h.balanced()
	if h.commit.Emit(t.Context(), gone, []emit.Item{item("order.completed", "", 1)})[0].Err == nil {
		t.Error("a deleted tenant emits")
	}
	if err := w.maintenance.Do(t.Context(), "erase deleted tenants"); err != nil || h.rowsOf(gone) == "0 0 0" {
		t.Errorf("erased at once, when something of it may be under way: %v", err)
	}
	h.exec("UPDATE tenants SET deleted_at = now() - interval '1 hour' WHERE id = $1", gone)
	h.exec("INSERT INTO books (tenant_id, day, accepted, delivered) VALUES ($1, current_date - 40, 3, 3)", gone)
	enough := errors.New("enough")
	if _, err := maintenance.EraseTenant(t.Context(), h.db, gone, 5, func(time.Duration) error { return enough }); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if n, err := maintenance.Reconcile(t.Context(), h.db, 0, 200_000); err != nil || n != 0 {
		t.Errorf("half-way the books differ: %d, %v", n, err)
	}
	if err := w.maintenance.Do(t.Context(), "erase deleted tenants"); err != nil {
		t.Fatal(err)
	}
	late := &queue.Outcome{
		TenantID:   gone,
		DeliveryID: db.NewID(),
		EventID:    db.NewID(),
		EndpointID: held,
		Attempt:    &queue.Attempt{ID: db.NewID(), StartedAt: time.Now()},
	}
	if err := queue.LogLate(t.Context(), h.db, []*queue.Outcome{late}); err != nil {
		t.Fatal(err)
	}
	if left := h.rowsOf(gone); left != "0 0 0" {
		t.Errorf("events, deliveries, attempts that are left: %s", left)
	}
	if left := h.rowsOf(other); left != kept {
		t.Errorf("the other tenant had %s and has %s", kept, left)
	}
	h.emitN(other, 5)
	h.settled(10*time.Second, delivery.Delivered, 15)
	if n, err := maintenance.Reconcile(t.Context(), h.db, 0, 200_000); err != nil || n != 0 {
		t.Errorf("the books differ: %d, %v", n, err)
	}
}

// leftoverAttempts creates attempts whose deliveries were dropped with another day.
func (h *house) leftoverAttempts(tenant id.UUID, n int) {
	h.t.Helper()
	h.exec(`INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us, tls_us, wait_us, read_us, total_us, url, format, signature)
		SELECT $1, now(), gen_random_uuid(), posthorn.first_id(now() - interval '40 days'), gen_random_uuid(), 1, 200, 0, 1, 1, 1, 1, 1, 5, '', '', '' FROM generate_series(1, $2::int)`, tenant, n)
}

// rowsOf counts a tenant's rows in the bulk tables.
func (h *house) rowsOf(tenant id.UUID) (text string) {
	h.t.Helper()
	h.query(`SELECT concat_ws(' ', (SELECT count(*) FROM events WHERE tenant_id = $1), (SELECT count(*) FROM deliveries WHERE tenant_id = $1),
		(SELECT count(*) FROM attempts WHERE tenant_id = $1))`, []any{&text}, tenant)
	return text
}
