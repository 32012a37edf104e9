package worker

import (
	"fmt"
	"testing"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// What can change an endpoint's state.
const (
	byPause     = "pause"       // by a member
	byResume    = "resume"      // by a member
	byDisable   = "disable"     // by Posthorn
	byVerified  = "verified"    // the verification succeeds
	byVerify    = "verify"      // a verification is requested
	byURLChange = "url_changed" // the new URL is not verified yet
)

type transition struct {
	from     endpoint.Status
	by       string
	to       endpoint.Status
	verifies bool // a verification is sent
}

// transitions are all that change a state or send a verification (docs/health.md).
var transitions = []transition{
	{endpoint.Unverified, byVerified, endpoint.Active, false},
	{endpoint.Unverified, byVerify, endpoint.Unverified, true},
	{endpoint.Unverified, byURLChange, endpoint.Unverified, true},
	{endpoint.Active, byPause, endpoint.Paused, false},
	{endpoint.Active, byDisable, endpoint.Disabled, false},
	{endpoint.Active, byVerify, endpoint.Active, true},
	{endpoint.Active, byURLChange, endpoint.Unverified, true},
	{endpoint.Paused, byResume, endpoint.Active, false},
	{endpoint.Paused, byVerify, endpoint.Paused, true},
	{endpoint.Paused, byURLChange, endpoint.Unverified, true},
	{endpoint.Disabled, byResume, endpoint.Disabled, true},
	{endpoint.Disabled, byVerified, endpoint.Active, false},
	{endpoint.Disabled, byVerify, endpoint.Disabled, true},
	{endpoint.Disabled, byURLChange, endpoint.Unverified, true},
}

func TestAnEndpointTakesEveryTransitionOfItsLifecycle(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	now := time.Now()
	for _, move := range transitions {
		name := fmt.Sprintf("%s by %s", move.from, move.by)
		ep := h.endpoint(tenant, "https://hooks.example.com/in", nil)
		h.exec("UPDATE endpoints SET status = $2 WHERE id = $1", ep, string(move.from))
		h.exec("UPDATE lanes SET held = $2 WHERE endpoint_id = $1", ep, health.Holds(move.from))
		refused := delivery.Counters{AuthStreak: 10, FirstFailureAt: now.Add(-time.Hour), LastFailureAt: now}
		h.counted(tenant, ep, refused, time.Time{})
		h.exec("INSERT INTO endpoint_warnings (tenant_id, endpoint_id, reason, stage, at) VALUES ($1, $2, 'auth', 'approaching', now())", tenant, ep)
		h.take(t, tenant, ep, move)
		if n := h.count("SELECT count(*) FROM endpoints e JOIN lanes l ON l.endpoint_id = e.id WHERE e.id = $1 AND e.status = $2 AND l.held = $3",
			ep, string(move.to), health.Holds(move.to)); n != 1 {
			t.Errorf("%s: endpoint or lane is not %s", name, move.to)
		}
		if n := h.count("SELECT count(*) FROM verifications WHERE endpoint_id = $1 AND state = 'pending'", ep); (n == 1) != move.verifies {
			t.Errorf("%s: %d verifications are pending", name, n)
		}
		started := move.to == endpoint.Active && move.from != endpoint.Active
		if n := h.count("SELECT count(*) FROM endpoint_health WHERE endpoint_id = $1 AND auth_streak = 0 AND epoch = 1", ep); (n == 1) != started {
			t.Errorf("%s: the counters are cleared: %v, want %v", name, n == 1, started)
		}
		if n := h.count("SELECT count(*) FROM endpoint_warnings WHERE endpoint_id = $1", ep); (n == 0) != started {
			t.Errorf("%s: %d warnings are remembered", name, n)
		}
		recovered := move.from == endpoint.Disabled && move.to == endpoint.Active
		if n := h.notices(ep, notice.EndpointRecovered); (n == 1) != recovered {
			t.Errorf("%s: %d notices say that it is well again", name, n)
		}
	}
}

// take makes one transition in the database, by the functions that the product calls.
func (h *house) take(t *testing.T, tenant, ep id.UUID, move transition) {
	t.Helper()
	switch move.by {
	case byPause:
		h.pause(tenant, ep)
	case byResume:
		h.resume(tenant, ep)
		h.resume(tenant, ep) // a second call changes nothing
	case byDisable:
		h.assess(tenant, ep, time.Now())
	case byVerify:
		h.as(tenant, func(q *sql.Queries) error {
			_, err := endpoints.RequestVerification(t.Context(), q, tenant, ep)
			return err
		})
	case byURLChange:
		h.change(tenant, ep, func(s *endpoint.Settings) { s.URL = "https://hooks.example.com/new" })
	case byVerified:
		var v sql.Verification
		h.as(tenant, func(q *sql.Queries) (err error) {
			v, err = endpoints.RequestVerification(t.Context(), q, tenant, ep)
			return err
		})
		for i, want := range []bool{true, false} { // two workers got the response
			if opened, err := endpoints.OpenVerified(t.Context(), h.db, sql.PendingVerificationsRow{TenantID: tenant, EndpointID: ep, ID: v.ID}, 200, 0); err != nil ||
				opened != want {
				t.Errorf("%s by %s: try %d opened it: %v, %v", move.from, move.by, i, opened, err)
			}
		}
	default:
		t.Fatalf("no step for %s", move.by)
	}
}
