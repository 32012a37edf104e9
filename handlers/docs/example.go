package docs

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pair and object keep the document's order, which a map would lose.
type pair struct {
	name  string
	value any
}

type object []pair

// MarshalJSON writes an object in its order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(p.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Placeholders for ids and texts in examples.
const exampleSerial = "01jd0000000000000000000000"

var idPrefixes = map[string]string{
	"event_id":    "evt_",
	"endpoint_id": "ep_",
	"delivery_id": "dlv_",
	"tenant_id":   "ten_",
	"key_id":      "key_",
	"attempt_id":  "att_",
}

// exampleOf is a node's value as it is written.
func (c contract) exampleOf(n *yaml.Node) any {
	if n.Kind == yaml.MappingNode {
		o := object{}
		for name, value := range members(n) {
			o = append(o, pair{name, c.exampleOf(value)})
		}
		return o
	}
	if n.Kind == yaml.SequenceNode {
		list := make([]any, len(n.Content))
		for i, one := range n.Content {
			list[i] = c.exampleOf(one)
		}
		return list
	}
	var v any
	_ = n.Decode(&v)
	return v
}

// example creates a value of a schema. If all is false, it has only fields that are required or have an example of
// their own.
func (c contract) example(schema *yaml.Node, name, of string, all bool, depth int) any {
	schema, ref := c.resolve(schema)
	if ref != "" {
		of = ref
	}
	if e := get(schema, "example"); e != nil {
		return c.exampleOf(e)
	}
	kind := c.kind(schema)
	switch {
	case strings.HasSuffix(kind, " or null") && all:
		return nil
	case get(schema, "default") != nil:
		return c.exampleOf(get(schema, "default"))
	case get(schema, "enum") != nil:
		return c.exampleOf(get(schema, "enum").Content[0])
	case depth > 6:
		return nil
	}
	if item := get(schema, "items"); item != nil {
		return []any{c.example(item, name, of, all, depth+1)}
	}
	if o, ok := c.exampleObject(schema, of, all, depth); ok {
		return o
	}
	return exampleScalar(kind, name, of)
}

func (c contract) exampleObject(schema *yaml.Node, of string, all bool, depth int) (object, bool) {
	o, found := object{}, get(schema, "properties") != nil
	for _, one := range items(get(schema, "allOf"), get(schema, "oneOf")) {
		if inner, ok := c.example(one, "", of, all, depth).(object); ok {
			o, found = append(o, inner...), true
		}
	}
	required := texts(get(schema, "required"))
	for name, property := range members(get(schema, "properties")) {
		resolved, _ := c.resolve(property)
		if !all && !slices.Contains(required, name) && get(resolved, "example") == nil {
			continue
		}
		o = append(o, pair{name, c.example(property, name, of, all, depth+1)})
	}
	return o, found || get(schema, "additionalProperties") != nil
}

func exampleScalar(kind, name, of string) any {
	switch {
	case kind == "any JSON":
		if name == "data" {
			return object{{"order_id", "ord_1"}, {"total", 4200}}
		}
		return object{}
	case strings.HasPrefix(kind, "time"):
		return "2026-01-31T12:00:00Z"
	case strings.HasPrefix(kind, "integer"), strings.HasPrefix(kind, "number"):
		return 1
	case strings.HasPrefix(kind, "boolean"):
		return true
	}
	if prefix, ok := idPrefixes[name]; ok {
		return prefix + exampleSerial
	}
	switch name {
	case "id":
		for noun, prefix := range idPrefixes {
			if strings.HasPrefix(strings.ToLower(of), strings.TrimSuffix(noun, "_id")) {
				return prefix + exampleSerial
			}
		}
	case "event_types", "type", "event_type":
		return "order.completed"
	case "name":
		return "Acme"
	case "secret":
		return "whsec_..."
	case "api_key":
		return "phk_..."
	case "email":
		return "ada@example.com"
	case "url":
		return "https://example.com/webhooks"
	}
	return "..."
}

func (c contract) exampleText(schema *yaml.Node) string {
	return jsonText(c.example(schema, "", "", true, 0), "  ")
}

func compact(v any) string { return jsonText(v, "") }

// jsonText is a value as JSON for people, who read < as it is.
func jsonText(v any, indent string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if enc.Encode(v) != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}
