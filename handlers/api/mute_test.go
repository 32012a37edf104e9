package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"posthorn/domain/id"
)

func TestAlertsAreMutedForATimeOrUntilTheEndpointRecovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	path := "/api/v1/endpoints/" + ep
	if got := w.do("GET", path, tn.key, nil).want(http.StatusOK); got.get("mute") != nil {
		t.Errorf("at first: %s", got.Body)
	}
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	got := w.do("POST", path+"/mute", tn.key, map[string]any{"until": until}).want(http.StatusOK)
	if got.text("mute.until") != until.Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("got %s", got.Body)
	}
	for _, wrong := range []time.Time{time.Now().Add(-time.Minute), time.Now().AddDate(0, 0, 31)} {
		w.do("POST", path+"/mute", tn.key, map[string]any{"until": wrong}).problem(http.StatusBadRequest, "out_of_range", "until")
	}
	w.SQL("UPDATE endpoints SET muted_until = now()")
	if got := w.do("GET", path, tn.key, nil).want(http.StatusOK); got.get("mute") != nil {
		t.Errorf("after its end: %s", got.Body)
	}
	w.do("POST", path+"/mute", tn.key, nil).problem(http.StatusConflict, "endpoint_not_failing")
	w.SQL(`INSERT INTO endpoint_health (tenant_id, endpoint_id, consecutive_failures, first_failure_at, last_failure_at) VALUES ($1, $2, 3, now(), now())`,
		tn.uuid.String(), w.uuid(id.Endpoint, ep))
	if got := w.do("POST", path+"/mute", tn.key, nil).want(http.StatusOK); got.get("mute.until") != nil || got.get("mute") == nil {
		t.Errorf("got %s", got.Body)
	}
	w.do("POST", path+"/unmute", tn.key, nil).want(http.StatusOK)
	if got := w.do("POST", path+"/unmute", tn.key, nil).want(http.StatusOK); got.get("mute") != nil {
		t.Errorf("got %s", got.Body)
	}
	if w.audited(tn, "endpoint.mute") != 2 || w.audited(tn, "endpoint.unmute") != 1 {
		t.Error("mutes are audited, and what changes nothing is not")
	}
}

func TestATenantMutesKindsOfNotices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	shown := func(a *answer) string { return fmt.Sprint(a.want(http.StatusOK).get("muted_notices")) }
	if got := shown(w.do("GET", "/api/v1/tenant", tn.key, nil)); got != "[]" {
		t.Errorf("at first: %s", got)
	}
	list := `{"muted_notices":["secret.rotated","endpoint.recovered","secret.rotated"]}`
	if got := shown(w.do("PATCH", "/api/v1/tenant", tn.key, list)); got != "[endpoint.recovered secret.rotated]" {
		t.Errorf("muted: %s", got)
	}
	w.do("PATCH", "/api/v1/tenant", tn.key, list).want(http.StatusOK)
	w.do("PATCH", "/api/v1/tenant", tn.key, `{"muted_notices":["nonsense"]}`).problem(http.StatusBadRequest, "notice_kind_unknown", "muted_notices.0")
	w.do("PATCH", "/api/v1/tenant", tn.key, `{"muted_notices":["key.created","digest"]}`).problem(http.StatusBadRequest, "notice_kind_unknown", "muted_notices.1")
	if got := shown(w.do("PATCH", "/api/v1/tenant", tn.key, `{"digest":false}`)); got != "[endpoint.recovered secret.rotated]" {
		t.Errorf("after a change of something else: %s", got)
	}
	if got := shown(w.do("PATCH", "/api/v1/tenant", tn.key, `{"muted_notices":[]}`)); got != "[]" {
		t.Errorf("unmuted: %s", got)
	}
	if n := w.audited(tn, "tenant.updated"); n != 3 {
		t.Errorf("%d changes are audited, want 3: what changes nothing is not", n)
	}
}

func TestAPauseCanHaveAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	path := "/api/v1/endpoints/" + ep
	until := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Millisecond)
	w.do("POST", path+"/pause", tn.key, map[string]any{"until": time.Now()}).problem(http.StatusBadRequest, "out_of_range", "until")
	shown := func(a *answer, want any) {
		t.Helper()
		if got := a.want(http.StatusOK).get("condition.until"); got != want || a.text("condition.state") != "paused" {
			t.Errorf("until %v, want %v: %s", got, want, a.Body)
		}
	}
	at := func(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }
	shown(w.do("POST", path+"/pause", tn.key, map[string]any{"until": until}), at(until))
	shown(w.do("POST", path+"/pause", tn.key, nil), at(until)) // it is paused already
	later := until.Add(time.Hour)
	shown(w.do("POST", path+"/pause", tn.key, map[string]any{"until": later}), at(later))
	w.do("POST", path+"/resume", tn.key, nil).want(http.StatusOK)
	shown(w.do("POST", path+"/pause", tn.key, nil), nil) // an earlier end does not come back
	if n := w.audited(tn, "endpoint.pause"); n != 3 {
		t.Errorf("%d entries, want one a change", n)
	}
}
