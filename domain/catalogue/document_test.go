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
)

var published = []Entry{
	{
		Name:        "order.completed",
		Description: "Paid",
		Group:       "Orders",
		Check:       Off,
		Schema:      json.RawMessage(`{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"to":{"$ref":"#/$defs/address"},"n":{"const":{"$ref":"#/x"}}},"$defs":{"address":{"type":"object","properties":{"city":{"type":"string","maxLength":12345678901234567890}}}}}`),
		Example:     json.RawMessage(`{"id":"ord_1"}`),
		Versions:    map[string]Version{"2026-01": {Schema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":true}}`)}},
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
					target := root
					for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
						at, _ := target.(map[string]any)
						target = at[step]
					}
					if target == nil {
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
