package settings

import (
	"encoding/json"
	"strings"
	"testing"

	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/health"
)

func TestEveryFieldIsWhole(t *testing.T) {
	t.Parallel()
	seen, groups := map[string]bool{}, map[string]bool{}
	for _, g := range Groups() {
		groups[g] = true
	}
	for _, f := range Fields() {
		if seen[f.Name] || f.Label == "" || !groups[f.Group] {
			t.Errorf("%+v", f)
		}
		seen[f.Name] = true
		if _, wrong := f.value(f.Default); wrong != "" {
			t.Errorf("the default of %s: %s", f.Name, wrong)
		}
		if _, wrong := f.value("nonsense"); wrong == "" || !strings.HasSuffix(wrong, ".") {
			t.Errorf("%s takes nonsense", f.Name)
		}
		if got := f.Value(nil, nil); got != f.Default {
			t.Errorf("%s is %q where nobody says anything", f.Name, got)
		}
	}
}

// What is written here is read by the rules of endpoints and of health.
func TestTheRulesReadWhatIsSet(t *testing.T) {
	t.Parallel()
	before := endpoint.ReadDefaults(50, nil, nil)
	if before.MaxEndpoints != Number(MaxEndpoints) || *before.Settings.RateLimit != Number("endpoints.rate_limit") ||
		before.Settings.TimeoutSeconds != Number("endpoints.timeout_seconds") ||
		before.Settings.MaxInFlight != Number("endpoints.max_in_flight") || before.Settings.Verification != Word("endpoints.verification") ||
		before.Settings.RetryPolicy != Word("endpoints.retry_policy") || before.Settings.WhenHeld != Word("endpoints.when_held") {
		t.Errorf("the defaults differ: %+v", before)
	}
	raw, changed, err := Amend([]byte(`{"tenant":"kept","health":{"gone":true},"endpoints":{"prefix":"Acme"}}`), Fields(), map[string]string{
		MaxEndpoints:                "7",
		"endpoints.rate_limit":      "0",
		"endpoints.retry_policy":    "short",
		"endpoints.when_held":       "drop",
		"endpoints.timeout_seconds": "3",
		"health.gone":               "off",
		"health.tls_hours":          "0",
		"health.exhausted":          " 12 ",
		EventsPerMonth:              "1000000",
		Digest:                      "off",
	})
	if err != nil {
		t.Fatal(err)
	}
	d := endpoint.ReadDefaults(50, raw, nil)
	if d.MaxEndpoints != 7 || d.Settings.RateLimit != nil || d.Settings.RetryPolicy != "short" || d.Settings.WhenHeld != "drop" ||
		d.Settings.TimeoutSeconds != 3 || d.Settings.Prefix != "Acme" {
		t.Errorf("%+v", d)
	}
	if p := health.ReadPolicy(raw, nil); p.Gone || p.TLSHours != 0 || p.Exhausted != 12 {
		t.Errorf("%+v", p)
	}
	if l := ReadLimits(raw, []byte(`{"limits":{"events_per_second":5,"events_per_month":"many","max_payload":1}}`)); l != (Limits{5, 1_000_000, 7, 256 << 10}) {
		t.Errorf("%+v", l)
	}
	if len(changed) != 10 || changed["health.gone"] != (Change{"on", "off"}) || changed[EventsPerMonth] != (Change{"", "1000000"}) ||
		!strings.Contains(string(raw), `"tenant":"kept"`) {
		t.Errorf("%v %s", changed, raw)
	}
	if On(Digest, raw) || !On(Digest) {
		t.Error("the digest is not switched")
	}
}

func TestAnEmptyTextTakesASettingOut(t *testing.T) {
	t.Parallel()
	raw, changed, err := Amend([]byte(`{"limits":{"events_per_second":5},"viewers_read_payloads":true}`), OfTenant(), map[string]string{EventsPerSecond: "", MaxPayload: ""})
	if err != nil || len(changed) != 1 || changed[EventsPerSecond] != (Change{"5", ""}) {
		t.Fatal(changed, err)
	}
	var left map[string]any
	if err := json.Unmarshal(raw, &left); err != nil || len(left) != 1 || left["viewers_read_payloads"] != true {
		t.Errorf("%s", raw)
	}
	if _, changed, _ := Amend(raw, OfTenant(), map[string]string{MaxPayload: ""}); len(changed) != 0 {
		t.Errorf("nothing changed as %v", changed)
	}
}

func TestWhatAFieldCannotBeIsRefusedByName(t *testing.T) {
	t.Parallel()
	_, _, err := Amend(nil, OfTenant(), map[string]string{
		EventsPerSecond: "-1",
		MaxEndpoints:    "0",
		MaxPayload:      "1048577",
		EventsPerMonth:  "1e6",
		SignUp:          "open",
		"nonsense":      "1",
	})
	e := fault.As(err)
	if e == nil || len(e.Fields) != 6 {
		t.Fatalf("%+v", e)
	}
	for _, f := range e.Fields {
		if f.Detail == "" || f.Code != "out_of_range" && f.Name != SignUp && f.Name != "nonsense" {
			t.Errorf("%+v", f)
		}
	}
	if _, _, err := Amend([]byte("["), Fields(), map[string]string{Digest: "on"}); err == nil {
		t.Error("what is no object is amended")
	}
}
