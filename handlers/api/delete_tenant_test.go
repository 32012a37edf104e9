package api_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db/maintenance"
	"posthorn/db/queue"
	"posthorn/domain/id"
)

func TestADeletedTenantLooksUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Run(w.auth.Run)
	a, b := w.tenant("A"), w.tenant("B")
	ep := w.active(a, map[string]any{"url": "https://hooks.example.com/in"})
	w.do("POST", "/api/v1/events", a.key, `{"type":"order.paid","data":1}`).want(202)
	w.do("DELETE", "/api/v1/tenants/"+a.id, a.key, nil).want(403)
	w.do("DELETE", "/api/v1/tenants/"+a.id, w.platform, nil).want(204)
	for gone := time.Now(); w.do("GET", "/api/v1/tenants/"+a.id+"/endpoints", w.platform, nil).Status != 404 || w.do("GET", "/api/v1/tenant", a.key, nil).Status != 401; {
		if time.Since(gone) > 2*time.Second {
			t.Fatal("a deleted tenant is found for longer than a second")
		}
	}
	for _, path := range []string{"", "/endpoints", "/endpoints/" + ep, "/events"} {
		w.do("GET", "/api/v1/tenants/"+a.id+path, w.platform, nil).want(404)
	}
	w.do("DELETE", "/api/v1/tenants/"+a.id, w.platform, nil).want(404)
	w.do("POST", "/api/v1/tenants/"+a.id+"/resume", w.platform, nil).want(404)
	w.do("POST", "/api/v1/tenants/"+a.id+"/events", w.platform, `{"type":"order.paid","data":1}`).want(404)
	if list := ids(w.do("GET", "/api/v1/tenants", w.platform, nil).want(200)); len(list) != 1 || list[0] != b.id {
		t.Errorf("the list: %v", list)
	}
	if n := one[int](w, "SELECT count(*)::int FROM lanes WHERE deleted"); n != 1 {
		t.Error("what waits is not left to the worker's sweep")
	}
	w.do("GET", "/api/v1/tenant", b.key, nil).want(200)
}

func TestOfADeletedTenantOnlyTheAuditLogAndTheTotalsStay(t *testing.T) {
	t.Parallel()
	database, s := newScene(t)
	w := startWorld(t, t.Cleanup, database, database)
	theirs := w.belongings(s.TenantA)
	w.SQL("INSERT INTO books (tenant_id, day, accepted, delivered) VALUES ($1, current_date - 1, 1, 1)", w.uuid(id.Tenant, s.TenantB))
	old := w.backdate(tenant{key: s.B}, s.Theirs["event_id"][0], 48*time.Hour)
	w.do("GET", "/api/v1/events/"+old, s.B, nil).want(200)
	gone, err := id.Tenant.Parse(s.TenantB)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maintenance.EraseTenant(t.Context(), w.db, gone, 2,
		func(time.Duration) error { t.Error("a tenant that lives is erased"); return nil }); err != nil {
		t.Fatal(err)
	}
	w.do("DELETE", "/api/v1/tenants/"+s.TenantB, s.Platform, nil).want(204)
	for _, after := range []time.Duration{time.Hour, 0} {
		if due, err := maintenance.TenantsToErase(t.Context(), w.db, after); err != nil ||
			slices.Contains(due, gone) != (after == 0) {
			t.Errorf("after %s: %v, %v", after, due, err)
		}
	}
	batches := 0
	erase := func() bool {
		done, err := maintenance.EraseTenant(t.Context(), w.db, gone, 2, func(time.Duration) error { batches++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return done.Done
	}
	if erase() {
		t.Error("it is done before the worker has let go of the lanes")
	}
	for _, lane := range w.lanesOf(gone) {
		for n := 1; n > 0; {
			if n, err = queue.FailDeletedEndpoint(t.Context(), w.db, lane, 500); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !erase() {
		t.Error("it is not done")
	}
	if batches < 5 {
		t.Errorf("%d batches of at most 2 rows a table", batches)
	}
	for table, sum := range w.belongings(s.TenantB) {
		if stays := tableRules[table].stays != ""; (sum != "") != stays {
			t.Errorf("%s holds something of it: %t", table, sum != "")
		}
	}
	for table, sum := range w.belongings(s.TenantA) {
		if theirs[table] != sum {
			t.Errorf("another tenant's %s changed", table)
		}
	}
	if due, err := maintenance.TenantsToErase(t.Context(), w.db, 0); err != nil || len(due) > 0 {
		t.Errorf("to be erased again: %v, %v", due, err)
	}
	if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE action IN ('tenant.deleted', 'tenant.erased')"); n != 2 {
		t.Errorf("%d entries in the audit log", n)
	}
}

// lanesOf are the endpoints of a tenant that have lanes.
func (w *world) lanesOf(tenant id.UUID) (out []id.UUID) {
	w.t.Helper()
	w.Connection(func(c *pgx.Conn) error {
		rows, err := c.Query(w.t.Context(), "SELECT endpoint_id FROM lanes WHERE tenant_id = $1", tenant.String())
		if err != nil {
			return err
		}
		raw, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
		for _, u := range raw {
			out = append(out, u)
		}
		return err
	})
	return out
}
