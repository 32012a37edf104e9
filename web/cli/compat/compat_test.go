package compat_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"posthorn/domain/catalogue"
	"posthorn/domain/schema"
	"posthorn/web/cli/compat"
)

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
		{"a position of its own", `{"items":{"type":"string"}}`, `{"prefixItems":[{"type":"integer"}],"items":{"type":"string"}}`, "data[0]", "can be integer now"},
		{"behind a reference", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `{"$ref":"#/$defs/b","$defs":{"b":{"type":"boolean"}}}`, "data", "can be boolean now"},
		{"another name for a reference", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `{"$ref":"#/$defs/b","$defs":{"b":{"type":"string"}}}`, "", ""},
		{"the same words, another target", `{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, `{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"integer"}}}`, "data.x", "can be integer now"},
		{"a choice more", `{"anyOf":[{"type":"string"}]}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`, "data", "Choice 2"},
		{"a choice less", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"type":"string"}`, "", ""},
		{"no schema", `{"type":"string"}`, ``, "data", "removed"},
		{"a schema at last", ``, `{"type":"string"}`, "", ""},
	} {
		found := compat.Compare([]catalogue.Entry{{Name: "a.b", Schema: json.RawMessage(c.old)}},
			[]catalogue.Entry{{Name: "a.b", Schema: json.RawMessage(c.current)}})
		if c.detail == "" {
			if compat.Incompatible(found) {
				t.Errorf("%s: %+v", c.name, found)
			}
			continue
		}
		if len(found) != 1 || !found[0].Breaking || found[0].Path != c.path || !strings.Contains(found[0].Detail, c.detail) {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
	old := []catalogue.Entry{{Name: "gone"}, {Name: "kept", Versions: map[string]catalogue.Version{"1": {}, "2": {Schema: json.RawMessage(`{"type":"string"}`)}}}}
	current := []catalogue.Entry{{Name: "kept", Deprecated: true, Versions: map[string]catalogue.Version{"2": {}, "3": {}}}, {Name: "new"}}
	var got []string
	for _, f := range compat.Compare(old, current) {
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
		if compat.Incompatible(compat.Compare([]catalogue.Entry{{Name: "a", Schema: a}}, []catalogue.Entry{{Name: "a", Schema: b}})) {
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
			return map[string]any{"enum": rapid.SliceOfNDistinct(
				rapid.SampledFrom([]any{"a", "b", json.Number("1"), nil}),
				1,
				3,
				func(v any) any { return v },
			).Draw(t, "values")}
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
