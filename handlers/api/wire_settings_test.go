package api_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

func TestCustomSchedulesAreShownAsTheyApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("wire")
	for in, want := range map[string]string{
		`{"delays":[60,300,1800,7200,43200],"jitter":0}`: `{"delays":[60,300,1800,7200,43200],"jitter":0,"name":"custom","spread":"both"}`,
		`{"name":"custom","delays":[5]}`:                 `{"delays":[5],"jitter":0.1,"name":"custom","spread":"both"}`,
		`{"delays":[]}`:                                  `{"delays":[],"jitter":0.1,"name":"custom","spread":"both"}`,
		`{"name":"once"}`:                                `{"delays":[],"jitter":0,"name":"once","spread":"both"}`,
		`{"name":"short"}`:                               `{"delays":[5,30,300],"jitter":0.1,"name":"short","spread":"both"}`,
	} {
		made := w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`","retry_policy":`+in+`}`).want(http.StatusCreated)
		shown, err := json.Marshal(made.get("retry_policy"))
		if err != nil || string(shown) != want {
			t.Errorf("%s is shown as %s, want %s", in, shown, want)
		}
	}
	ep := w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`","retry_policy":{"delays":[7],"jitter":0.5}}`).want(http.StatusCreated).text("id")
	change := func(body, delays string, jitter float64) {
		t.Helper()
		a := w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, body).want(http.StatusOK)
		shown, _ := json.Marshal(a.get("retry_policy.delays"))
		if string(shown) != delays || a.get("retry_policy.jitter").(float64) != jitter {
			t.Errorf("after %s: %v", body, a.get("retry_policy"))
		}
	}
	change(`{"retry_policy":{"jitter":0.25}}`, "[7]", 0.25)
	change(`{"retry_policy":{"delays":[8]}}`, "[8]", 0.25)
	change(`{"retry_policy":{"name":"quick"}}`, "[1,4]", 0.1)
	change(`{"retry_policy":{"delays":[9]}}`, "[9]", 0.1)
}

func TestATenantsScheduleIsThatOfEndpointsThatNameNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("wire")
	policyOf := func(extra string) any {
		t.Helper()
		return w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`"`+extra+`}`).want(http.StatusCreated).get("retry_policy.name")
	}
	if a := w.do("GET", "/api/v1/tenant", tn.key, nil).want(http.StatusOK); a.get("retry_policy.name") != "standard" {
		t.Errorf("a new tenant has %v", a.get("retry_policy"))
	}
	a := w.do("PATCH", "/api/v1/tenant", tn.key, `{"retry_policy":{"delays":[1,2],"jitter":0}}`).want(http.StatusOK)
	if shown, _ := json.Marshal(a.get("retry_policy")); string(shown) != `{"delays":[1,2],"jitter":0,"name":"custom","spread":"both"}` {
		t.Errorf("the tenant shows %s", shown)
	}
	if got := policyOf(""); got != "custom" {
		t.Errorf("an endpoint without a schedule has %v", got)
	}
	if got := policyOf(`,"retry_policy":{"name":"five"}`); got != "five" {
		t.Errorf("an endpoint with a schedule has %v", got)
	}
	w.do("PATCH", "/api/v1/tenant", tn.key, `{"retry_policy":{"name":"never"}}`).problem(400, "retry_policy_unknown", "retry_policy.name")
	if a := w.do("PATCH", "/api/v1/tenant", tn.key, `{"retry_policy":null}`).want(http.StatusOK); a.get("retry_policy.name") != "standard" {
		t.Errorf("null leaves %v", a.get("retry_policy"))
	}
	if got := policyOf(""); got != "standard" {
		t.Errorf("after null an endpoint has %v", got)
	}
}

func TestTheBurstInEffectIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("wire")
	for in, want := range map[string]any{
		`"rate_limit":30`:           60.0,
		`"rate_limit":30,"burst":7`: 7.0,
		`"rate_limit":null`:         nil,
		`"rate_limit":100000`:       100000.0,
	} {
		a := w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`",`+in+`}`).want(http.StatusCreated)
		if got := a.get("burst"); got != want {
			t.Errorf("%s: burst %v, want %v", in, got, want)
		}
	}
}

func TestWireSettingsFollowTheFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("wire")
	a := w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`","format":"x-webhook","type_field":"event","rotation_signatures":"all"}`).want(http.StatusCreated)
	if a.text("type_field") != "event" || a.text("rotation_signatures") != "all" {
		t.Errorf("created with %v, %v", a.get("type_field"), a.get("rotation_signatures"))
	}
	for _, step := range [][3]string{
		{`{"rotation_signatures":null}`, "event", "one"},
		{`{"format":"t-v1"}`, "type", "all"},
		{`{"rotation_signatures":"one"}`, "type", "one"},
		{`{"format":"body-hex"}`, "type", "one"},
		{`{"format":"standard"}`, "type", "all"},
	} {
		b := w.do("PATCH", "/api/v1/endpoints/"+a.text("id"), tn.key, step[0]).want(http.StatusOK)
		if b.text("type_field") != step[1] || b.text("rotation_signatures") != step[2] {
			t.Errorf("after %s: %v, %v", step[0], b.get("type_field"), b.get("rotation_signatures"))
		}
	}
}

func TestAnEndpointsVersionIsOneThatItsEventTypesDeclare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("versions")
	w.do("POST", "/api/v1/event-types", tn.key, `{"name":"order.paid","schema_check":"enforce","versions":{"2026-01-01":{},"2026-06-01":{}}}`).want(http.StatusCreated)
	create := func(fields string) *answer {
		return w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`",`+fields+`}`)
	}
	create(`"payload_version":"2O26-01-01"`).problem(http.StatusBadRequest, "unknown_version", "payload_version")
	create(`"payload_version":"2026-01-01","event_types":["customer.*"]`).want(http.StatusCreated)
	ep := create(`"payload_version":"2026-01-01","event_types":["order.*"]`).want(http.StatusCreated).text("id")
	w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, `{"payload_version":"2026-07-01"}`).problem(http.StatusBadRequest, "unknown_version", "payload_version")
	w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, `{"payload_version":"2026-06-01"}`).want(http.StatusOK)
	w.do("DELETE", "/api/v1/event-types/order.paid", tn.key, nil).want(http.StatusNoContent)
	w.do("POST", "/api/v1/event-types", tn.key, `{"name":"order.paid","schema_check":"enforce","versions":{"2027-01-01":{}}}`).want(http.StatusCreated)
	w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, `{"description":"what the catalogue did since is no reason to refuse this"}`).want(http.StatusOK)
}

func TestAnEndpointCanDoWithoutItsBreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("breaker")
	made := w.do("POST", "/api/v1/endpoints", tn.key, `{"url":"`+hook+`"}`).want(http.StatusCreated)
	if made.get("circuit_breaker") != true {
		t.Errorf("an endpoint begins with %v", made.get("circuit_breaker"))
	}
	ep := made.text("id")
	if a := w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, `{"circuit_breaker":false}`).want(http.StatusOK); a.get("circuit_breaker") != false {
		t.Errorf("it is %v after it was turned off", a.get("circuit_breaker"))
	}
	if a := w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, `{"description":"a"}`).want(http.StatusOK); a.get("circuit_breaker") != false {
		t.Error("another change turned it on")
	}
}
