package schema

import (
	"fmt"
	"strings"
	"testing"

	"posthorn/domain/fault"
)

const order = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["id","total"],
	"properties":{"id":{"type":"string","pattern":"^ord_"},"total":{"type":"integer","minimum":0},"customer":{"$ref":"#/$defs/customer"},"$ref":{"type":"string"}},
	"$defs":{"customer":{"type":"object","properties":{"email":{"type":"string","minLength":3}},"additionalProperties":false}}}`

func compile(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Compile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMismatchesNameTheFieldAndTheFault(t *testing.T) {
	t.Parallel()
	s := compile(t, order)
	for data, want := range map[string]string{
		`{"id":"ord_1","total":3,"customer":{"email":"a@b"},"$ref":"x"}`: "",
		`{"id":"ord_1"}`:                                   "data: missing property 'total'",
		`{"id":"x","total":3}`:                             "data.id: 'x' does not match pattern",
		`{"id":"ord_1","total":"3"}`:                       "data.total: got string, want integer",
		`{"id":"ord_1","total":12345678901234567890123}`:   "",
		`{"id":"ord_1","total":1,"customer":{"age":1}}`:    "data.customer: additional properties 'age' not allowed",
		`{"id":"ord_1","total":1,"customer":{"email":""}}`: "data.customer.email: minLength: got 0, want 3",
		`[]`:   "data: got array, want object",
		`{`:    "data: The data isn't JSON",
		`null`: "data: got null, want object",
	} {
		found := s.Check([]byte(data))
		got := ""
		if len(found) > 0 {
			got = found[0].Field + ": " + strings.TrimPrefix(found[0].Detail, "The schema rejects it: ")
		}
		if !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
	if err := Fault(s.Check([]byte(`{"id":"x","total":"y"}`))); !fault.Is(err, "schema_mismatch") || len(fault.As(err).Fields) != 2 {
		t.Errorf("%v", err)
	}
	if Fault(nil) != nil {
		t.Error("nothing wrong is a fault")
	}
}

func TestSchemasLoadNothingAndEnd(t *testing.T) {
	t.Parallel()
	doubling := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 40 {
		doubling += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling += `"d40":{}}}`
	for text, says := range map[string]string{
		`{`:                                     "isn't JSON",
		`{"type":"nothing"}`:                    "is invalid",
		`{"minimum":"1"}`:                       "is invalid",
		`{"pattern":"("}`:                       "is invalid",
		`{"$ref":"file:///etc/passwd"}`:         "doesn't resolve",
		`{"$ref":"https://example.com/a.json"}`: "doesn't resolve",
		`{"$ref":"other.json#/a"}`:              "doesn't resolve",
		`{"$ref":"#/$defs/none"}`:               "doesn't resolve",
		`{"$schema":"https://example.com/own"}`: "",
		`{"$schema":"file:///etc/passwd"}`:      "",
		`{"properties":{"a":{"$ref":"#"}}}`:     "is recursive",
		`{"$defs":{"n":{"properties":{"x":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`: "is recursive",
		`{"$dynamicRef":"#x"}`:                          "isn't supported",
		`{"properties":{"a":{"$id":"b.json"}}}`:         "isn't supported",
		doubling:                                        "more than 2000 subschemas",
		`{"a":"` + strings.Repeat("x", maxBytes) + `"}`: "the maximum is",
		`5`: "",
	} {
		_, err := Compile([]byte(text))
		if e := fault.As(err); e == nil || e.Code != "schema_invalid" || !strings.Contains(e.Detail, says) || strings.Contains(e.Detail,
			"root:") {
			t.Errorf("%.100s: %v", text, err)
		}
	}
	for _, good := range []string{`true`, `{}`, `{"$id":"https://example.com/order.json","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"const":{"$ref":"x"}}}}`} {
		compile(t, good)
	}
}

// What would take long is not started.
func TestCheckingIsBounded(t *testing.T) {
	t.Parallel()
	var parts []string
	for i := range 400 {
		parts = append(parts, fmt.Sprintf(`{"not":{"const":"x%d"}}`, i))
	}
	s := compile(t, `{"items":{"allOf":[`+strings.Join(parts, ",")+`]},"uniqueItems":true}`)
	matching := compile(t, `{"items":{"pattern":"(a+)+b"},"patternProperties":{"^a":{}}}`)
	for n, bounded := range map[int]bool{10: false, 2000: false, 100_000: true} {
		data := "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]"
		if found := s.Check([]byte(data)); len(found) != 1 || strings.Contains(found[0].Detail, "too many values") != bounded {
			t.Errorf("%d values: %v", n, found)
		}
	}
	if found := matching.Check([]byte(`["` + strings.Repeat("a", 200_000) + `"]`)); len(found) != 1 ||
		!strings.Contains(found[0].Detail, "does not match") {
		t.Errorf("%.200v", found)
	}
}
