package mcp_test

import (
	"encoding/json"
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/mcp"
)

const incident = `{"type":"object","required":["id"],"properties":{
	"id":{"type":"integer","minimum":1},"severity":{"type":"string","enum":["P1","P2"]},"open":{"type":"boolean"},
	"tags":{"type":"array"},"a.b":{"type":"string"},"any":{}}}`

func TestArgumentsAreFieldsWithOneValueAndFilterByEquality(t *testing.T) {
	t.Parallel()
	var got struct {
		Properties map[string]map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(mcp.InputSchema(json.RawMessage(incident)), &got); err != nil || len(got.Properties) != 3 || got.Properties["id"]["minimum"] != nil {
		t.Errorf("%v %v", got, err)
	}
	for given, want := range map[string][2]string{
		``:                              {`{}`, ``},
		`null`:                          {`{}`, ``},
		` { } `:                         {`{}`, ``},
		`{"severity": "P1", "id": 1.0}`: {`{"id":1,"severity":"P1"}`, `{"id":1,"severity":"P1"}`},
		`{"id":1,"severity":"P1"}`:      {`{"id":1,"severity":"P1"}`, `{"id":1,"severity":"P1"}`},
	} {
		canonical, filter, err := mcp.Arguments(json.RawMessage(incident), json.RawMessage(given))
		if err != nil || canonical != want[0] || filter != want[1] {
			t.Errorf("%s: %s, %s, %v", given, canonical, filter, err)
		}
	}
	for _, given := range []string{`[]`, `"a"`, `{"severity":"P3"}`, `{"tags":["a"]}`, `{"unknown":1}`, `{"id":"1"}`, `{"a.b":"c"}`} {
		if canonical, _, err := mcp.Arguments(json.RawMessage(incident), json.RawMessage(given)); err == nil {
			t.Errorf("%s became %s", given, canonical)
		}
	}
	if _, _, err := mcp.Arguments(nil, json.RawMessage(`{"id":1}`)); err == nil {
		t.Error("a type without a schema took an argument")
	}
}

func TestDataThatIsNoObjectIsDescribedAsItIsSent(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		``:                  `{"type":"object"}`,
		`{"type":"object"}`: `{"type":"object"}`,
		`{"type":"array"}`:  `{"type":"object","properties":{"value":{"type":"array"}}}`,
	} {
		if got := mcp.PayloadSchema(json.RawMessage(schema)); string(got) != want {
			t.Errorf("%s: %s", schema, got)
		}
	}
}

func TestAnIDIsOfPrincipalURLEventAndArguments(t *testing.T) {
	t.Parallel()
	first := mcp.ID("a", "https://x", "e", "{}")
	if first != mcp.ID("a", "https://x", "e", "{}") || len(first) != 36 {
		t.Error(first)
	}
	for _, other := range [][4]string{{"b", "https://x", "e", "{}"}, {"a", "https://y", "e", "{}"}, {"a", "https://x", "f", "{}"}, {"a", "https://x", "e", `{"a":1}`}} {
		if mcp.ID(other[0], other[1], other[2], other[3]) == first {
			t.Error(other)
		}
	}
}

func TestALifetimeIsWithinBounds(t *testing.T) {
	t.Parallel()
	ms := func(d time.Duration) *int64 { return new(d.Milliseconds()) }
	for _, one := range []struct {
		asked *int64
		none  bool
		want  time.Duration
	}{
		{nil, false, 24 * time.Hour},
		{nil, true, 7 * 24 * time.Hour},
		{ms(time.Hour), false, time.Hour},
		{ms(time.Millisecond), false, time.Minute},
		{ms(365 * 24 * time.Hour), false, 7 * 24 * time.Hour},
		{new(int64(1 << 62)), false, 7 * 24 * time.Hour},
	} {
		if got := mcp.Life(one.asked, one.none); got != one.want {
			t.Errorf("%v: %v", one, got)
		}
	}
}

func TestSecretsURLsAndPrincipalsOfOtherShapesAreRejected(t *testing.T) {
	t.Parallel()
	if mcp.CheckSecret("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz") != nil || mcp.CheckURL("https://a.example/x?y=1") != nil || mcp.CheckPrincipal("auth0|4711") != nil {
		t.Error("a good one is rejected")
	}
	for _, bad := range []string{"", "whsec_", "whsec_c2hvcnQ=", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz", "whsec_***"} {
		if mcp.CheckSecret(bad) == nil {
			t.Error(bad)
		}
	}
	for _, bad := range []string{"https://a:b@c.example/", "https://a.example/#x", "://"} {
		if mcp.CheckURL(bad) == nil {
			t.Error(bad)
		}
	}
	for _, bad := range []string{"", "a\nb", string(make([]byte, 300))} {
		if mcp.CheckPrincipal(bad) == nil {
			t.Errorf("%q", bad)
		}
	}
}

func TestAFailureIsToldByItsCategoryAlone(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]delivery.Result{
		"timeout":            {Failure: delivery.FailTimeout},
		"tls_error":          {Failure: delivery.FailTLS},
		"connection_refused": {Failure: delivery.FailBlocked},
		"http_4xx":           {Status: 404},
		"http_5xx":           {Status: 503},
	} {
		if got := mcp.Reason(r); got != want {
			t.Errorf("%s: %s", want, got)
		}
	}
}
