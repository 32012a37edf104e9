package codegen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"posthorn/domain/catalogue"
)

// builder reads schemas. Names are unique in a file.
type builder struct {
	file        *file
	initialisms bool
	used        map[string]bool
	root        any               // of the schema that is read
	refs        map[string]*shape // of its references
	within      string            // the name of its type
}

func (b *builder) entry(e catalogue.Entry) error {
	name := b.unique(pascal(e.Name, b.initialisms))
	data, err := b.schema(name, e.Schema)
	if err != nil {
		return err
	}
	data.doc = e.Description
	ev := event{name: e.Name, ident: name, doc: e.Description, data: data, deprecated: e.Deprecated}
	for _, v := range catalogue.VersionNames(e.Versions) {
		one, err := b.schema(b.unique(name+"Version"+strings.TrimPrefix(pascal(v, b.initialisms), "X")), e.Versions[v].Schema)
		if err != nil {
			return err
		}
		ev.versions = append(ev.versions, version{v, one})
	}
	b.file.events = append(b.file.events, ev)
	return nil
}

// unique is a name that nothing in the file has.
func (b *builder) unique(name string) string {
	unique := name
	for i := 2; b.used[unique]; i++ {
		unique = fmt.Sprintf("%s%d", name, i)
	}
	b.used[unique] = true
	return unique
}

// schema reads one schema. Its type gets the name.
func (b *builder) schema(name string, source json.RawMessage) (*shape, error) {
	b.root, b.refs, b.within = true, map[string]*shape{}, name
	if source != nil {
		dec := json.NewDecoder(bytes.NewReader(source))
		dec.UseNumber()
		if err := dec.Decode(&b.root); err != nil {
			return nil, err
		}
	}
	s := b.build(b.root, name, 0)
	if s.name != name {
		copied := *s
		copied.name = name
		s = &copied
		b.file.types = append(b.file.types, s)
	}
	return s, nil
}

// declare gives a shape its name and its place in the file.
func (b *builder) declare(s *shape, name string) *shape {
	if s.name = name; name != b.within {
		s.name = b.unique(name)
	}
	b.file.types = append(b.file.types, s)
	return s
}

// most bounds how deep a schema is followed.
const most = 40

func (b *builder) build(v any, name string, depth int) *shape {
	m, ok := v.(map[string]any)
	if !ok || depth > most {
		return &shape{}
	}
	if ref, ok := m["$ref"].(string); ok {
		return b.reference(ref, depth)
	}
	doc, _ := m["description"].(string)
	s := b.kind(m, name, depth)
	if s.doc == "" && s.name == "" {
		s.doc = doc
	}
	return s
}

// reference builds what a reference leads to, once.
func (b *builder) reference(ref string, depth int) *shape {
	if s, known := b.refs[ref]; known {
		return s
	}
	last := ref[strings.LastIndexByte(ref, '/')+1:]
	target := b.target(ref)
	b.refs[ref] = &shape{} // a recursive schema ends here
	b.refs[ref] = b.build(target, b.within+pascal(last, b.initialisms), depth+1)
	return b.refs[ref]
}

func (b *builder) kind(m map[string]any, name string, depth int) *shape {
	if v, is := m["const"]; is {
		return b.listed([]any{v}, name)
	}
	if values, is := m["enum"].([]any); is {
		return b.listed(values, name)
	}
	if parts, is := m["allOf"].([]any); is {
		return b.all(m, parts, name, depth)
	}
	types := typesOf(m)
	if len(types) == 0 {
		for _, word := range []string{"anyOf", "oneOf"} {
			if choices, is := m[word].([]any); is && m["properties"] == nil {
				return b.union(choices, name, depth)
			}
		}
		switch {
		case m["properties"] != nil:
			types = []string{"object"}
		case m["items"] != nil || m["prefixItems"] != nil:
			types = []string{"array"}
		default:
			return &shape{}
		}
	}
	nullable := slices.Contains(types, "null")
	types = slices.DeleteFunc(types, func(t string) bool { return t == "null" })
	if len(types) != 1 {
		s := &shape{kind: union, nullable: nullable}
		for _, t := range types {
			s.choices = append(s.choices, b.single(t, m, name+pascal(t, b.initialisms), depth))
		}
		return s
	}
	s := b.single(types[0], m, name, depth)
	if !nullable {
		return s
	}
	return orNull(s)
}

// orNull is a shape that can also be null. The declared shape stays unchanged for other uses.
func orNull(s *shape) *shape {
	copied := *s
	copied.nullable = true
	return &copied
}

func typesOf(m map[string]any) (out []string) {
	switch t := m["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok {
				out = append(out, name)
			}
		}
	}
	return out
}

func (b *builder) single(t string, m map[string]any, name string, depth int) *shape {
	switch t {
	case "boolean":
		return &shape{kind: boolean}
	case "integer":
		return &shape{kind: integer}
	case "number":
		return &shape{kind: number}
	case "string":
		return &shape{kind: text}
	case "array":
		if parts, is := m["prefixItems"].([]any); is && len(parts) > 0 {
			s := &shape{kind: tuple}
			for i, part := range parts {
				s.choices = append(s.choices, b.build(part, fmt.Sprintf("%s%d", name, i+1), depth+1))
			}
			return s
		}
		return &shape{kind: list, items: b.build(m["items"], name+"Item", depth+1)}
	case "object":
		return b.object(m, name, depth)
	}
	return &shape{} // only null, or a type that is not JSON's
}

func (b *builder) object(m map[string]any, name string, depth int) *shape {
	properties, _ := m["properties"].(map[string]any)
	if len(properties) == 0 {
		return &shape{kind: mapping, items: b.build(m["additionalProperties"], name+"Value", depth+1)}
	}
	required, _ := m["required"].([]any)
	s := &shape{kind: object}
	s.doc, _ = m["description"].(string)
	for _, property := range slices.Sorted(maps.Keys(properties)) {
		of := b.build(properties[property], name+pascal(property, b.initialisms), depth+1)
		f := field{name: property, of: of, required: slices.Contains(required, any(property))}
		if described, ok := properties[property].(map[string]any); ok {
			f.doc, _ = described["description"].(string)
		}
		s.fields = append(s.fields, f)
	}
	return b.declare(s, name)
}

// listed are values. Those that are no texts, numbers or switches make it anything.
func (b *builder) listed(values []any, name string) *shape {
	s := &shape{kind: listed}
	texts := 0
	for _, v := range values {
		switch v.(type) {
		case nil:
			s.nullable = true
			continue
		case string:
			texts++
		case json.Number, bool:
		default:
			return &shape{}
		}
		s.values = append(s.values, v)
	}
	if len(s.values) == 0 {
		return &shape{}
	}
	if b.initialisms && texts == len(s.values) && len(values) > 1 { // Go has constants for them
		nullable := s.nullable
		s.nullable = false
		if s = b.declare(s, name); nullable {
			return orNull(s)
		}
	}
	return s
}

func (b *builder) union(choices []any, name string, depth int) *shape {
	s := &shape{kind: union}
	for i, choice := range choices {
		m, _ := choice.(map[string]any)
		if m["type"] == "null" {
			s.nullable = true
			continue
		}
		s.choices = append(s.choices, b.build(choice, fmt.Sprintf("%s%d", name, i+1), depth+1))
	}
	switch {
	case len(s.choices) == 0:
		return &shape{}
	case len(s.choices) > 1:
		return s
	case s.nullable:
		return orNull(s.choices[0])
	}
	return s.choices[0]
}

// all merges the objects of an allOf into one. Anything else is what its first part says.
func (b *builder) all(m map[string]any, parts []any, name string, depth int) *shape {
	merged := map[string]any{}
	properties := map[string]any{}
	var required []any
	add := func(part map[string]any) {
		if some, ok := part["properties"].(map[string]any); ok {
			maps.Copy(properties, some)
		}
		some, _ := part["required"].([]any)
		required = append(required, some...)
	}
	add(m)
	for _, part := range parts {
		for range most {
			p, _ := part.(map[string]any)
			ref, isRef := p["$ref"].(string)
			if !isRef {
				break
			}
			part = b.target(ref)
		}
		p, _ := part.(map[string]any)
		add(p)
	}
	if len(properties) == 0 {
		if len(parts) == 0 {
			return &shape{}
		}
		return b.build(parts[0], name, depth+1)
	}
	merged["properties"], merged["required"], merged["type"] = properties, required, "object"
	if doc, ok := m["description"]; ok {
		merged["description"] = doc
	}
	return b.object(merged, name, depth+1)
}

// target is what a reference leads to, as JSON.
func (b *builder) target(ref string) any {
	v := b.root
	for step := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if step == "" {
			continue
		}
		at, _ := v.(map[string]any)
		v = at[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return v
}
