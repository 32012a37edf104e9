package worker

import (
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
)

// A pause applies to every worker, also to one that starts during it, and ends without a loss.
func TestAPauseHoldsAcrossWorkersAndRestartsAndLosesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	paused, free := h.tenant(), h.tenant()
	ep := h.endpoint(paused, r.URL, func(s *endpoint.Settings) { s.MaxInFlight = 20 })
	h.endpoint(free, r.URL, nil)
	w, stop := h.worker(true)
	row, made, err := accounts.PauseDispatch(
		t.Context(),
		h.db,
		pause.Pause{Scope: pause.Endpoint, Endpoint: ep},
		"test",
		db.Author{Kind: "operator"},
	)
	if err != nil || !made || row.Tenant != paused {
		t.Fatal(row, made, err)
	}
	if again, made, err := accounts.PauseDispatch(t.Context(), h.db, pause.Pause{Scope: pause.Endpoint, Endpoint: ep}, "twice",
		db.Author{Kind: "operator"}); err != nil || made || again.ID != row.ID {
		t.Errorf("the same was paused twice: %+v %t %v", again, made, err)
	}
	took := time.Now()
	covers := func(w *Worker) func() bool {
		return func() bool {
			return w.dispatch.IsPaused(paused, ep, "")
		}
	}
	eventually(t, 5*time.Second, "the worker follows", covers(w))
	t.Logf("the worker followed after %v", time.Since(took))
	of := func(tenant id.UUID) int {
		return h.count("SELECT count(*) FROM deliveries WHERE tenant_id = $1 AND status = 2", tenant)
	}
	barrier := 0
	still := func(where string) {
		t.Helper()
		h.emitN(paused, 10)
		barrier += 10
		h.emitN(free, 10)
		eventually(t, 20*time.Second, "the other tenant's arrive", func() bool { return of(free) == barrier })
		if n := h.count("SELECT count(*) FROM attempts WHERE tenant_id = $1", paused); n != 0 {
			t.Errorf("%s: %d attempts to a paused endpoint", where, n)
		}
	}
	still("while it runs")
	stop()
	second, _ := h.worker(true)
	still("after a restart")
	if n := h.count("SELECT count(*) FROM deliveries WHERE tenant_id = $1 AND status = 0", paused); n != 20 {
		t.Errorf("%d deliveries are pending, want 20", n)
	}
	h.balanced()
	if _, err := accounts.ResumeDispatch(t.Context(), h.db, row.ID, "fixed", db.Author{Kind: "operator"}); err != nil {
		t.Fatal(err)
	}
	if _, err := accounts.ResumeDispatch(t.Context(), h.db, row.ID, "", db.Author{Kind: "operator"}); err == nil {
		t.Error("a pause ends twice")
	}
	eventually(t, 20*time.Second, "what waited arrives", func() bool { return of(paused) == 20 })
	eventually(t, 5*time.Second, "the worker follows", func() bool { return !covers(second)() })
	h.balanced()
	if n := h.count("SELECT count(*) FROM audit_log WHERE tenant_id = $1 AND action IN ('dispatch.paused', 'dispatch.resumed')", paused); n != 2 {
		t.Errorf("%d lines in the tenant's audit log, want 2", n)
	}
}

// The database and the rule agree on what a pause covers.
func TestTheDatabaseAndTheRuleAgreeOnPauses(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant, other := h.tenant(), h.tenant()
	urls := []string{"https://a.example/x", "https://A.example:8443/y?z=1", "http://b.example", "https://a.example.org/#a"}
	eps := map[id.UUID]string{}
	for i, u := range urls {
		ep := h.endpoint([]id.UUID{tenant, other}[i%2], "https://hooks.example.com/", nil)
		h.exec("UPDATE endpoints SET url = $2 WHERE id = $1", ep, u)
		eps[ep] = u
	}
	of := func(ep id.UUID) id.UUID {
		var raw [16]byte
		h.query("SELECT tenant_id FROM endpoints WHERE id = $1", []any{&raw}, ep)
		return raw
	}
	for _, p := range []pause.Pause{
		{Scope: pause.Platform},
		{Scope: pause.Tenant, Tenant: tenant},
		{Scope: pause.Host, Host: "a.example"},
		{Scope: pause.Host, Host: "a.example:8443"},
		{Scope: pause.Host, Host: "b.example"},
	} {
		row, _, err := accounts.PauseDispatch(t.Context(), h.db, p, "test", db.Author{Kind: "operator"})
		if err != nil {
			t.Fatal(err)
		}
		set, n, err := accounts.ReadPauses(t.Context(), h.db)
		if err != nil || n != 1 {
			t.Fatal(n, err)
		}
		concerned := 0
		for ep, u := range eps {
			says := h.count("SELECT count(*) FROM posthorn.paused_endpoints() AS e WHERE e = $1", ep)
			var scope string
			h.as(of(ep), func(q *sql.Queries) error {
				rows, err := q.LanesOf(t.Context(), sql.LanesOfParams{TenantID: new(of(ep)), Ids: []id.UUID{ep}})
				for _, r := range rows {
					if scope = r.Scope; scope != "" && !r.Since.Equal(row.CreatedAt) {
						t.Errorf("%+v began at %v, the database says %v", p, row.CreatedAt, r.Since)
					}
				}
				return err
			})
			covered := set.Covers(of(ep), ep, pause.HostOf(u))
			if covered != (says == 1) || covered != (scope == string(p.Scope)) {
				t.Errorf("%+v and %s: the rule says %t, the database %d and %q", p, u, covered, says, scope)
			}
			if covered {
				concerned++
			}
		}
		if concerned == 0 || p.Scope != pause.Platform && concerned == len(eps) {
			t.Errorf("%+v concerns %d of %d: it tells nothing", p, concerned, len(eps))
		}
		if _, err := accounts.ResumeDispatch(t.Context(), h.db, row.ID, "", db.Author{Kind: "operator"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASuspendedTenantsDeliveriesWaitAndNoneIsLost(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant, other := h.tenant(), h.tenant()
	h.endpoint(tenant, r.URL, nil)
	h.endpoint(other, r.URL, nil)
	h.emitN(tenant, 10)
	set := func(state account.TenantState) {
		t.Helper()
		if _, err := accounts.SetTenantState(t.Context(), h.db, tenant, state, "test", db.Author{Kind: "operator"}); err != nil {
			t.Fatal(err)
		}
	}
	set("suspended")
	h.worker(true)
	h.emitN(other, 10)
	done := func(tenant id.UUID) int {
		return h.count("SELECT count(*) FROM deliveries WHERE tenant_id = $1 AND status = 2", tenant)
	}
	eventually(t, 20*time.Second, "the other tenant's arrive", func() bool { return done(other) == 10 })
	if n := h.count("SELECT count(*) FROM attempts WHERE tenant_id = $1", tenant); n != 0 {
		t.Errorf("%d attempts for a suspended tenant", n)
	}
	var scope string
	h.as(tenant, func(q *sql.Queries) error {
		late, err := q.OldestDue(t.Context(), tenant, incidents.Silent.Seconds())
		if err != nil || late != 0 {
			t.Errorf("what waits for a suspended tenant is late by %v: %v", late, err)
		}
		return err
	})
	h.query("SELECT posthorn.paused_by(e.tenant_id, e.id, e.url) FROM endpoints e WHERE e.tenant_id = $1", []any{&scope}, tenant)
	if scope != string(pause.Suspended) {
		t.Errorf("paused by %q", scope)
	}
	set("active")
	eventually(t, 20*time.Second, "what waited arrives", func() bool { return done(tenant) == 10 })
	h.balanced()
}
