package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// counted sets the recorded counters of an endpoint.
func (h *house) counted(tenant, ep id.UUID, c delivery.Counters, goneAt time.Time) {
	h.t.Helper()
	null := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	h.exec(`INSERT INTO endpoint_health AS h (endpoint_id, tenant_id, consecutive_failures, auth_streak, exhausted, unhealthy_since,
			tls_only_since, first_failure_at, last_failure_at, gone_at, auth_since, last_status, last_error, last_excerpt)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 503, 'the endpoint returned 503 Service Unavailable', 'out of order')
		ON CONFLICT (endpoint_id) DO UPDATE SET consecutive_failures = $3, auth_streak = $4, exhausted = $5, unhealthy_since = $6,
			tls_only_since = $7, first_failure_at = $8, last_failure_at = $9, gone_at = $10, auth_since = $11`,
		ep, tenant, c.ConsecutiveFailures, c.AuthStreak, c.Exhausted, null(c.UnhealthySince), null(c.TLSOnlySince),
		null(c.FirstFailureAt),
		null(c.LastFailureAt), null(goneAt), null(c.AuthSince))
}

// assess assesses an endpoint several times concurrently: each decision must be made once.
func (h *house) assess(tenant, ep id.UUID, now time.Time) (done endpoints.Assessment) {
	h.t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	decided := 0
	for range 3 {
		group.Go(func() {
			a, err := endpoints.Assess(h.t.Context(), h.db, tenant, ep, now)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				h.t.Error(err)
			}
			if !a.None() {
				done = a
				decided++
			}
		})
	}
	group.Wait()
	if decided > 1 {
		h.t.Errorf("%d of three that looked at once decided something", decided)
	}
	return done
}

func (h *house) notices(ep id.UUID, kind notice.Kind) int {
	h.t.Helper()
	return h.count("SELECT count(*) FROM notices WHERE endpoint_id = $1 AND kind = $2", ep, string(kind))
}

// settings gives a tenant settings.
func (h *house) settings(tenant id.UUID, settings string) {
	h.t.Helper()
	h.exec("UPDATE tenants SET settings = $2::text::jsonb WHERE id = $1", tenant, settings)
}

func TestEveryPolicyHoldsAtItsBoundary(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	plain, own := h.tenant(), h.tenant()
	h.settings(own, `{"health":{"unhealthy_hours":10,"exhausted":3,"gone":false}}`)
	t0 := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failing := func(n int) delivery.Counters {
		return delivery.Counters{ConsecutiveFailures: n, UnhealthySince: t0, FirstFailureAt: t0, LastFailureAt: t0}
	}
	refused := func(n int) delivery.Counters {
		return delivery.Counters{AuthStreak: n, AuthSince: t0, FirstFailureAt: t0, LastFailureAt: t0}
	}
	tls := failing(2)
	tls.TLSOnlySince = t0
	type step struct {
		after time.Duration
		want  string // a reason, or a reason and a stage, or nothing
	}
	tests := []struct {
		name   string
		tenant id.UUID
		c      delivery.Counters
		gone   bool
		steps  []step
	}{
		{"nothing but failures for 5 days", plain, failing(10), false, []step{
			{60*time.Hour - 1, ""},
			{60 * time.Hour, "unhealthy half_way"},
			{96*time.Hour - 1, ""},
			{96 * time.Hour, "unhealthy last_day"},
			{120*time.Hour - 1, ""},
			{120 * time.Hour, "unhealthy"},
		}},
		{"too few failures", plain, failing(9), false, []step{{60 * time.Hour, "unhealthy approaching"}, {1000 * time.Hour, ""}}},
		{"more than 100 failures over 12 h", plain, failing(101), false, []step{
			{6*time.Hour - 1, ""},
			{6 * time.Hour, "failures half_way"},
			{12*time.Hour - 1, ""},
			{12 * time.Hour, "failures"},
		}},
		{"100 failures", plain, failing(100), false, []step{{6 * time.Hour, "failures approaching"}, {12 * time.Hour, ""}}},
		{"TLS errors alone for 24 h", plain, tls, false, []step{
			{12*time.Hour - 1, ""},
			{12 * time.Hour, "tls half_way"},
			{24*time.Hour - 1, ""},
			{24 * time.Hour, "tls"},
		}},
		{"4 refusals", plain, refused(4), false, []step{{time.Hour, ""}}},
		{"5 refusals", plain, refused(5), false, []step{{time.Hour, "auth approaching"}, {1000 * time.Hour, ""}}},
		{"10 refusals", plain, refused(10), false, []step{
			{0, ""},
			{15 * time.Minute, "auth half_way"},
			{30*time.Minute - 1, ""},
			{30 * time.Minute, "auth"},
		}},
		{"410", plain, delivery.Counters{}, true, []step{{0, "gone"}}},
		{"410 where the tenant wants none of it", own, delivery.Counters{}, true, []step{{0, ""}}},
		{"exhausted without the policy", plain, delivery.Counters{Exhausted: 1000}, false, []step{{0, ""}}},
		{"one exhausted", own, delivery.Counters{Exhausted: 1}, false, []step{{0, ""}}},
		{"two exhausted", own, delivery.Counters{Exhausted: 2}, false, []step{{0, "exhausted approaching"}}},
		{"three exhausted", own, delivery.Counters{Exhausted: 3}, false, []step{{0, "exhausted"}}},
		{"a tenant's own hours", own, failing(10), false, []step{
			{5*time.Hour - 1, ""},
			{5 * time.Hour, "unhealthy half_way"},
			{10*time.Hour - 1, ""},
			{10 * time.Hour, "unhealthy"},
		}},
	}
	for _, tt := range tests {
		ep := h.endpoint(tt.tenant, "https://hooks.example.com/in?token=abc", nil)
		var goneAt time.Time
		if tt.gone {
			goneAt = t0
		}
		h.counted(tt.tenant, ep, tt.c, goneAt)
		warnings := 0
		for _, s := range tt.steps {
			done := h.assess(tt.tenant, ep, t0.Add(s.after))
			got := string(done.Disabled)
			for _, w := range done.Warned {
				got = fmt.Sprintf("%s %s", w.Reason, w.Stage)
				warnings++
			}
			if got != s.want {
				t.Errorf("%s: after %v: %q, want %q", tt.name, s.after, got, s.want)
			}
			// Each decision is announced once, and a second assessment changes nothing.
			if again := h.assess(tt.tenant, ep, t0.Add(s.after)); !again.None() {
				t.Errorf("%s: after %v it is decided twice: %+v", tt.name, s.after, again)
			}
		}
		last := tt.steps[len(tt.steps)-1].want
		disabled := 0
		if last != "" && !strings.Contains(last, " ") {
			disabled = 1
		}
		if n := h.notices(ep, notice.EndpointWarning); n != warnings {
			t.Errorf("%s: %d notices of %d warnings", tt.name, n, warnings)
		}
		if n := h.notices(ep, notice.EndpointDisabled); n != disabled {
			t.Errorf("%s: %d notices say that it is disabled, want %d", tt.name, n, disabled)
		}
		if n := h.count("SELECT count(*) FROM endpoints e JOIN lanes l ON l.endpoint_id = e.id WHERE e.id = $1 AND (e.status = 'disabled') = $2 AND l.held = $2", ep, disabled == 1); n != 1 {
			t.Errorf("%s: endpoint and lane do not say so", tt.name)
		}
	}
}

func TestTheNoticeOfADisabledEndpointSaysWhatHappened(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "https://hooks.example.com/in?token=abc", nil)
	h.emitN(tenant, 7)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h.counted(tenant, ep, delivery.Counters{AuthStreak: 10, FirstFailureAt: at, LastFailureAt: at.Add(time.Hour)}, time.Time{})
	h.assess(tenant, ep, at.Add(2*time.Hour))
	var raw []byte
	h.query("SELECT details FROM notices WHERE endpoint_id = $1", []any{&raw}, ep)
	var d notice.EndpointDetails
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	if d.Reason != "auth" || d.LastStatus != 503 || d.LastExcerpt != "out of order" || d.Held != 7 || d.HeldMore || d.AuthStreak != 10 ||
		!d.FirstFailureAt.Equal(at) || !d.LastFailureAt.Equal(at.Add(time.Hour)) {
		t.Errorf("%s", raw)
	}
	if strings.Contains(string(raw), "abc") {
		t.Errorf("the notice shows a query's value: %s", raw)
	}
	if n := h.count("SELECT count(*) FROM audit_log WHERE action = 'endpoint.disabled' AND actor_kind = 'system' AND reason = 'auth' AND tenant_id = $1", tenant); n != 1 {
		t.Error("the audit log does not tell of it")
	}
	if n := h.count("SELECT count(*) FROM endpoint_revisions WHERE endpoint_id = $1 AND status = 'disabled'", ep); n != 1 {
		t.Error("no revision says how it routes now")
	}
}

// failing makes every write to a table fail, as if the worker had been killed there.
func (h *house) failing(table string) (mend func()) {
	h.t.Helper()
	conn, err := pgx.Connect(context.Background(), h.url)
	if err != nil {
		h.t.Fatal(err)
	}
	run := func(sql string) {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			h.t.Fatal(err)
		}
	}
	run(`CREATE OR REPLACE FUNCTION posthorn.killed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'killed'; END $$`)
	run("GRANT EXECUTE ON FUNCTION posthorn.killed() TO PUBLIC")
	run("CREATE TRIGGER killed BEFORE INSERT OR UPDATE OR DELETE ON posthorn." + table + " FOR EACH ROW EXECUTE FUNCTION posthorn.killed()")
	return func() {
		run("DROP TRIGGER killed ON posthorn." + table)
		_ = conn.Close(context.Background())
	}
}

func TestAWorkerThatDiesDuringADecisionLeavesNoPartOfIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	t0 := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	off := h.endpoint(tenant, "https://hooks.example.com/off", nil)
	h.counted(tenant, off, delivery.Counters{AuthStreak: 10, FirstFailureAt: t0, LastFailureAt: t0}, time.Time{})
	warned := h.endpoint(tenant, "https://hooks.example.com/warned", nil)
	h.counted(tenant, warned, delivery.Counters{
		ConsecutiveFailures: 20,
		UnhealthySince:      t0,
		FirstFailureAt:      t0,
		LastFailureAt:       t0,
	}, time.Time{})
	well := h.endpoint(tenant, "https://hooks.example.com/well", nil)
	h.counted(tenant, well, delivery.Counters{}, time.Time{})
	h.exec("INSERT INTO endpoint_warnings (tenant_id, endpoint_id, reason, stage, since, at) VALUES ($1, $2, 'unhealthy', 'half_way', $3, $3)", tenant, well, t0)
	now := t0.Add(61 * time.Hour)
	state := func() string {
		var text string
		h.query(`SELECT concat_ws(' ', (SELECT string_agg(status, ',' ORDER BY id) FROM endpoints), (SELECT count(*) FROM lanes WHERE held),
			(SELECT count(*) FROM notices), (SELECT count(*) FROM endpoint_warnings), (SELECT count(*) FROM endpoint_revisions),
			(SELECT count(*) FROM audit_log WHERE actor_kind = 'system'), (SELECT routing_version FROM tenants WHERE id = $1))`, []any{&text}, tenant)
		return text
	}
	before := state()
	for _, tt := range []struct {
		ep     id.UUID
		tables []string
	}{
		{off, []string{"tenants", "endpoints", "endpoint_revisions", "lanes", "notices", "audit_log"}},
		{warned, []string{"endpoint_warnings", "notices"}},
		{well, []string{"endpoint_warnings", "notices"}},
	} {
		for _, table := range tt.tables {
			mend := h.failing(table)
			if _, err := endpoints.Assess(t.Context(), h.db, tenant, tt.ep, now); err == nil {
				t.Errorf("%s: decided although %s could not be written", endpointID(tt.ep), table)
			}
			mend()
			if after := state(); after != before {
				t.Errorf("killed at %s it leaves %s, was %s", table, after, before)
			}
		}
	}
	// The next assessment does all of it, once.
	for range 2 {
		page, err := endpoints.Assessable(t.Context(), h.db, nil, id.UUID{}, 2, now)
		for err == nil {
			for _, a := range page.Due {
				h.assess(a.TenantID, a.EndpointID, now)
			}
			if page.Next.IsZero() {
				break
			}
			page, err = endpoints.Assessable(t.Context(), h.db, nil, page.Next, 2, now)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for ep, kind := range map[id.UUID]notice.Kind{
		off:    notice.EndpointDisabled,
		warned: notice.EndpointWarning,
		well:   notice.EndpointRecovered,
	} {
		if n := h.notices(ep, kind); n != 1 {
			t.Errorf("%d notices %s, want 1", n, kind)
		}
	}
	if n := h.count("SELECT count(*) FROM notices"); n != 3 {
		t.Errorf("%d notices, want 3", n)
	}
	if n := h.count("SELECT count(*) FROM endpoint_warnings WHERE endpoint_id = $1", warned); n != 1 {
		t.Errorf("%d warnings are remembered, want 1", n)
	}
}

func TestAnEndpointThatRefusesIsDisabledAndDeliversWhatWasHeldOnceItIsResumed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, well := newFailing(t, http.StatusUnauthorized)
	tenant := h.tenant()
	h.settings(tenant, `{"health":{"auth_minutes":0}}`)
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.MaxInFlight = 1 })
	h.worker(true)
	h.emitN(tenant, 100)
	eventually(t, 10*time.Second, "the endpoint is disabled", func() bool {
		return h.count("SELECT count(*) FROM endpoints WHERE id = $1 AND status = 'disabled' AND status_reason = 'auth'", ep) == 1
	})
	if n := len(r.seen()); n != 10 {
		t.Errorf("%d requests to an endpoint that is disabled at the tenth refusal", n)
	}
	if n := h.waiting(ep); n != 90 {
		t.Errorf("%d deliveries are held, want 90", n)
	}
	eventually(t, 10*time.Second, "its lane is given back", func() bool {
		return h.count("SELECT count(*) FROM lanes WHERE endpoint_id = $1 AND owner IS NULL", ep) == 1
	})
	well.Store(true)
	var changes []bool
	for range 2 {
		h.as(tenant, func(q *sql.Queries) error {
			_, changed, err := endpoints.SetState(t.Context(), q, h.ring, tenant, ep, endpoint.Resume)
			changes = append(changes, changed)
			return err
		})
	}
	if !slices.Equal(changes, []bool{true, false}) {
		t.Errorf("resumed twice: %v", changes)
	}
	h.settled(15*time.Second, delivery.Delivered, 90)
	if n := h.count("SELECT count(*) FROM verifications WHERE endpoint_id = $1 AND state = 'succeeded'", ep); n != 1 {
		t.Errorf("%d verifications, want 1", n)
	}
	if n := h.count("SELECT count(*) FROM audit_log WHERE action = 'endpoint.verified'"); n != 1 {
		t.Errorf("it became active %d times", n)
	}
	if h.notices(ep, notice.EndpointDisabled) != 1 || h.notices(ep, notice.EndpointRecovered) != 1 {
		t.Error("its owner was not told of both, once")
	}
	h.balanced()
}

func TestClearedCountersStayClearedWhateverTheLanesOwnerStillHolds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var status atomic.Int32
	status.Store(500)
	r := newReceiver(t, func(arrival) int { return int(status.Load()) })
	tenant := h.tenant()
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.RetryPolicy = "five" })
	w, _ := h.worker(true)
	h.emitN(tenant, 6)
	eventually(t, 10*time.Second, "six failures are on record", func() bool {
		return h.count("SELECT count(*) FROM endpoint_health WHERE endpoint_id = $1 AND consecutive_failures = 6", ep) == 1
	})
	// Paused and resumed before the lane's owner checks: it never gives the lane back.
	h.pause(tenant, ep)
	h.resume(tenant, ep)
	h.followed(w, ep)
	h.emitN(tenant, 1)
	// The retries of the six are sent on resume too, so the count is that of all attempts but those before it.
	const since = `SELECT consecutive_failures FROM endpoint_health WHERE endpoint_id = $1
		AND consecutive_failures = (SELECT count(*) - 6 FROM attempts WHERE endpoint_id = $1)`
	eventually(t, 10*time.Second, "the next failure is the first", func() bool {
		return h.count("SELECT coalesce(max(consecutive_failures), 0) FROM ("+since+") h", ep) > 0
	})
	eventually(t, 10*time.Second, "the lane's owner counts the same", func() bool {
		l, has := w.dispatch.View(ep)
		return !has || l.Counters.ConsecutiveFailures == h.count("SELECT coalesce(max(consecutive_failures), 0) FROM ("+since+") h", ep)
	})
}
