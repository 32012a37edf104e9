package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"posthorn/domain/health"
	"posthorn/domain/id"
)

func TestAPolicyIsTheTenantsOverThePlatformsOverTheDefault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	parts := func(a *answer) string {
		return fmt.Sprint(a.get("health_policy.tls_hours"), a.get("health_policy.auth_failures"), a.get("health_policy.gone"), a.get("health_policy.unhealthy_hours"))
	}
	own := func() string { return parts(w.do("GET", "/api/v1/tenant", tn.key, nil).want(200)) }
	if got := own(); got != "24 10 true 120" {
		t.Errorf("at first: %s", got)
	}
	revs := func() int64 { return one[int64](w, "SELECT sum(rev)::bigint FROM lanes") }
	w.active(tn, nil)
	before := revs()
	a := w.do("PATCH", "/api/v1/platform", w.platform, `{"health_policy":{"tls_hours":48,"auth_failures":20}}`).want(200)
	if parts(a) != "48 20 true 120" || own() != "48 20 true 120" || revs() != before+1 {
		t.Errorf("after the platform's: %s, own %s", a.Body, own())
	}
	a = w.do("PATCH", "/api/v1/tenant", tn.key, `{"health_policy":{"auth_failures":0,"gone":false}}`).want(200)
	if parts(a) != "48 0 false 120" || own() != "48 0 false 120" || revs() != before+2 {
		t.Errorf("after the tenant's: %s", a.Body)
	}
	// Set with the platform's key, then reset to the default.
	path := "/api/v1/tenants/" + w.do("GET", "/api/v1/tenant", tn.key, nil).text("id")
	if a = w.do("PATCH", path, w.platform, `{"health_policy":{"auth_failures":null}}`).want(200); parts(a) != "48 20 false 120" {
		t.Errorf("without the tenant's: %s", a.Body)
	}
	w.do("PATCH", path, w.platform, `{"health_policy":{"auth_failures":null}}`).want(200) // changes nothing
	if n := w.audited(tn, "tenant.updated"); n != 2 {
		t.Errorf("%d changes are audited, want 2", n)
	}
	if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE action = 'platform.updated' AND tenant_id IS NULL"); n != 1 {
		t.Errorf("%d changes of the platform are audited, want 1", n)
	}
	for _, key := range []string{tn.key} {
		w.do("GET", "/api/v1/platform", key, nil).problem(403, "platform_key_required")
		w.do("PATCH", "/api/v1/platform", key, `{}`).problem(403, "platform_key_required")
	}
}

func TestWhoIsToldOfATenantAndWhenIsASetting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	a := w.do("GET", "/api/v1/tenant", tn.key, nil).want(200)
	if len(a.get("contacts").([]any)) != 0 || a.get("digest") != true {
		t.Errorf("at first: %s", a.Body)
	}
	a = w.do("PATCH", "/api/v1/tenant", tn.key, `{"contacts":["Ops@Acme.example","ops@acme.example"],"digest":false,"health_policy":{"tls_hours":48}}`).want(200)
	if fmt.Sprint(a.get("contacts")) != "[ops@acme.example]" || a.get("digest") != false {
		t.Errorf("changed: %s", a.Body)
	}
	path := "/api/v1/tenants/" + a.text("id")
	a = w.do("PATCH", path, w.platform, `{"digest":true}`).want(200)
	if fmt.Sprint(a.get("contacts"), a.get("digest"), a.get("health_policy.tls_hours")) != "[ops@acme.example] true 48" {
		t.Errorf("through the platform's key: %s", a.Body)
	}
	w.do("PATCH", path, w.platform, `{"digest":true}`).want(200) // changes nothing
	if got := one[string](w, "SELECT string_agg(details::text, ' ' ORDER BY at) FROM audit_log WHERE action = 'tenant.updated'"); strings.Count(got, `"digest"`) != 2 ||
		strings.Count(got, `"contacts"`) != 1 {
		t.Errorf("audited: %s", got)
	}
	w.do("PATCH", "/api/v1/tenant", tn.key, `{"contacts":["a@acme.example","nobody"]}`).problem(400, "email_invalid", "contacts.1")
	many := strings.TrimSuffix(strings.Repeat(`"a@acme.example",`, 21), ",")
	w.do("PATCH", "/api/v1/tenant", tn.key, `{"contacts":[`+many+`]}`).problem(400, "contacts_range", "contacts")

	if a = w.do("GET", "/api/v1/platform", w.platform, nil).want(200); a.get("overdue_minutes").(float64) != 15 {
		t.Errorf("at first: %s", a.Body)
	}
	w.do("PATCH", "/api/v1/platform", w.platform, `{"overdue_minutes":60,"health_policy":{"tls_hours":48}}`).want(200)
	if a = w.do("PATCH", "/api/v1/platform", w.platform, `{"health_policy":{"tls_hours":null}}`).want(200); a.get("overdue_minutes").(float64) != 60 {
		t.Errorf("what is not named stays: %s", a.Body)
	}
	a = w.do("PATCH", "/api/v1/platform", w.platform, `{"overdue_minutes":1441}`)
	a.problem(400, "out_of_range", "overdue_minutes")
	if !strings.Contains(string(a.Body), "from 1 to 1440") {
		t.Errorf("no range: %s", a.Body)
	}
	if a = w.do("PATCH", "/api/v1/platform", w.platform, `{"overdue_minutes":null}`).want(200); a.get("overdue_minutes").(float64) != 15 {
		t.Errorf("the default again: %s", a.Body)
	}
}

func TestAPolicyOutOfRangeIsRefusedWithTheRange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	for _, r := range health.Ranges() {
		for _, n := range []int{r.Low - 2, r.High + 1} {
			body := fmt.Sprintf(`{"health_policy":{"%s":%d}}`, r.Name, n)
			if r.Allows(n) {
				continue
			}
			for path, key := range map[string]string{"/api/v1/tenant": tn.key, "/api/v1/platform": w.platform} {
				a := w.do("PATCH", path, key, body)
				a.problem(400, "out_of_range", "health_policy."+r.Name)
				if !strings.Contains(string(a.Body),
					fmt.Sprintf("from %s", strings.TrimSpace(strings.Split(strings.Split(r.Sentence(), "from ")[1], " to ")[0]))) {
					t.Errorf("%s: no range: %s", body, a.Body)
				}
			}
		}
	}
	if a := w.do("PATCH", "/api/v1/tenant", tn.key, `{"health_policy":{"whim":1}}`); a.Status != 400 {
		t.Errorf("an unknown part: %d %s", a.Status, a.Body)
	}
}

func TestAnEndpointShowsItsHealthAndWhenItWillBeDisabled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	u := w.uuid(id.Endpoint, ep)
	get := func() *answer { return w.do("GET", "/api/v1/endpoints/"+ep, tn.key, nil).want(200) }
	a := get()
	if a.text("health.breaker.state") != "closed" || a.get("health.disable_at") != nil || a.get("health.held").(float64) != 0 ||
		a.get("health.held_exact") != true || len(a.get("health.warnings").([]any)) != 0 {
		t.Errorf("an endpoint that is well: %s", a.Body)
	}
	since := time.Now().Add(-61 * time.Hour).Truncate(time.Second)
	w.SQL(`INSERT INTO endpoint_health (endpoint_id, tenant_id, consecutive_failures, auth_streak, unhealthy_since, first_failure_at,
			last_failure_at, breaker_state, opened_at, next_probe_at)
		SELECT id, tenant_id, 30, 2, $2, $2, now(), 1, $2, now() + interval '10 minutes' FROM endpoints WHERE id = $1`, u, since)
	a = get()
	if a.text("health.breaker.state") != "open" || a.text("health.disable_reason") != "unhealthy" || a.get("health.consecutive_failures").(float64) != 30 ||
		a.get("health.auth_streak").(float64) != 2 {
		t.Errorf("an endpoint that fails: %s", a.Body)
	}
	at, err := time.Parse(time.RFC3339, a.text("health.disable_at"))
	if err != nil || !at.Equal(since.Add(120*time.Hour)) {
		t.Errorf("disabled at %v, want 5 days after %v", at, since)
	}
	warnings := a.get("health.warnings").([]any)
	if len(warnings) != 1 || warnings[0].(map[string]any)["stage"] != "half_way" {
		t.Errorf("warnings: %v", warnings)
	}
	w.SQL("UPDATE endpoint_health SET next_probe_at = now() - interval '1 second' WHERE endpoint_id = $1", u)
	if a = get(); a.text("health.breaker.state") != "half_open" {
		t.Errorf("its probe is due: %s", a.Body)
	}
	w.do("POST", "/api/v1/endpoints/"+ep+"/pause", tn.key, nil).want(200)
	w.SQL(`INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id) SELECT e.tenant_id, gen_random_uuid(), gen_random_uuid(), e.id
		FROM endpoints e, generate_series(1, 1200) WHERE e.id = $1`, u)
	if a = get(); a.get("health.held").(float64) != 1200 || a.get("health.held_exact") != true || a.get("health.disable_at") != nil {
		t.Errorf("paused: %s", a.Body)
	}
	w.active(tn, nil)
	for _, row := range w.do("GET", "/api/v1/endpoints", tn.key, nil).want(200).get("data").([]any) {
		row := row.(map[string]any)
		record := row["health"].(map[string]any)
		if row["id"] == ep && (record["held"].(float64) != 1000 || record["held_exact"] != false) {
			t.Errorf("in a list: %v", record)
		}
	}
	// Resuming starts its health from zero.
	w.do("POST", "/api/v1/endpoints/"+ep+"/resume", tn.key, nil).want(200)
	if a = get(); a.get("health.consecutive_failures").(float64) != 0 || a.text("health.breaker.state") != "closed" {
		t.Errorf("resumed: %s", a.Body)
	}
}

func TestAnEndpointCanDropEventsWhileItIsPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.do("POST", "/api/v1/endpoints", tn.key, map[string]any{"url": hook, "when_held": "forget"}).problem(400, "when_held_unknown", "when_held")
	drops, holds := w.active(tn, map[string]any{"when_held": "drop"}), w.active(tn, nil)
	emit := func() (string, float64) {
		a := w.do("POST", "/api/v1/events", tn.key, `{"type":"order.paid","data":{}}`).want(202)
		return a.text("id"), a.get("deliveries").(float64)
	}
	if _, n := emit(); n != 2 {
		t.Errorf("%v deliveries to two active endpoints", n)
	}
	for _, ep := range []string{drops, holds} {
		w.do("POST", "/api/v1/endpoints/"+ep+"/pause", tn.key, nil).want(200)
	}
	event, n := emit()
	if n != 1 {
		t.Errorf("%v deliveries while one endpoint drops and one holds, want 1", n)
	}
	w.do("PATCH", "/api/v1/endpoints/"+drops, tn.key, `{"when_held":"hold"}`).want(200)
	if _, n := emit(); n != 2 {
		t.Errorf("%v deliveries after it was set to hold, want 2", n)
	}
	// The routing reports the state at that time, also later.
	for _, row := range w.do("GET", "/api/v1/events/"+event+"/routing", tn.key, nil).want(200).get("data").([]any) {
		v := row.(map[string]any)
		dropped := v["endpoint_id"] == drops
		if v["matched"] == dropped || v["clause"] != "state" || strings.Contains(v["detail"].(string), "drop") != dropped {
			t.Errorf("routing: %v", v)
		}
	}
}
