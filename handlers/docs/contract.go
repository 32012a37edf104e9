package docs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"go.yaml.in/yaml/v3"

	views "posthorn/views/docs"
)

// referencePage is the first page of the reference; its groups and their operations are below it.
const (
	referencePage = "/docs/api"
	groupRoot     = referencePage + "/"
)

// contract is the OpenAPI document as a YAML tree, which keeps the written order of its fields.
type contract struct{ root *yaml.Node }

func readContract(source []byte) (contract, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(source, &n); err != nil {
		return contract{}, fmt.Errorf("read openapi.yaml: %w", err)
	}
	if len(n.Content) == 0 {
		return contract{}, fmt.Errorf("openapi.yaml is empty")
	}
	return contract{n.Content[0]}, nil
}

// plain is the document as JSON values.
func (c contract) plain() any {
	var v any
	_ = c.root.Decode(&v) // it was parsed, so it decodes
	return v
}

// get is the node at the end of a path of keys; nil if it does not exist.
func get(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var found *yaml.Node
		for name, value := range members(n) {
			if name == key {
				found = value
			}
		}
		n = found
	}
	return n
}

// members iterates over an object in the order of the document.
func members(n *yaml.Node) func(func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

func value(n *yaml.Node, keys ...string) string {
	if n = get(n, keys...); n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

func (c contract) text(keys ...string) string { return value(c.root, keys...) }

// resolve follows references.
func (c contract) resolve(n *yaml.Node) (*yaml.Node, string) {
	name := ""
	for range 10 {
		ref := value(n, "$ref")
		if ref == "" {
			return n, name
		}
		keys := strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		name = keys[len(keys)-1]
		n = get(c.root, keys...)
	}
	return n, name
}

var methods = []string{"get", "post", "put", "patch", "delete"}

// reference builds the groups of operations, in the order of the document's tags.
func (c contract) reference(base string) ([]views.Group, error) {
	var groups []views.Group
	tags := get(c.root, "tags")
	if tags == nil {
		return nil, fmt.Errorf("openapi.yaml has no tags")
	}
	for _, t := range tags.Content {
		name := value(t, "name")
		groups = append(groups, views.Group{
			Name:  name,
			Path:  groupRoot + strings.ReplaceAll(name, " ", "-"),
			About: value(t, "description"),
		})
	}
	for path, item := range members(get(c.root, "paths")) {
		for _, method := range methods {
			op := get(item, method)
			if op == nil {
				continue
			}
			of := texts(get(op, "tags"))
			at := slices.IndexFunc(groups, func(g views.Group) bool { return len(of) > 0 && g.Name == of[0] })
			if at < 0 {
				return nil, fmt.Errorf("%s %s has no tag of the document's", method, path)
			}
			o := c.operation(base, path, method, item, op)
			o.Page = groups[at].Path + "/" + o.ID
			groups[at].Operations = append(groups[at].Operations, o)
		}
	}
	return groups, nil
}

func (c contract) operation(base, path, method string, item, op *yaml.Node) views.Operation {
	o := views.Operation{
		ID:       value(op, "operationId"),
		Method:   strings.ToUpper(method),
		Path:     "/api/v1" + path,
		Summary:  value(op, "summary"),
		Scope:    value(op, "x-scope"),
		Platform: value(op, "x-platform") == "true",
	}
	if get(item, "servers") == nil {
		o.Named = "/api/v1/tenants/{tenant_id}" + path
	}
	o.Text, o.About = about(op)
	for _, p := range items(get(item, "parameters"), get(op, "parameters")) {
		p, _ = c.resolve(p)
		o.Parameters = append(o.Parameters, c.parameter(p))
	}
	body := get(op, "requestBody")
	schema := get(body, "content", "application/json", "schema")
	if schema != nil {
		o.Body = c.fields(schema, "", 0)
		o.BodyOptional = value(body, "required") != "true"
	}
	o.Problems = texts(get(op, "x-problems"))
	for status, answer := range members(get(op, "responses")) {
		if status == "default" {
			continue
		}
		answer, _ = c.resolve(answer)
		a := views.Answer{Status: status, About: value(answer, "description")}
		if s := get(answer, "content", "application/json", "schema"); s != nil {
			a.Fields, a.Example = c.fields(s, "", 0), c.exampleText(s)
			if a.Example != "" {
				a.Code = code("json", a.Example)
			}
		}
		o.Answers = append(o.Answers, a)
	}
	o.Samples = c.samples(base, &o, schema, item, op)
	return o
}

// items are what some lists hold, one list after the other.
func items(lists ...*yaml.Node) (out []*yaml.Node) {
	for _, list := range lists {
		if list != nil {
			out = append(out, list.Content...)
		}
	}
	return out
}

// texts are the texts of a list.
func texts(list *yaml.Node) (out []string) {
	if list != nil {
		_ = list.Decode(&out) // anything else decodes to an empty list
	}
	return out
}

func (c contract) parameter(p *yaml.Node) views.Field {
	f := views.Field{Name: value(p, "name"), Where: value(p, "in"), Required: value(p, "required") == "true"}
	schema, _ := c.resolve(get(p, "schema"))
	f.Type, f.Limits = c.kind(schema), c.limits(schema)
	f.Text, f.About = about(p)
	return f
}

// about is the first description of some nodes, as text and as a component.
func about(nodes ...*yaml.Node) (text string, component templ.Component) {
	for _, n := range nodes {
		if text = value(n, "description"); text != "" {
			return text, prose(text)
		}
	}
	return "", nil
}

// maxDepth is how deeply nested fields are listed.
const maxDepth = 3

// fields lists an object's fields, each followed by its own fields, by dotted paths.
func (c contract) fields(schema *yaml.Node, prefix string, depth int) []views.Field {
	schema, _ = c.resolve(schema)
	if item := get(schema, "items"); item != nil {
		return c.fields(item, strings.TrimSuffix(prefix, ".")+"[].", depth)
	}
	var list []views.Field
	for _, one := range items(get(schema, "allOf"), get(schema, "oneOf")) {
		list = append(list, c.fields(one, prefix, depth)...)
	}
	required := texts(get(schema, "required"))
	for name, property := range members(get(schema, "properties")) {
		resolved, _ := c.resolve(property)
		f := views.Field{
			Name:     prefix + name,
			Required: slices.Contains(required, name),
			Type:     c.kind(resolved),
			Limits:   c.limits(resolved),
			Depth:    depth,
		}
		f.Text, f.About = about(property, resolved)
		list = append(list, f)
		if depth < maxDepth {
			list = append(list, c.fields(resolved, prefix+name+".", depth+1)...)
		}
	}
	return list
}

// kind names a schema's type for people.
func (c contract) kind(schema *yaml.Node) string {
	schema, _ = c.resolve(schema)
	if schema == nil {
		return "any JSON"
	}
	var types []string
	switch t := get(schema, "type"); {
	case t == nil:
	case t.Kind == yaml.SequenceNode:
		_ = t.Decode(&types)
	default:
		types = []string{t.Value}
	}
	if len(types) == 0 {
		for _, one := range items(get(schema, "allOf"), get(schema, "oneOf")) {
			types = append(types, c.kind(one))
		}
		types = slices.Compact(types)
	}
	if len(types) == 0 {
		return "any JSON"
	}
	if item := get(schema, "items"); item != nil {
		types[0] = "array of " + c.kind(item)
	}
	if format := value(schema, "format"); format == "date-time" {
		types[0] = "time"
	}
	return strings.Join(types, " or ")
}

// limits lists the other conditions of a value.
func (c contract) limits(schema *yaml.Node) string {
	schema, _ = c.resolve(schema)
	var parts []string
	between := func(low, high, unit string) {
		a, b := value(schema, low), value(schema, high)
		switch {
		case a != "" && b != "":
			parts = append(parts, a+" to "+b+unit)
		case a != "":
			parts = append(parts, "at least "+a+unit)
		case b != "":
			parts = append(parts, "at most "+b+unit)
		}
	}
	between("minimum", "maximum", "")
	between("minLength", "maxLength", " characters")
	between("minItems", "maxItems", " items")
	between("minProperties", "maxProperties", " entries")
	item, _ := c.resolve(get(schema, "items"))
	if values := texts(cmp.Or(get(schema, "enum"), get(item, "enum"))); len(values) > 0 {
		parts = append(parts, "one of "+strings.Join(values, ", "))
	}
	if d := get(schema, "default"); d != nil {
		text := d.Value
		if d.Kind != yaml.ScalarNode {
			text = compact(c.exampleOf(d))
		}
		parts = append(parts, "default "+text)
	}
	return strings.Join(parts, "; ")
}
