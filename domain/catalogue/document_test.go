package catalogue

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"posthorn/domain/schema"
)

var published = []Entry{
	{
		Name: "order.completed", Description: "Paid", Group: "Orders", Check: Off,
		Schema:   json.RawMessage(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"to":{"$ref":"#/$defs/address"},"n":{"const":{"$ref":"#/x"}}},"$defs":{"address":{"type":"object","properties":{"city":{"type":"string","maxLength":12345678901234567890}}}}}`),
		Example:  json.RawMessage(`{"id":"ord_1"}`),
		Versions: map[string]Version{"2026-01": {Schema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":true}}`)}},
	},
	{Name: "order.completed-2026-01", Check: Off, Deprecated: true},
	{Name: "ping", Check: Off, Schema: json.RawMessage(`true`)},
}

func publish(t *testing.T, as Document) []byte {
	t.Helper()
	out, err := Publish(as, About{Title: "Acme webhooks", Version: "2026-01-31"}, published)
	if err != nil {
		t.Fatal(err)
	}
	reversed := slices.Clone(published)
	slices.Reverse(reversed)
	again, err := Publish(as, About{Title: "Acme webhooks", Version: "2026-01-31"}, reversed)
	if err != nil || !bytes.Equal(again, out) {
		t.Errorf("%s: another order gives another document (%v)", as, err)
	}
	return out
}

func TestAPublishedOpenAPIDocumentIsImportedAgain(t *testing.T) {
	t.Parallel()
	entries, err := FromOpenAPI(publish(t, OpenAPI))
	if err != nil || len(entries) != len(published) {
		t.Fatal(entries, err)
	}
	for i, e := range entries {
		if err := e.Validate(); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
		want := published[i]
		if string(want.Schema) == "true" {
			want.Schema = nil
		}
		if e.Name != want.Name || e.Description != want.Description || e.Group != want.Group ||
			e.Deprecated != want.Deprecated || !sameJSON(e.Schema, want.Schema) || !sameJSON(e.Example, want.Example) {
			t.Errorf("published\n%+v\nand read\n%+v", want, e)
		}
		if !maps.EqualFunc(e.Versions, want.Versions, func(a, b Version) bool { return sameJSON(a.Schema, b.Schema) }) {
			t.Errorf("versions %v of %s", e.Versions, e.Name)
		}
	}
	if found := Compare(published, entries); len(found) != 0 {
		t.Errorf("differences: %+v", found)
	}
}

func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, errX := exactJSON(a)
	y, errY := exactJSON(b)
	one, _ := json.Marshal(x)
	other, _ := json.Marshal(y)
	return errX == nil && errY == nil && bytes.Equal(one, other)
}

func TestThePublishedOpenAPIDocumentIsValid(t *testing.T) {
	t.Parallel()
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(publish(t, OpenAPI))
	if err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Components == nil || doc.Components.Schemas["order.completed"] == nil {
		t.Errorf("%+v", doc)
	}
}

// The published JSON Schema accepts the bodies that are sent, and rejects others.
func TestThePublishedJSONSchemaFitsBodies(t *testing.T) {
	t.Parallel()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(publish(t, JSONSchema)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///catalogue.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("mem:///catalogue.json")
	if err != nil {
		t.Fatal(err)
	}
	for body, fits := range map[string]bool{
		`{"id":"evt_1","type":"order.completed","timestamp":"2026-01-31T12:00:00.000Z","data":{"id":"x"}}`:                   true,
		`{"id":"evt_1","type":"order.completed","timestamp":"2026-01-31T12:00:00.000Z","version":"2026-01","data":{"a":1}}`:  true,
		`{"id":"evt_1","type":"order.completed","timestamp":"2026-01-31T12:00:00.000Z","data":{"id":"x","to":{"city":"y"}}}`: true,
		`{"id":"evt_1","type":"order.completed","timestamp":"2026-01-31T12:00:00.000Z","data":"x"}`:                          false,
		`{"id":"evt_1","type":"order.lost","timestamp":"2026-01-31T12:00:00.000Z","data":{}}`:                                false,
		`{"type":"ping","timestamp":"2026-01-31T12:00:00.000Z","data":{}}`:                                                   false,
		`{"id":"evt_1","type":"ping","timestamp":"2026-01-31T12:00:00.000Z","data":[1,2]}`:                                   true,
		`{"id":"evt_1","type":"order.completed-2026-01","timestamp":"2026-01-31T12:00:00.000Z","data":null}`:                 true,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(v); (err == nil) != fits {
			t.Errorf("%s fits %t: %v", body, fits, err)
		}
	}
}

// Every reference of a document leads somewhere.
func TestReferencesOfPublishedDocumentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, as := range Documents() {
		root, err := exactJSON(publish(t, as))
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		var visit func(v any)
		visit = func(v any) {
			switch v := v.(type) {
			case []any:
				for _, item := range v {
					visit(item)
				}
			case map[string]any:
				if ref, ok := v["$ref"].(string); ok {
					seen++
					if target, _ := follow(map[string]any{"$ref": ref}, root); target == nil {
						t.Errorf("%s: %s leads nowhere", as, ref)
					}
				}
				for name, member := range v {
					if name != "const" {
						visit(member)
					}
				}
			}
		}
		visit(root)
		if seen < 6 {
			t.Errorf("%s: %d references were tried", as, seen)
		}
	}
	if _, err := Publish("raml", About{}, nil); err == nil {
		t.Error("an unknown format was written")
	}
}

func TestIncompatibleChangesAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, current, path, detail string }{
		{"a type", `{"type":"integer"}`, `{"type":"number"}`, "data", "can be number now"},
		{"a narrower type", `{"type":"number"}`, `{"type":"integer"}`, "", ""},
		{"null", `{"properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":["string","null"]}}}`, "data.a", "can be null now"},
		{"a field that was always there", `{"properties":{"a":{}},"required":["a"]}`, `{"properties":{"a":{}}}`, "data.a", "can be missing now"},
		{"a field less", `{"properties":{"a":{"type":"string"},"b":{}}}`, `{"properties":{"b":{}}}`, "data.a", "was removed"},
		{"a field more", `{"properties":{"a":{}}}`, `{"properties":{"a":{},"b":{}},"required":["b"]}`, "", ""},
		{"a field more where none is allowed", `{"properties":{"a":{}},"additionalProperties":false}`, `{"properties":{"a":{},"b":{}},"additionalProperties":false}`, "data.b", "rejects fields"},
		{"open to other fields", `{"properties":{"a":{}},"additionalProperties":false}`, `{"properties":{"a":{}}}`, "data", "Other fields"},
		{"a value more", `{"enum":["a"]}`, `{"enum":["a","b"]}`, "data", `"b" is new`},
		{"a value less", `{"enum":["a","b"]}`, `{"const":"a"}`, "", ""},
		{"a wider bound", `{"maximum":5}`, `{"maximum":6}`, "data", "was 5 and is 6"},
		{"a tighter bound", `{"maximum":5,"minLength":1}`, `{"maximum":4,"minLength":2}`, "", ""},
		{"no bound", `{"minItems":1}`, `{"type":"array"}`, "data", "not limited"},
		{"a pattern", `{"pattern":"^a"}`, `{"pattern":"^b"}`, "data", "pattern"},
		{"items", `{"items":{"type":"string"}}`, `{"items":{"type":"integer"}}`, "data[]", "can be integer now"},
		{"behind a reference", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `{"$ref":"#/$defs/b","$defs":{"b":{"type":"boolean"}}}`, "data", "can be boolean now"},
		{"another name for a reference", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `{"$ref":"#/$defs/b","$defs":{"b":{"type":"string"}}}`, "", ""},
		{"the same words, another target", `{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, `{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"integer"}}}`, "data.x", "can be integer now"},
		{"a choice more", `{"anyOf":[{"type":"string"}]}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`, "data", "Choice 2"},
		{"a choice less", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"type":"string"}`, "", ""},
		{"no schema", `{"type":"string"}`, ``, "data", "removed"},
		{"a schema at last", ``, `{"type":"string"}`, "", ""},
	} {
		found := Compare([]Entry{{Name: "a.b", Schema: json.RawMessage(c.old)}},
			[]Entry{{Name: "a.b", Schema: json.RawMessage(c.current)}})
		if c.detail == "" {
			if Incompatible(found) {
				t.Errorf("%s: %+v", c.name, found)
			}
			continue
		}
		if len(found) != 1 || !found[0].Breaking || found[0].Path != c.path || !strings.Contains(found[0].Detail,
			c.detail) {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
	old := []Entry{{Name: "gone"}, {Name: "kept", Versions: map[string]Version{"1": {}, "2": {Schema: json.RawMessage(`{"type":"string"}`)}}}}
	current := []Entry{{Name: "kept", Deprecated: true, Versions: map[string]Version{"2": {}, "3": {}}}, {Name: "new"}}
	var got []string
	for _, f := range Compare(old, current) {
		got = append(got, strings.TrimSpace(f.Type+" "+f.Version+" "+f.Detail))
	}
	want := []string{
		"gone  The event type was removed.", "kept 1 The version was removed.", "kept 2 The schema was removed: any value is possible now.",
		"kept  The event type is deprecated now.", "kept 3 The version is new.", "new  The event type is new.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// What counts as compatible is: data that fits the new schema fits the old one.
func TestCompatibleMeansThatNewDataFitsTheOldSchema(t *testing.T) {
	t.Parallel()
	compatible, tried := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		old := small(2).Draw(t, "old")
		current := old
		if rapid.Bool().Draw(t, "other") {
			current = small(2).Draw(t, "current")
		}
		if m, ok := current.(map[string]any); ok && rapid.Bool().Draw(t, "narrower") {
			current = maps.Clone(m)
			current.(map[string]any)["minimum"] = json.Number("1")
		}
		a, _ := json.Marshal(old)
		b, _ := json.Marshal(current)
		if Incompatible(Compare([]Entry{{Name: "a", Schema: a}}, []Entry{{Name: "a", Schema: b}})) {
			return
		}
		compatible++
		before, errA := schema.Compile(a)
		after, errB := schema.Compile(b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		for range 20 {
			data, _ := json.Marshal(value(2).Draw(t, "data"))
			if wrong, _ := after.Check(data, nil); len(wrong) > 0 {
				continue
			}
			tried++
			if wrong, _ := before.Check(data, nil); len(wrong) > 0 {
				t.Fatalf("%s fits the new schema %s and not the old one %s: %+v", data, b, a, wrong)
			}
		}
	})
	if compatible < 10 || tried < 10 {
		t.Errorf("%d pairs were compatible, %d values tried", compatible, tried)
	}
}

func small(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := []string{"type", "enum", "bound", "true"}
		if depth > 0 {
			kinds = append(kinds, "object", "array", "anyOf", "allOf", "tuple")
		}
		inner := func() any { return small(depth-1).Draw(t, "inner") }
		switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
		case "type":
			return map[string]any{"type": rapid.SampledFrom([]any{"string", "integer", "number", "boolean", "object", "array", []any{"string", "null"}}).Draw(t, "type")}
		case "enum":
			return map[string]any{"enum": rapid.SliceOfNDistinct(rapid.SampledFrom([]any{"a", "b", json.Number("1"), nil}), 1, 3,
				func(v any) any { return v }).Draw(t, "values")}
		case "bound":
			return map[string]any{
				rapid.SampledFrom([]string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}).Draw(t, "word"): json.Number(rapid.SampledFrom([]string{"0", "1", "2"}).Draw(t,
					"n")),
			}
		case "object":
			m := map[string]any{"properties": map[string]any{"a": inner(), "b": inner()}}
			if rapid.Bool().Draw(t, "fewer") {
				m["properties"] = map[string]any{"a": inner()}
			}
			if rapid.Bool().Draw(t, "required") {
				m["required"] = []any{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
			}
			switch rapid.IntRange(0, 3).Draw(t, "rest") {
			case 0:
				m["additionalProperties"] = false
			case 1:
				m["additionalProperties"] = inner()
			}
			if rapid.Bool().Draw(t, "typed") {
				m["type"] = "object"
			}
			return m
		case "array":
			return map[string]any{"items": inner()}
		case "tuple":
			return map[string]any{"prefixItems": []any{inner()}, "items": inner()}
		case "anyOf", "allOf":
			return map[string]any{kind: []any{inner(), inner()}}
		}
		return true
	})
}

func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		plain := []any{"a", "b", "abc", json.Number("0"), json.Number("1"), json.Number("1.5"), json.Number("3"), true, nil}
		switch n := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case n == 1 && depth > 0:
			return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), value(depth-1), 0, 3).Draw(t, "object")
		case n == 2 && depth > 0:
			return rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "array")
		}
		return rapid.SampledFrom(plain).Draw(t, "plain")
	})
}
