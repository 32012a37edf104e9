package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/id"
)

func TestAnEndpointIsCreatedWithItsLaneSecretAndVerification(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	version := one[int64](w, "SELECT routing_version FROM tenants WHERE id = $1", tn.uuid.String())
	a := w.endpoint(tn, map[string]any{"event_types": []string{"order.*"}, "filter": "data.amount > 100", "metadata": map[string]string{"team": "blue"}})
	if !strings.HasPrefix(a.text("secret"), "whsec_") || a.text("status") != "unverified" || a.text("last_verification.state") != "pending" {
		t.Errorf("got %s", a.Body)
	}
	if a.text("filter") != "data.amount > 100" || a.get("rate_limit").(float64) != 50 || a.get("burst").(float64) != 100 || a.get("retry_policy.name") != "standard" {
		t.Errorf("got %s", a.Body)
	}
	u := w.uuid(id.Endpoint, a.text("id"))
	for what, query := range map[string]string{
		"a held lane":            "SELECT count(*)::int FROM lanes WHERE endpoint_id = $1 AND held AND NOT deleted",
		"one secret":             "SELECT count(*)::int FROM endpoint_secrets WHERE endpoint_id = $1 AND expires_at IS NULL",
		"the secret in its slot": "SELECT count(*)::int FROM endpoints e JOIN endpoint_secrets s ON s.id = e.slot_secret_id WHERE e.id = $1",
		"one verification":       "SELECT count(*)::int FROM verifications WHERE endpoint_id = $1 AND state = 'pending' AND length(challenge) > 20",
		"its revision": fmt.Sprintf("SELECT count(*)::int FROM endpoint_revisions WHERE endpoint_id = $1 AND routing_version = %d AND event_types = '{order.*}'",
			version+1),
	} {
		if n := one[int](w, query, u); n != 1 {
			t.Errorf("%s: %d", what, n)
		}
	}
	if w.audited(tn, "endpoint.create") != 1 {
		t.Error("not audited")
	}
	read := w.do("GET", "/api/v1/endpoints/"+a.text("id"), tn.key, nil).want(http.StatusOK)
	if read.get("secret") != nil || read.text("url") != hook {
		t.Errorf("read: %s", read.Body)
	}
}

func TestEndpointFieldsOutsideTheirRangesAreRefusedByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.endpoint(tn, nil).text("id")
	for _, tt := range []struct{ body, code, field string }{
		{`{"rate_limit":0}`, "out_of_range", "rate_limit"},
		{`{"rate_limit":100001}`, "out_of_range", "rate_limit"},
		{`{"burst":0}`, "out_of_range", "burst"},
		{`{"max_in_flight":101}`, "out_of_range", "max_in_flight"},
		{`{"timeout_seconds":31}`, "out_of_range", "timeout_seconds"},
		{`{"timeout_seconds":1e99}`, "field_type", "timeout_seconds"},
		{`{"timeout_seconds":1.5}`, "field_type", "timeout_seconds"},
		{`{"timeout_seconds":null}`, "field_type", "timeout_seconds"},
		{`{"event_types":[]}`, "event_types_count", "event_types"},
		{`{"event_types":["or der"]}`, "event_type_pattern_invalid", "event_types"},
		{`{"filter":"data.("}`, "filter_invalid", "filter"},
		{`{"filter":[1]}`, "filter_invalid", "filter"},
		{`{"format":"jws"}`, "format_unknown", "format"},
		{`{"prefix":"A B"}`, "prefix_refused", "prefix"},
		{`{"ordering":"lifo"}`, "ordering_unknown", "ordering"},
		{`{"verification":"trust"}`, "verification_unknown", "verification"},
		{`{"retry_policy":{"name":"never"}}`, "retry_policy_unknown", "retry_policy.name"},
		{`{"retry_policy":{"delays":[0]}}`, "retry_delay_range", "retry_policy.delays"},
		{`{"retry_policy":{"name":"custom"}}`, "retry_delays_count", "retry_policy.delays"},
		{`{"retry_policy":{"delays":[1],"jitter":1.5}}`, "retry_jitter_range", "retry_policy.jitter"},
		{`{"retry_policy":{"name":"quick","jitter":0.5}}`, "retry_jitter_unwanted", "retry_policy.jitter"},
		{`{"format":"x-webhook","type_field":"kind"}`, "type_field_unknown", "type_field"},
		{`{"type_field":"event"}`, "type_field_unwanted", "type_field"},
		{`{"rotation_signatures":"newest"}`, "rotation_signatures_unknown", "rotation_signatures"},
		{`{"format":"raw","rotation_signatures":"all"}`, "rotation_signatures_unwanted", "rotation_signatures"},
		{`{"retry_policy":{"name":"quick","delays":[1]}}`, "retry_delays_unwanted", "retry_policy.delays"},
		{`{"custom_headers":{"X-A":"a\r\nX-B: c"}}`, "custom_header_refused", "custom_headers.X-A"},
		{`{"custom_headers":{"Host":"a"}}`, "custom_header_refused", "custom_headers.Host"},
		{`{"custom_headers":{"Webhook-Signature":"a"}}`, "custom_header_refused", "custom_headers.Webhook-Signature"},
		{`{"sensitive_headers":["X-A"]}`, "custom_header_unknown", "sensitive_headers"},
		{`{"description":"a\u0007b"}`, "text_malformed", "description"},
		{`{"metadata":{"a":"\u0007"}}`, "text_malformed", "metadata.a"},
		{`{"payload_version":""}`, "payload_version_malformed", "payload_version"},
		{`{"channels":["a b"]}`, "channel_malformed", "channels"},
		{`{"URL":"https://example.com"}`, "unknown_field", "URL"},
		{`{"status":"active"}`, "unknown_field", "status"},
		{`{"url":"https://169.254.169.254/latest"}`, "endpoint_url_refused", "url"},
		{`{"url":"https://user:pass@example.com/"}`, "endpoint_url_refused", "url"},
		{`{"url":""}`, "endpoint_url_refused", "url"},
	} {
		w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, tt.body).problem(http.StatusBadRequest, tt.code, tt.field)
		creation := map[string]json.RawMessage{"url": json.RawMessage(`"` + hook + `"`)}
		if err := json.Unmarshal([]byte(tt.body), &creation); err != nil {
			t.Fatal(err)
		}
		w.do("POST", "/api/v1/endpoints", tn.key, creation).problem(http.StatusBadRequest, tt.code, tt.field)
	}
	w.do("POST", "/api/v1/endpoints", tn.key, `{}`).problem(http.StatusBadRequest, "endpoint_url_refused", "url")
	w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`","secret":"short"}`).problem(http.StatusBadRequest, "secret_refused", "secret")
	if n := one[int](w, "SELECT count(*)::int FROM endpoints"); n != 1 {
		t.Errorf("%d endpoints after refusals", n)
	}
}

func TestFiftyEndpointsAreTheMostHoweverManyAskAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("a"), w.tenant("b")
	var created, refused atomic.Int32
	parallel(t, 60, func(int) {
		a := w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`"}`)
		// sixty wait for one lock; on a busy machine some are asked to come again
		for a.Status == http.StatusServiceUnavailable {
			a = w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`"}`)
		}
		switch {
		case a.Status == http.StatusCreated:
			created.Add(1)
		case a.Status == http.StatusConflict && a.text("code") == "endpoints_limit":
			refused.Add(1)
		default:
			t.Errorf("answered %d: %s", a.Status, a.Body)
		}
	})
	if created.Load() != 50 || refused.Load() != 10 {
		t.Errorf("%d created, %d refused", created.Load(), refused.Load())
	}
	w.endpoint(other, nil) // each tenant has its own limit
	first := w.do("GET", "/api/v1/endpoints?limit=1", tn.key, nil).get("data").([]any)[0].(map[string]any)["id"].(string)
	w.do("DELETE", "/api/v1/endpoints/"+first, tn.key, nil).want(http.StatusNoContent)
	w.endpoint(tn, nil) // a deleted one makes room
	w.SQL(`UPDATE tenants SET settings = '{"endpoints":{"max":51}}' WHERE id = $1`, tn.uuid.String())
	w.endpoint(tn, nil)
	w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`"}`).problem(http.StatusConflict, "endpoints_limit")
}

func TestAChangeOfURLUnverifiesAndAnyOtherDoesNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, map[string]any{"url": hook + "?token=s3cret"})
	path := "/api/v1/endpoints/" + ep
	u := w.uuid(id.Endpoint, ep)
	same := w.do("PATCH", path, tn.key, `{"description":"x","rate_limit":null,"url":"`+hook+`?token=***"}`).want(http.StatusOK)
	if same.text("status") != "active" || same.get("rate_limit") != nil || same.text("url") != hook+"?token=s3cret" {
		t.Errorf("got %s", same.Body)
	}
	rev := one[int64](w, "SELECT rev FROM lanes WHERE endpoint_id = $1", u)
	moved := w.do("PATCH", path, tn.key, `{"url":"https://other.example.com/"}`).want(http.StatusOK)
	if moved.text("status") != "unverified" || moved.text("last_verification.state") != "pending" || moved.get("verified_at") != nil {
		t.Errorf("got %s", moved.Body)
	}
	if n := one[int](w, "SELECT count(*)::int FROM verifications WHERE endpoint_id = $1 AND state = 'pending'", u); n != 1 {
		t.Errorf("%d pending verifications: the older is superseded", n)
	}
	if !one[bool](w, "SELECT held AND rev > $2 FROM lanes WHERE endpoint_id = $1", u, rev) {
		t.Error("the lane was not told")
	}
}

func TestAChangeThatChangesNothingLeavesNoTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.endpoint(tn, map[string]any{"description": "x"}).text("id")
	before := one[string](w, "SELECT routing_version || ' ' || (SELECT rev FROM lanes) FROM tenants WHERE id = $1", tn.uuid.String())
	w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, `{}`).want(http.StatusOK)
	w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, `{"description":"x","event_types":["*"]}`).want(http.StatusOK)
	after := one[string](w, "SELECT routing_version || ' ' || (SELECT rev FROM lanes) FROM tenants WHERE id = $1", tn.uuid.String())
	if before != after || w.audited(tn, "endpoint.update") != 0 {
		t.Errorf("before %s, after %s, audited %d", before, after, w.audited(tn, "endpoint.update"))
	}
}

func TestOnlyWhatRoutesOrSendsMakesANewRoutingVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	version := func() int64 {
		return one[int64](w, "SELECT routing_version FROM tenants WHERE id = $1", tn.uuid.String())
	}
	for _, tt := range []struct {
		method, path, body string
		bumps              bool
	}{
		{"PATCH", "", `{"description":"x","metadata":{"a":"b"},"verification":"simple"}`, false},
		{"PATCH", "", `{"timeout_seconds":3,"format":"raw","max_in_flight":9}`, true},
		{"PATCH", "", `{"custom_headers":{"X-A":"b"}}`, true},
		{"PATCH", "", `{"rate_limit":7}`, true},
		{"PATCH", "", `{"retry_policy":{"delays":[3,5]}}`, true},
		{"PATCH", "", `{"event_types":["a"]}`, true},
		{"PATCH", "", `{"filter":{"a":1}}`, true},
		{"PATCH", "", `{"filter":null}`, true},
		{"PATCH", "", `{"channels":["eu"]}`, true},
		{"PATCH", "", `{"ordering":"key"}`, true},
		{"POST", "/pause", ``, true},
		{"POST", "/pause", ``, false},
		{"POST", "/resume", ``, true},
		{"POST", "/rotate-secret", ``, true},
		{"POST", "/switch-secret", ``, true},
		{"POST", "/switch-secret", ``, false},
		{"DELETE", "", ``, true},
	} {
		before := version()
		a := w.do(tt.method, "/api/v1/endpoints/"+ep+tt.path, tn.key, tt.body)
		if a.Status >= 300 {
			t.Fatalf("%s%s: %s", tt.method, tt.path, a.Body)
		}
		if after := version(); (after != before) != tt.bumps || after > before+1 {
			t.Errorf("%s %s %s: from version %d to %d", tt.method, tt.path, tt.body, before, after)
		}
	}
	if n := one[int](w, "SELECT count(*)::int FROM endpoint_revisions WHERE endpoint_id = $1", w.uuid(id.Endpoint, ep)); n != 9 {
		t.Errorf("%d revisions: one for the creation and for each change that routes", n)
	}
}

func TestPauseAndResumeFollowTheStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.endpoint(tn, nil).text("id")
	u := w.uuid(id.Endpoint, ep)
	act := func(action string) *answer { return w.do("POST", "/api/v1/endpoints/"+ep+"/"+action, tn.key, nil) }
	held := func() bool { return one[bool](w, "SELECT held FROM lanes WHERE endpoint_id = $1", u) }

	act("pause").problem(http.StatusConflict, "endpoint_unverified", "status")
	act("resume").problem(http.StatusConflict, "endpoint_unverified", "status")
	act("test").problem(http.StatusConflict, "endpoint_not_active", "status")
	w.setStatus(ep, "active")
	if a := act("resume").want(http.StatusOK); a.text("status") != "active" {
		t.Errorf("got %s", a.Body)
	}
	for range 2 {
		if a := act("pause").want(http.StatusOK); a.text("status") != "paused" || !held() {
			t.Errorf("got %s, held %t", a.Body, held())
		}
	}
	act("test").problem(http.StatusConflict, "endpoint_not_active", "status")
	if a := act("resume").want(http.StatusOK); a.text("status") != "active" || held() {
		t.Errorf("got %s, held %t", a.Body, held())
	}
	w.setStatus(ep, "disabled")
	act("pause").problem(http.StatusConflict, "endpoint_disabled", "status")
	a := act("resume").want(http.StatusAccepted)
	if a.text("status") != "disabled" || a.text("last_verification.state") != "pending" || !held() {
		t.Errorf("resuming a disabled endpoint: %s", a.Body)
	}
	for _, got := range []*answer{a, w.do("GET", "/api/v1/endpoints/"+ep, tn.key, nil)} {
		if actions := fmt.Sprint(got.get("condition.actions")); actions != "[verify replay recover]" {
			t.Errorf("while it is verified, it offers %s", actions)
		}
	}
	if p, r := w.audited(tn, "endpoint.pause"), w.audited(tn, "endpoint.resume"); p != 1 || r != 2 {
		t.Errorf("audited %d pauses, %d resumes", p, r)
	}
}

func TestPausesAtOnceMakeOneChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	version := one[int64](w, "SELECT routing_version FROM tenants WHERE id = $1", tn.uuid.String())
	parallel(t, 8, func(int) { w.do("POST", "/api/v1/endpoints/"+ep+"/pause", tn.key, nil).want(http.StatusOK) })
	if after := one[int64](w, "SELECT routing_version FROM tenants WHERE id = $1", tn.uuid.String()); after != version+1 {
		t.Errorf("from version %d to %d", version, after)
	}
}

func TestVerifyingSupersedesWhatIsPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.endpoint(tn, nil).text("id")
	parallel(t, 5, func(int) { w.do("POST", "/api/v1/endpoints/"+ep+"/verify", tn.key, nil).want(http.StatusAccepted) })
	got := one[string](w, `SELECT string_agg(state || ' ' || n, ', ' ORDER BY state) FROM
		(SELECT state, count(*) AS n FROM verifications WHERE endpoint_id = $1 GROUP BY state) x`, w.uuid(id.Endpoint, ep))
	if got != "pending 1, superseded 5" {
		t.Errorf("got %s", got)
	}
	if n := one[int](w, "SELECT count(DISTINCT challenge)::int FROM verifications"); n != 6 {
		t.Errorf("%d challenges: each verification has its own", n)
	}
}

func TestADeletedEndpointIsGoneAndItsLaneKnows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, map[string]any{"custom_headers": map[string]string{"Authorization": "Bearer x"}})
	u := w.uuid(id.Endpoint, ep)
	dlv := w.onlyDelivery(tn, nil)
	w.do("DELETE", "/api/v1/endpoints/"+ep, tn.key, nil).want(http.StatusNoContent)
	for _, try := range []struct{ method, path string }{
		{"GET", ""},
		{"PATCH", ""},
		{"DELETE", ""},
		{"POST", "/verify"},
		{"POST", "/test"},
		{"GET", "/secrets"},
		{"POST", "/rotate-secret"},
		{"POST", "/switch-secret"},
		{"POST", "/pause"},
		{"POST", "/resume"},
	} {
		body := ""
		if try.method == "PATCH" {
			body = `{}`
		}
		w.do(try.method, "/api/v1/endpoints/"+ep+try.path, tn.key, body).problem(http.StatusNotFound, "not_found")
	}
	if !one[bool](w, "SELECT deleted AND NOT held FROM lanes WHERE endpoint_id = $1", u) {
		t.Error("the lane was not told")
	}
	if one[int](w, "SELECT count(*)::int FROM endpoint_secrets") != 0 || !one[bool](w, "SELECT custom_headers IS NULL FROM endpoints WHERE id = $1", u) {
		t.Error("secrets of a deleted endpoint stayed")
	}
	if len(w.do("GET", "/api/v1/endpoints", tn.key, nil).get("data").([]any)) != 0 {
		t.Error("it is still listed")
	}
	if w.emit(tn, nil); len(w.deliveries(tn, "")) != 1 {
		t.Error("events still go there")
	}
	w.do("GET", "/api/v1/deliveries/"+dlv, tn.key, nil).want(http.StatusOK) // its past stays readable
}

// A person who tests an endpoint behind an open breaker wants to know now whether it responds again.
func TestATestEventBehindAnOpenBreakerIsTheNextProbe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	w.SQL(`INSERT INTO endpoint_health (tenant_id, endpoint_id, consecutive_failures, breaker_state, opened_at, next_probe_at)
		VALUES ($1, $2, 30, 1, now(), now() + interval '1 hour')`, tn.uuid.String(), w.uuid(id.Endpoint, ep))
	w.onlyDelivery(tn, nil)
	a := w.do("POST", "/api/v1/endpoints/"+ep+"/test", tn.key, nil).want(http.StatusAccepted)
	if n := one[int](w, "SELECT count(*) FROM queue WHERE asked AND delivery_id = $1", w.uuid(id.Delivery, a.text("delivery_id"))); n != 1 {
		t.Error("the test event waits behind the others for the next probe")
	}
	if n := one[int](w, "SELECT count(*) FROM queue WHERE asked"); n != 1 {
		t.Errorf("%d deliveries are asked for", n)
	}
}

func TestATestGoesToThatEndpointAloneWhateverItSubscribesTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, map[string]any{"event_types": []string{"nothing.else"}})
	w.active(tn, nil)
	a := w.do("POST", "/api/v1/endpoints/"+ep+"/test", tn.key, nil).want(http.StatusAccepted)
	d := w.do("GET", "/api/v1/deliveries/"+a.text("delivery_id"), tn.key, nil).want(http.StatusOK)
	if d.text("endpoint_id") != ep || d.text("event_id") != a.text("id") || d.text("event_type") != "endpoint.test" || len(w.deliveries(tn, "")) != 1 {
		t.Errorf("got %s", d.Body)
	}
	ev := w.do("GET", "/api/v1/events/"+a.text("id"), tn.key, nil).want(http.StatusOK)
	if string(field(ev, "data")) != `{"test":true}` {
		t.Errorf("got %s", ev.Body)
	}
	own := w.do("POST", "/api/v1/endpoints/"+ep+"/test", tn.key, `{"type":"order.paid","data":{"n":12345678901234567890, "n":1}}`).want(http.StatusAccepted)
	ev = w.do("GET", "/api/v1/events/"+own.text("id"), tn.key, nil).want(http.StatusOK)
	if !strings.Contains(string(ev.Body), `{"n":12345678901234567890, "n":1}`) {
		t.Errorf("data was not kept byte for byte: %s", ev.Body)
	}
	w.do("POST", "/api/v1/endpoints/"+ep+"/test", tn.key, `{"type":"or der"}`).problem(http.StatusBadRequest, "type_malformed", "type")
	if w.audited(tn, "endpoint.test") != 2 {
		t.Error("tests are audited")
	}
}

func field(a *answer, name string) json.RawMessage {
	var v map[string]json.RawMessage
	a.into(&v)
	return v[name]
}

func TestEndpointsAreListedInPagesWithTheirURLsMasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	var created []string
	for range 5 {
		created = append(created, w.endpoint(tn, map[string]any{"url": hook + "?token=s3cret"}).text("id"))
	}
	w.setStatus(created[2], "active")
	walk := func(query string) (ids []string) {
		cursor := ""
		for {
			a := w.do("GET", "/api/v1/endpoints?limit=2&"+query+cursor, tn.key, nil).want(http.StatusOK)
			for _, e := range a.get("data").([]any) {
				ids = append(ids, e.(map[string]any)["id"].(string))
			}
			if strings.Contains(string(a.Body), "s3cret") {
				t.Errorf("a list shows %s", a.Body)
			}
			if a.get("next_cursor") == nil {
				return ids
			}
			cursor = "&cursor=" + a.text("next_cursor")
		}
	}
	if got := walk("order=asc"); !slices.Equal(got, created) {
		t.Errorf("oldest first: %v, want %v", got, created)
	}
	slices.Reverse(created)
	if got := walk(""); !slices.Equal(got, created) {
		t.Errorf("newest first: %v, want %v", got, created)
	}
	if got := walk("status=active"); !slices.Equal(got, created[2:3]) {
		t.Errorf("active: %v", got)
	}
	if a := w.do("GET", "/api/v1/endpoints/"+created[0], tn.key, nil); a.text("url") != hook+"?token=s3cret" {
		t.Errorf("one endpoint alone shows its URL: %s", a.Body)
	}
}

func TestAVerificationOpensWhatWaitedForItAndIsDoneElsewhere(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{"unverified": "active", "disabled": "active", "active": "active", "paused": "paused"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tn := w.tenant("a")
			ep := w.endpoint(tn, nil).text("id")
			endpointID, err := id.Endpoint.Parse(ep)
			if err != nil {
				t.Fatal(err)
			}
			w.setStatus(ep, status)
			w.do("POST", "/api/v1/endpoints/"+ep+"/verify", tn.key, nil).want(http.StatusAccepted)
			pending := one[[16]byte](w, "SELECT id FROM verifications WHERE state = 'pending'")
			if _, err := endpoints.OpenVerified(t.Context(), w.db, sql.PendingVerificationsRow{TenantID: tn.uuid, EndpointID: endpointID, ID: pending}, http.StatusOK, 0); err != nil {
				t.Fatal(err)
			}
			a := w.do("GET", "/api/v1/endpoints/"+ep, tn.key, nil).want(http.StatusOK)
			if a.text("status") != want || a.text("last_verification.state") != "succeeded" {
				t.Errorf("got %s", a.Body)
			}
			if held := one[bool](w, "SELECT held FROM lanes"); held != (want != "active") {
				t.Errorf("the lane of the %s endpoint is held: %t", want, held)
			}
		})
	}
}

func TestAVerificationIsPostponedOnRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	a := w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"https://example.com/hooks","send_verification":false}`).want(http.StatusCreated)
	if a.get("last_verification") != nil || a.text("status") != "unverified" {
		t.Errorf("created %s", a.Body)
	}
	w.do("POST", "/api/v1/endpoints/"+a.text("id")+"/verify", tn.key, nil).want(http.StatusAccepted)
	if got := w.do("GET", "/api/v1/endpoints/"+a.text("id"), tn.key, nil).want(http.StatusOK); got.text("last_verification.state") != "pending" {
		t.Errorf("verified %s", got.Body)
	}
}
