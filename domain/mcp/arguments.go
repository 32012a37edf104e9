package mcp

import (
	"bytes"
	"encoding/json"
	"strings"

	"posthorn/domain/fault"
	"posthorn/domain/schema"
)

// scalars are the JSON types that an argument can be compared as.
var scalars = map[string]bool{"string": true, "number": true, "integer": true, "boolean": true}

// copied are the keywords of a property that its argument has too.
var copied = []string{"type", "enum", "const", "title", "description", "format"}

// InputSchema is the schema of the arguments with which an event type can be subscribed to: each top-level property of
// its payload's schema that has one value, compared as a whole. A type without a schema takes no arguments.
func InputSchema(payload json.RawMessage) json.RawMessage {
	var in struct {
		Properties map[string]map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(payload, &in) // another shape has no properties
	properties := map[string]map[string]json.RawMessage{}
	for name, p := range in.Properties {
		kind := ""
		_ = json.Unmarshal(p["type"], &kind)
		if !scalars[kind] || name == "" || strings.Contains(name, ".") {
			continue
		}
		properties[name] = map[string]json.RawMessage{}
		for _, keyword := range copied {
			if v, is := p[keyword]; is {
				properties[name][keyword] = v
			}
		}
	}
	text, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "additionalProperties": false})
	if err != nil {
		panic(err) // JSON that was read before
	}
	return text
}

// PayloadSchema is the schema of the data of an event as it is sent: an object. Other data is in its field value.
func PayloadSchema(payload json.RawMessage) json.RawMessage {
	var in struct {
		Type string `json:"type"`
	}
	switch err := json.Unmarshal(payload, &in); {
	case len(payload) == 0 || err != nil:
		return json.RawMessage(`{"type":"object"}`)
	case in.Type == "" || in.Type == "object":
		return payload
	}
	return json.RawMessage(`{"type":"object","properties":{"value":` + string(payload) + `}}`)
}

// Arguments checks the arguments of a subscription. canonical is the same for equal arguments: sorted, without white
// space. filter is the filter that selects the events; empty: all.
func Arguments(payload, given json.RawMessage) (canonical, filter string, err error) {
	if len(given) == 0 || string(given) == "null" {
		given = json.RawMessage("{}")
	}
	var all map[string]any
	if json.Unmarshal(given, &all) != nil {
		return "", "", fault.InvalidField("arguments", "body_malformed", "arguments must be an object.")
	}
	compiled, err := schema.Compile(InputSchema(payload))
	if err != nil {
		return "", "", err
	}
	wrong, err := compiled.Check(given, nil)
	if err != nil {
		return "", "", err
	}
	if len(wrong) > 0 {
		at := "arguments" + strings.TrimPrefix(wrong[0].Field, "data")
		return "", "", fault.InvalidField("arguments", "schema_mismatch", at+": "+wrong[0].Detail+" See the inputSchema of the event.")
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(all); err != nil {
		return "", "", err
	}
	canonical = strings.TrimSpace(text.String())
	if strings.Contains(canonical, `\u0000`) {
		return "", "", fault.InvalidField("arguments", "schema_mismatch", "arguments must not contain the character U+0000.")
	}
	if len(all) > 0 {
		filter = canonical
	}
	return canonical, filter, nil
}
