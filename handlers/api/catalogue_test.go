package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"posthorn/handlers/api"
)

// orderType is an event type that checks its data.
func orderType(check string) map[string]any {
	return map[string]any{
		"name":         "order.paid",
		"description":  "An order was paid.",
		"group":        "Orders",
		"schema_check": check,
		"schema": map[string]any{
			"type":       "object",
			"required":   []string{"amount"},
			"properties": map[string]any{"amount": map[string]any{"type": "integer"}},
		},
		"example":  map[string]any{"amount": 1},
		"versions": map[string]any{"2": map[string]any{"schema": map[string]any{"required": []string{"cents"}}, "example": map[string]any{"cents": 100}}},
	}
}

func TestATypeIsKeptAsItWasDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	made := w.do("POST", "/api/v1/event-types", tn.key, orderType("warn")).want(http.StatusCreated)
	for _, a := range []*answer{made, w.do("GET", "/api/v1/event-types/order.paid", tn.key, nil).want(http.StatusOK)} {
		if a.text("group") != "Orders" || a.text("schema_check") != "warn" || a.get("schema.required") == nil || a.get("example.amount") != 1.0 || a.get("versions.2.example.cents") != 100.0 {
			t.Errorf("%s", a.Body)
		}
	}
	path := "/api/v1/event-types/order.paid"
	changed := w.do("PATCH", path, tn.key, `{"deprecated":true,"example":null}`).want(http.StatusOK)
	if changed.get("deprecated") != true || changed.get("example") != nil || changed.get("schema") == nil || changed.text("description") != "An order was paid." {
		t.Errorf("%s", changed.Body)
	}
	w.do("PATCH", path, tn.key, `{"deprecated":true}`).want(http.StatusOK)
	if n := w.audited(tn, "event_type.updated"); n != 1 {
		t.Errorf("%d changes are audited, want 1", n)
	}
	if got := w.do("PATCH", path, tn.key, `{"schema":null,"versions":null,"schema_check":"off"}`).want(http.StatusOK); got.get("schema") != nil || len(got.get("versions").(map[string]any)) != 0 {
		t.Errorf("%s", got.Body)
	}
}

func TestAnInvalidTypeIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	for body, want := range map[string][]string{
		`{"name":"a","schema":{"type":"nothing"}}`:                                            {"schema_invalid", "schema"},
		`{"name":"a","schema":{"$ref":"file:///etc/passwd"}}`:                                 {"schema_invalid", "schema"},
		`{"name":"a","schema":5}`:                                                             {"schema_invalid", "schema"},
		`{"name":"a","schema":{"type":"object"},"example":[]}`:                                {"example_mismatch", "example"},
		`{"name":"a","schema":{"properties":{"b":{"type":"null"}}},"example":{"b":1}}`:        {"example_mismatch", "example.b"},
		`{"name":"a b","group":"` + strings.Repeat("g", 65) + `","schema_check":"sometimes"}`: {"type_malformed", "name", "group", "schema_check"},
		`{"name":"a","versions":{"1/2":{}}}`:                                                  {"version_malformed", "versions"},
		`{"name":"a","versions":{"1":{"schema":{"minimum":"x"}}}}`:                            {"schema_invalid", "versions.1.schema"},
		`{"name":"a","versions":{"1":{"other":1}}}`:                                           {"unknown_field", "versions.1.other"},
		`{"name":"a","schema":{"` + strings.Repeat("x", 65<<10) + `":1}}`:                     {"schema_invalid", "schema"},
	} {
		w.do("POST", "/api/v1/event-types", tn.key, body).problem(http.StatusBadRequest, want[0], want[1:]...)
	}
}

func TestAPayloadThatViolatesItsSchemaIsRejectedOrWarnedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.active(tn, nil)
	w.do("POST", "/api/v1/event-types", tn.key, orderType("enforce")).want(http.StatusCreated)
	emit := func(body string) *answer { return w.do("POST", "/api/v1/events", tn.key, body) }
	const wrong = `{"type":"order.paid","data":{"amount":"1"}}`
	got := emit(wrong).problem(http.StatusBadRequest, "schema_mismatch", "data.amount")
	if !strings.Contains(string(got.Body), "got string, want integer") {
		t.Errorf("%s", got.Body)
	}
	if n := one[int](w, "SELECT count(*)::int FROM events"); n != 0 {
		t.Errorf("%d events are stored", n)
	}
	emit(`{"type":"order.paid","data":{"amount":1}}`).want(http.StatusAccepted)
	emit(`{"type":"order.paid","version":"2","data":{"amount":1}}`).problem(http.StatusBadRequest, "schema_mismatch", "data")
	emit(`{"type":"order.paid","version":"2","data":{"cents":1}}`).want(http.StatusAccepted)
	emit(`{"type":"order.paid","version":"9","data":{"cents":1}}`).problem(http.StatusBadRequest, "schema_mismatch", "data")
	emit(`{"type":"other","data":5}`).want(http.StatusAccepted)
	batch := w.do("POST", "/api/v1/events/batch", tn.key, `[`+wrong+`,{"type":"order.paid","data":{"amount":2}}]`).want(http.StatusMultiStatus)
	if batch.get("accepted") != 1.0 {
		t.Errorf("%s", batch.Body)
	}
	w.do("PATCH", "/api/v1/event-types/order.paid", tn.key, `{"schema_check":"warn"}`).want(http.StatusOK)
	var stored api.Accepted
	emit(wrong).want(http.StatusAccepted).into(&stored)
	if stored.Deliveries != 1 || stored.Warnings == nil || (*stored.Warnings)[0].Field != "data.amount" {
		t.Errorf("%+v", stored)
	}
	if fine := emit(`{"type":"order.paid","data":{"amount":1}}`).want(http.StatusAccepted); strings.Contains(string(fine.Body), "warnings") {
		t.Errorf("%s", fine.Body)
	}
	w.do("PATCH", "/api/v1/event-types/order.paid", tn.key, `{"schema_check":"off"}`).want(http.StatusOK)
	if off := emit(wrong).want(http.StatusAccepted); strings.Contains(string(off.Body), "warnings") {
		t.Errorf("%s", off.Body)
	}
}

func TestAnEndpointThatIsPinnedGetsItsPayloadVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	first := w.active(tn, map[string]any{"payload_version": "1"})
	second := w.active(tn, map[string]any{"payload_version": "2"})
	all := w.active(tn, nil)
	for version, want := range map[string]map[string]bool{
		"1": {first: true, all: true},
		"2": {second: true, all: true},
		"3": {all: true},
		"": {
			first:  true,
			second: true,
			all:    true,
		},
	} {
		body := map[string]any{}
		if version != "" {
			body["version"] = version
		}
		event := w.emit(tn, body)
		_, by := w.routing(tn, event)
		for _, ep := range []string{first, second, all} {
			v := by[ep]
			if v.Matched != want[ep] || (w.clause(v) == "version") == want[ep] {
				t.Errorf("version %q: %+v", version, v)
			}
			if _, err := v.DeliveryID.Get(); (err == nil) != want[ep] {
				t.Errorf("version %q, %s: a delivery is there: %v", version, ep, err == nil)
			}
		}
	}
	event := w.emit(tn, map[string]any{"version": "1"})
	w.do("PATCH", "/api/v1/endpoints/"+second, tn.key, `{"payload_version":"1"}`).want(http.StatusOK)
	if _, by := w.routing(tn, event); by[second].Matched {
		t.Error("the pin is told as it is, not as it was")
	}
	later := w.emit(tn, map[string]any{"version": "1"})
	if _, by := w.routing(tn, later); !by[second].Matched {
		t.Error("the new pin does not route")
	}
}

func TestAHostileSchemaDoesNotStopTheProducer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	var parts []string
	for range 400 {
		parts = append(parts, `{"not":{"const":"x"}}`)
	}
	w.do("POST", "/api/v1/event-types", tn.key, `{"name":"a","schema_check":"enforce","schema":{"items":{"allOf":[`+strings.Join(parts, ",")+`]}}}`).want(http.StatusCreated)
	began := time.Now()
	w.do("POST", "/api/v1/events", tn.key, `{"type":"a","data":[`+strings.Repeat("1,", 100_000)+`1]}`).problem(http.StatusBadRequest, "schema_mismatch", "data")
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestManyTypesAreImportedAtOnceOrNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	const path = "/api/v1/event-types/import"
	w.do("POST", "/api/v1/event-types", tn.key, `{"name":"b","description":"old"}`).want(http.StatusCreated)
	actions := func(body string) string {
		t.Helper()
		var in api.EventTypeImported
		w.do("POST", path, tn.key, body).want(http.StatusOK).into(&in)
		var words []string
		for _, r := range in.Results {
			words = append(words, r.Name+" "+string(r.Action))
		}
		return strings.Join(words, ", ")
	}
	const list = `"event_types":[{"name":"a","schema":{"type":"object"}},{"name":"b","description":"new"}]`
	for _, step := range []struct{ body, want string }{
		{`{"dry_run":true,` + list + `}`, "a created, b updated"},
		{`{"on_conflict":"skip",` + list + `}`, "a created, b skipped"},
		{`{` + list + `}`, "a unchanged, b updated"},
		{`{` + list + `}`, "a unchanged, b unchanged"},
		{`{"openapi":{"openapi":"3.1.0","webhooks":{"c":{"post":{"summary":"C"}}}}}`, "c created"},
	} {
		if got := actions(step.body); got != step.want {
			t.Errorf("%s: %s, want %s", step.body, got, step.want)
		}
	}
	if n := w.audited(tn, "event_type.created"); n != 3 {
		t.Errorf("%d creations are audited, want 3", n)
	}
	w.do("POST", path, tn.key, `{"event_types":[{"name":"d"},{"name":"e","schema":{"type":"x"}},{"name":"d"}]}`).
		problem(http.StatusBadRequest, "schema_invalid", "event_types.1.schema", "event_types.2.name")
	w.do("GET", "/api/v1/event-types/d", tn.key, nil).problem(http.StatusNotFound, "not_found")
	w.do("POST", path, tn.key, `{}`).problem(http.StatusBadRequest, "import_empty", "event_types")
	w.do("POST", path, tn.key, `{"event_types":[]}`).problem(http.StatusBadRequest, "import_count", "event_types")
	w.do("POST", path, tn.key, `{"openapi":{"openapi":"3.0.0"}}`).problem(http.StatusBadRequest, "openapi_invalid", "openapi")
}
